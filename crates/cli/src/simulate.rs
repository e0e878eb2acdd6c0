//! `sim`: simulates transfers.

use crate::arguments::{Sim, SimCommand};
use crate::demerit;
use crate::look;
use crate::present;
use crate::words;
use launch::{LaunchError, Machine, Report, Scenario};

/// Trials of a case that nobody looks at.
const TRIALS: u32 = 5;

pub(crate) fn run(arguments: &Sim) -> Result<(), LaunchError> {
    if let Some(SimCommand::Demerit(demerit)) = &arguments.command {
        return demerit::run(demerit);
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
