//! Simulations of scenarios.

use crate::waiting::wait;
use ::simulate::{Setting, SimulationPlan, simulate_all};
use client::UserError;
use interface::Row;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name and text of a scenario file.
type Source = (String, String);

/// Simulates points, each of a scenario file (or none) and an object of settings in JSON that
/// override it. Returns the rows of each point in JSON, as `unisono sim --json` has them. All
/// trials of all points run in parallel, on `jobs` threads (default: one for each processor),
/// without the lock of the interpreter. After an interrupt, no further trial begins.
#[pyfunction]
#[pyo3(signature = (source, points, jobs=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    source: Option<Source>,
    points: Vec<String>,
    jobs: Option<usize>,
) -> PyResult<Vec<String>> {
    let stop = StopAtEnd(Arc::new(AtomicBool::new(false)));
    let is_stopped = Arc::clone(&stop.0);
    let rows = wait(py, move || {
        let plans = points.iter().map(|settings| plan(source.as_ref(), settings));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let cases: Vec<_> = plans.iter().map(SimulationPlan::scenarios).collect();
        let report =
            simulate_all(&cases.concat(), jobs, &|_| match is_stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })?;
        let mut rows = report.results.into_iter();
        let of_each = cases.iter().map(|cases| rows.by_ref().take(cases.len()).collect());
        Ok(of_each.collect::<Vec<Vec<Row>>>())
    })?;
    rows.iter().map(in_json).collect()
}

/// Returns rows in JSON, with their fields in order.
fn in_json(rows: &Vec<Row>) -> PyResult<String> {
    serde_json::to_string(rows).map_err(|error| std::io::Error::other(error).into())
}

/// Ends the simulations that nobody waits for any more.
struct StopAtEnd(Arc<AtomicBool>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn plan(source: Option<&Source>, settings: &str) -> Result<SimulationPlan, UserError> {
    let settings: serde_json::Map<String, serde_json::Value> = serde_json::from_str(settings)
        .map_err(|error| {
            let help = "give names of keys, and numbers, words, or lists of such";
            UserError::usage("cannot read the settings of a scenario", error.to_string(), help)
        })?;
    let settings = settings.iter().map(|(name, value)| Setting::of_json(name, value));
    let settings = settings.collect::<Result<_, _>>()?;
    match source {
        Some((name, text)) => SimulationPlan::of_text(name, text, settings),
        None => SimulationPlan::of_options(settings),
    }
}
