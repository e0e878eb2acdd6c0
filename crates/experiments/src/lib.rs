//! The published experiments: what to run, how to compare, how to show it.
//!
//! An [`Experiment`] is data: points (a pattern, a record size, a layout, the value of what is
//! varied) and methods, each pair of which is one [`simulate::Scenario`]. [`run`] simulates every
//! trial of every case from one queue, [`Comparison`] sets the result beside what was published,
//! and [`text()`] and [`Folder`] show it. Published values are files in `published/`, never code.

mod anchors;
mod availability;
mod calibration;
mod catalogue;
mod compare;
mod defect;
mod files;
mod html;
mod improvement;
mod method;
mod page;
mod parquet_file;
mod published;
mod queue;
mod results;
mod rows;
mod scenarios;
mod select;
mod stats;
mod text;

pub use anchors::AnchorResult;
pub use availability::AvailableSummary;
pub use calibration::{Calibration, calibrate_1994};
pub use catalogue::{Axis, Experiment, Point, Processors, RaUnit};
pub use compare::{ColumnSummary, Comparison, OrderSummary};
pub use files::Folder;
pub use improvement::ImprovementRow;
pub use method::Method;
pub use queue::Progress;
pub use results::{Cell, RatioCell, RowResult, Simulated, TrialResult};
pub use select::{Only, experiment_names, select};
pub use stats::{Improvement, Ratio, Sample};
pub use text::text;

use interface::UserError;
use serde::Serialize;

/// Names the form of a [`Report`].
pub const REPRODUCE_SCHEMA: &str = "unisono.reproduce/1";

/// How to run experiments.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Trials of each case, at least one. Trial n has seed n + 1 in every case, so that all cases
    /// meet the same layouts, as in the papers.
    pub trials: u32,
    /// Threads that run trials, at least one.
    pub jobs: usize,
}

/// What `unisono reproduce --json` prints.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// [`REPRODUCE_SCHEMA`].
    pub schema: &'static str,
    /// Trials of each case.
    pub trials: u32,
    /// Each experiment, in the order asked for.
    pub experiments: &'a [Comparison],
}

impl<'a> Report<'a> {
    /// The report of these experiments.
    pub fn new(trials: u32, experiments: &'a [Comparison]) -> Self {
        Self { schema: REPRODUCE_SCHEMA, trials, experiments }
    }
}

/// Runs experiments and compares each with what was published. The trials of all of them go through
/// one queue, and a case that two of them share is simulated once. `progress` hears of each trial
/// that has ended. The result is the same whatever the number of jobs.
///
/// # Errors
/// When a case cannot be simulated, or a simulation fails; then nothing more is begun.
pub fn run(
    experiments: &[Experiment],
    options: Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Comparison>, UserError> {
    let plan = queue::Plan::new(experiments, options.trials)?;
    let done = plan.run(options.jobs, progress)?;
    experiments.iter().map(|experiment| Comparison::new(experiment, &done)).collect()
}
