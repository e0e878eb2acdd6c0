//! Published experiments: definition, simulation, comparison and presentation.
//!
//! An [`Experiment`] is data: points (a pattern, a record size, a layout, a value of the variable)
//! and methods. Each pair of both is one [`simulate::Scenario`]. [`run`] simulates all trials of
//! all cases from one queue, [`Comparison`] sets the results beside the published ones, and
//! [`text()`], [`markdown()`] and [`Folder`] present them.
//!
//! Invariant: published values are files in `published/`, never code.

mod anchors;
mod availability;
mod calibration;
mod catalogue;
mod compare;
mod defect;
mod files;
mod html;
mod improvement;
mod markdown;
mod markdown_table;
mod method;
mod notes;
mod page;
mod parquet_file;
mod plan;
mod published;
mod results;
mod rows;
mod scenarios;
mod select;
mod stats;
mod studies;
mod text;

pub use anchors::AnchorResult;
pub use availability::AvailableSummary;
pub use calibration::{Calibration, calibrate_1994};
pub use catalogue::{Axis, Experiment, Point, Processors, RaUnit};
pub use compare::{ColumnSummary, Comparison, OrderSummary};
pub use files::Folder;
pub use improvement::ImprovementRow;
pub use markdown::markdown;
pub use method::Method;
pub use published::{MeasuredLoad, measured_loads};
pub use results::{Cell, RatioCell, RowResult, Simulated, TrialResult};
pub use select::{Only, experiment_names, select};
pub use simulate::Progress;
pub use stats::{Improvement, Ratio, Sample};
pub use studies::{
    ClaimResult, ProgramStudy, ProgramStudyCell, ProgramStudyRow, ProtectionStudy,
    ProtectionStudyCell, ProtectionStudyRow, RecordStudy, RecordStudyCell, RecordStudyRow,
    STUDY_SCHEMA, Study, StudyCell, StudyReport, StudyRow, TableStudy, run_studies, study_names,
};
pub use text::text;

use interface::UserError;
use serde::Serialize;

/// Name of the JSON form of a [`Report`].
pub const REPRODUCE_SCHEMA: &str = "unisono.reproduce/1";

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of trials of each case, at least one. Trial n has seed n + 1 in every case, so that
    /// all cases have the same layouts, as in the papers.
    pub trials: u32,
    /// Number of threads that run trials, at least one.
    pub jobs: usize,
}

/// Output of `unisono reproduce --json`.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// Always [`REPRODUCE_SCHEMA`].
    pub schema: &'static str,
    /// Number of trials of each case.
    pub trials: u32,
    /// Experiments, in the order requested.
    pub experiments: &'a [Comparison],
}

impl<'a> Report<'a> {
    /// Returns the report of these experiments.
    pub fn new(trials: u32, experiments: &'a [Comparison]) -> Self {
        Self { schema: REPRODUCE_SCHEMA, trials, experiments }
    }
}

/// Runs experiments and compares each with its published values. The trials of all share one queue,
/// and a case of two experiments is simulated once. `progress` is called after each trial. The
/// result does not depend on the number of jobs.
///
/// # Errors
/// If a case cannot be simulated, or a simulation fails; then no further trial begins.
pub fn run(
    experiments: &[Experiment],
    options: Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Comparison>, UserError> {
    let plan = plan::Plan::new(experiments, options.trials)?;
    let done = plan.run(options.jobs, progress)?;
    experiments.iter().map(|experiment| Comparison::new(experiment, &done)).collect()
}
