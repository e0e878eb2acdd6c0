//! `sim calibrate`: measures this machine for simulations.

use crate::arguments::Calibrate;
use crate::output::present;
use cluster::Program;
use interface::UserError;
use measure::{Calibration, Loads, Measured, Residual};

pub(crate) fn run(arguments: &Calibrate) -> Result<(), UserError> {
    arguments.root.check()?;
    let program = Program::current()?;
    client::clean_up_on_signals()?;
    if let Some(scenario) = &arguments.check {
        let directory = arguments.directory.as_deref();
        let checked = measure::check_calibration(&program, directory, scenario)?;
        if arguments.json {
            return present::json(&checked);
        }
        heading()?;
        checked.iter().try_for_each(|residual| present::line(&row(residual)))?;
        present::note(&format!("{} still fits this machine", scenario.display()));
        return Ok(());
    }
    let step = |step: &str| present::note(&format!("measuring {step}"));
    let directory = arguments.directory.as_deref();
    let calibration = measure::calibrate(&program, directory, &arguments.output, step)?;
    let verdict = calibration.verdict(&arguments.output);
    if arguments.json {
        present::json(&calibration)?;
        return verdict.map(drop);
    }
    show(&calibration)?;
    present::note(&format!("wrote {}", arguments.output.display()));
    present::line(&verdict?)
}

fn show(calibration: &Calibration) -> Result<(), UserError> {
    let parameters = &calibration.parameters;
    for Measured { key, value, source } in parameters.machine.iter().chain(&parameters.disk) {
        present::line(&format!("{key:<24} {value:>14}  {source}"))?;
    }
    let Loads { copies, wakes, alone, rest } = calibration.loads;
    let loads =
        [("copies", copies), ("wakes", wakes), ("small calls", alone), ("other work", rest)];
    for (name, load) in loads {
        let name = format!("load of {name}");
        present::line(&format!(
            "{name:<24} {load:>14}  factor of costs, fitted to seven programs"
        ))?;
    }
    present::line("")?;
    heading()?;
    for residual in &calibration.fitted {
        present::line(&format!("{}  fitted", row(residual)))?;
    }
    calibration.residuals.iter().try_for_each(|residual| present::line(&row(residual)))
}

fn heading() -> Result<(), UserError> {
    present::line(&format!(
        "{:<8} {:>8} {:>9} {:<14} {:>9} {:>19} {:>9} {:>7}",
        "pattern", "record", "file", "access", "real s", "least to most", "simulated", "error"
    ))
}

fn row(residual: &Residual) -> String {
    format!(
        "{:<8} {:>8} {:>9} {:<14} {:>9.4} {:>9.4} {:>9.4} {:>9.4} {:>+6.1}%",
        residual.pattern,
        residual.record_bytes,
        residual.file_bytes,
        residual.access,
        residual.real_seconds,
        residual.real_least,
        residual.real_most,
        residual.simulated_seconds,
        residual.error() * 100.0,
    )
}
