//! `sim --timeline` and `sim --plot`: shows what happens in a trial.
//!
//! Everything that can be refused is refused before anything is simulated, the paths included.

use crate::arguments::Sim;
use crate::present;
use launch::{ExitCode, LaunchError, Row, Scenario, TraceSummary};
use std::fs::File;
use std::path::Path;

/// What to show of a simulation.
pub(crate) struct Wanted<'a> {
    timeline: Option<&'a Path>,
}

impl<'a> Wanted<'a> {
    /// What is wanted, if anything.
    pub(crate) fn of(arguments: &'a Sim) -> Option<Self> {
        let timeline = arguments.timeline.as_deref();
        timeline.is_some().then_some(Self { timeline })
    }
}

/// Simulates one trial of each case and shows what is wanted of it.
pub(crate) fn run(scenarios: &[Scenario], wanted: &Wanted<'_>) -> Result<Vec<Row>, LaunchError> {
    for scenario in scenarios {
        scenario.check()?;
        if scenario.trials > 1 {
            let cause = format!("--trials {} was said", scenario.trials);
            return Err(LaunchError::usage(
                "only one trial can be looked at",
                cause,
                "leave out --trials; trial n of a case is the one with --seed plus n",
            ));
        }
    }
    let mut results = Vec::new();
    if let Some(path) = wanted.timeline {
        let [scenario] = scenarios else { return Err(too_many(scenarios)) };
        results = vec![timeline(scenario, path)?];
    }
    Ok(results)
}

fn timeline(scenario: &Scenario, path: &Path) -> Result<Row, LaunchError> {
    let file = create(path)?;
    let (trial, summary) = launch::trace_trial(scenario, file)?;
    let TraceSummary { events, events_left_out } = summary;
    present::note(&format!("wrote {}: {events} events", path.display()));
    if events_left_out > 0 {
        present::note(&format!(
            "note: {events_left_out} later events were left out; a smaller --size or a larger \
             --record makes fewer"
        ));
    }
    launch::combine_trials(scenario, &[trial])
}

/// The file at `path`, empty and ready to be written.
fn create(path: &Path) -> Result<File, LaunchError> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> LaunchError {
    LaunchError::new(
        ExitCode::Failed,
        format!("cannot write {}", path.display()),
        error.to_string(),
        "name a file in a folder that is there and that you may write",
    )
}

fn too_many(scenarios: &[Scenario]) -> LaunchError {
    LaunchError::usage(
        "a timeline shows one case",
        format!("patterns, records and strategies make {} cases", scenarios.len()),
        "say one of each, such as --pattern rb --record 8KiB --strategy disk-directed",
    )
}
