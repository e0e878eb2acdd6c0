//! The last line of a report: what other servers would do for a program that was recorded.

use crate::arguments::{Arguments, Command};
use crate::simulation::what_if::{CALIBRATION, MACHINE};
use ::simulate::{Axis, OwnModels, Point, Program, Setting, points, simulate_points};
use clap::Parser;
use interface::{ReplacementPolicies, UserError};
use serde::Serialize;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::Trace;

/// Events above which a trace takes too long to simulate at the end of a run.
const EVENTS_MAX: u64 = 200_000;

/// Gain below which another setting is not worth a line.
const GAIN_MIN: f64 = 1.05;

/// The best of a few other settings for a recorded program.
#[derive(Serialize)]
pub(super) struct WhatIf {
    /// Trace of the program.
    trace: PathBuf,
    /// Number of servers and strategy of the best setting.
    servers: String,
    strategy: String,
    /// Times as fast as with the servers and the strategy of the run, as simulations of both say.
    gain: f64,
    /// True if the simulated machine was measured.
    is_calibrated: bool,
}

impl WhatIf {
    /// [`WhatIf::of`] with a note of what fails.
    pub(super) fn noted(words: &[OsString], notes: &mut Vec<String>) -> Option<Self> {
        Self::of(words).unwrap_or_else(|error| {
            notes.push(format!("no prediction: {}", error.cause));
            None
        })
    }

    /// Simulates the program of a run, if these words recorded it: with the servers of the run and
    /// twice as many, by the strategy of the run and another one. `None` if it was not recorded, or
    /// its trace is long.
    ///
    /// # Errors
    /// A trace that cannot be carried out.
    fn of(words: &[OsString]) -> Result<Option<Self>, UserError> {
        let Some(path) = trace_of(words).filter(|path| path.is_dir()) else { return Ok(None) };
        let trace = Trace::open(&path)?;
        trace.check()?;
        let Some(recorded) = trace.header().instance.clone() else { return Ok(None) };
        let program = Arc::new(Program::of_trace(trace)?);
        if program.events() > EVENTS_MAX {
            return Ok(None);
        }
        let other = match recorded.strategy.as_str() {
            "disk-directed" => "two-phase",
            _ => "disk-directed",
        };
        let axis = |key: &str, values: Vec<String>| Axis { key: key.to_owned(), values };
        let count = recorded.servers;
        let axes = [
            axis("servers", vec![count.to_string(), count.saturating_mul(2).to_string()]),
            axis("strategy", vec![recorded.strategy.clone(), other.to_owned()]),
        ];
        let block = Setting::option("block", &recorded.block_bytes.to_string());
        let calibration = Some(Path::new(CALIBRATION)).filter(|path| path.is_file());
        let machine = calibration.is_none().then(|| Setting::option("machine", MACHINE));
        let fixed: Vec<Setting> = machine.into_iter().chain([block]).collect();
        let (policies, models) = (ReplacementPolicies::default(), OwnModels::default());
        let points = points(calibration, &fixed, &axes, &policies, &models)?;
        let outcomes = simulate_points(&points, &program, None, &|_| ControlFlow::Continue(()))?;
        let first = outcomes.first().map_or(0.0, |outcome| outcome.seconds);
        let seconds = outcomes.iter().map(|outcome| outcome.seconds);
        let best = points.iter().zip(seconds).min_by(|(_, one), (_, other)| one.total_cmp(other));
        Ok(best.map(|(Point { values, scenario }, seconds)| Self {
            trace: path,
            servers: values.first().cloned().unwrap_or_default(),
            strategy: values.get(1).cloned().unwrap_or_default(),
            gain: first / seconds.max(f64::MIN_POSITIVE),
            is_calibrated: scenario.machine.is_calibrated(),
        }))
    }

    /// The line of the report, if another setting is worth it.
    pub(super) fn line(&self) -> Option<String> {
        let Self { servers, strategy, gain, is_calibrated, .. } = self;
        let worth = match is_calibrated {
            true => "predicted",
            false => "simulated on a machine that is not this one",
        };
        (*gain >= GAIN_MIN).then(|| {
            format!("  what if {servers} servers, {strategy}: {gain:.2} times as fast ({worth})")
        })
    }
}

/// Returns the directory of the trace that a program of these words records.
pub(super) fn trace_of(words: &[OsString]) -> Option<PathBuf> {
    let name = Path::new(words.first()?).file_name()?;
    if name != "unisono" {
        return None;
    }
    match Arguments::try_parse_from(words).ok()?.command {
        Command::Record(record) => Some(record.output),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the directory of a trace is that of the words of a run, and only a gain has a line.
    use super::*;

    #[test]
    fn words_that_record_name_a_trace() {
        let of = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            trace_of(&words).map(|path| path.display().to_string())
        };
        assert_eq!(of("unisono record -- mpiexec -n 4 ./app"), Some("unisono.trace".to_owned()));
        assert_eq!(of("/x/unisono record -o a mpiexec ./app"), Some("a".to_owned()));
        assert_eq!(of("unisono ls"), None);
        assert_eq!(of("mpiexec -n 4 unisono record ./app"), None);
    }

    #[test]
    fn only_a_gain_is_worth_a_line() {
        let line = |gain| {
            let (trace, is_calibrated) = (PathBuf::from("t"), true);
            let (servers, strategy) = ("4".to_owned(), "two-phase".to_owned());
            WhatIf { trace, servers, strategy, gain, is_calibrated }.line()
        };
        assert_eq!(line(1.0), None);
        let gain = "  what if 4 servers, two-phase: 1.50 times as fast (predicted)";
        assert_eq!(line(1.5).as_deref(), Some(gain));
    }
}
