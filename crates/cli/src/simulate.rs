//! `sim`: simulates transfers, and says how good a disk model is.

use crate::arguments::{Demerit, Sim, SimCommand};
use crate::look;
use crate::present;
use crate::words;
use launch::{DemeritPlan, DiskName, LaunchError, Machine, Report, Scenario};

/// Trials of a case that nobody looks at.
const TRIALS: u32 = 5;

pub(crate) fn run(arguments: &Sim) -> Result<(), LaunchError> {
    if let Some(SimCommand::Demerit(demerit)) = &arguments.command {
        return run_demerit(demerit);
    }
    let scenarios = scenarios(arguments)?;
    let results = match look::Wanted::of(arguments) {
        Some(wanted) => look::run(&scenarios, &wanted)?,
        None => {
            let mut results = Vec::new();
            for scenario in &scenarios {
                results.extend(launch::simulate(scenario)?.results);
            }
            results
        }
    };
    let report = Report { schema: launch::SIM_SCHEMA.to_owned(), limits: None, results };
    present::report(&report, arguments.cases.json)
}

fn scenarios(arguments: &Sim) -> Result<Vec<Scenario>, LaunchError> {
    let cases = &arguments.cases;
    let patterns = words::patterns(&cases.pattern, cases.distribution.as_deref(), cases.write)?;
    let mut machine = Machine::of(word(&arguments.machine)?);
    if let Some(disk) = &arguments.disk {
        machine.disk = disk.parse()?;
    }
    let is_looked_at = look::Wanted::of(arguments).is_some();
    let mut scenarios = Vec::new();
    for pattern in &patterns {
        for &record_bytes in &cases.record {
            for strategy in words::strategies(&cases.strategy) {
                scenarios.push(Scenario {
                    machine: machine.clone(),
                    layout: word(&arguments.layout)?,
                    order: word(&arguments.order)?,
                    pattern: word(pattern)?,
                    record_bytes,
                    file_bytes: arguments.size,
                    clients: arguments.clients,
                    servers: arguments.servers,
                    disks_per_server: arguments.disks,
                    block_bytes: arguments.block,
                    strategy: word(&strategy)?,
                    trials: arguments.trials.unwrap_or(if is_looked_at { 1 } else { TRIALS }),
                    seed: arguments.seed,
                    sync: arguments.sync,
                    payload: word(&arguments.payload)?,
                    availability: arguments.availability,
                });
            }
        }
    }
    Ok(scenarios)
}

fn run_demerit(arguments: &Demerit) -> Result<(), LaunchError> {
    let disk: DiskName = arguments.disk.parse()?;
    let Demerit { trace, cscan, unit, .. } = arguments;
    let found = launch::demerit(&DemeritPlan { trace, disk: &disk, cscan: *cscan, unit: *unit })?;
    if let Some(path) = &arguments.plot {
        found.save_svg(path)?;
    }
    if arguments.json {
        return present::json(&found);
    }
    present::line(&format!("requests       {:>12}", found.requests))?;
    present::line(&format!("mean measured  {:>12.3} ms", found.measured_mean_ms))?;
    present::line(&format!("mean modelled  {:>12.3} ms", found.modelled_mean_ms))?;
    present::line(&format!("demerit        {:>12.3} ms", found.demerit_ms))?;
    present::line(&format!("               {:>12.2} % of the mean", found.demerit_percent))?;
    present::line("")?;
    present::line(&format!("{:>8} {:>12} {:>12}", "percent", "measured ms", "modelled ms"))?;
    found.percentiles.iter().try_for_each(|point| {
        let times = format!("{:>12.3} {:>12.3}", point.measured_ms, point.modelled_ms);
        present::line(&format!("{:>8} {times}", point.percent))
    })
}

/// A word that names something, or why it does not.
fn word<T>(word: &str) -> Result<T, LaunchError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    word.parse().map_err(|error: T::Err| {
        LaunchError::usage(
            format!("{word:?} cannot be simulated"),
            error.to_string(),
            "see: unisono sim --help",
        )
    })
}
