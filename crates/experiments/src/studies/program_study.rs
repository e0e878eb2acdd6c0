//! Studies of programs: a program in each row, a machine or a strategy in each column.

use super::claims::{ClaimResult, Deviation, Labelled};
use super::table_study::TableStudy;
use interface::UserError;
use serde::Serialize;
use simulate::{Point, Program, ProgramOutcome, Progress, Scenario, simulate_points};
use std::ops::ControlFlow;
use std::sync::Arc;
use trace::BtioProgram;

/// Results of a study of programs.
pub type ProgramStudy = TableStudy<ProgramStudyRow>;

/// Row of a study of programs.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramStudyRow {
    /// Description, unique in the study.
    pub label: String,
    /// Results, one for each column.
    pub cells: Vec<ProgramStudyCell>,
}

/// Means over the trials of one case.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramStudyCell {
    /// Simulated seconds from the first rank's begin to the last one's end.
    pub seconds: f64,
    /// Simulated seconds in calls of files, mean over the ranks.
    pub file_seconds: f64,
    /// Requests that the servers answered.
    pub requests: f64,
    /// Digest of each trial, in hexadecimal.
    pub digests: Vec<String>,
}

/// Definition of a study of programs.
pub(super) struct ProgramDefinition {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    pub(super) note: &'static str,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<ProgramRowDefinition>,
    pub(super) claims: fn(&[ProgramStudyRow]) -> Vec<ClaimResult>,
    /// Rows in which claims are known not to hold.
    pub(super) deviations: &'static [Deviation],
}

/// Definition of a row: a case for each column.
pub(super) struct ProgramRowDefinition {
    pub(super) label: String,
    pub(super) cases: Vec<(BtioProgram, Scenario)>,
}

impl ProgramDefinition {
    /// Simulates every case.
    pub(super) fn run(
        self,
        trials: u32,
        jobs: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<ProgramStudy, UserError> {
        let cases: usize = self.rows.iter().map(|row| row.cases.len()).sum();
        let (mut done, all) = (0, cases as u64 * u64::from(trials));
        let mut rows = Vec::new();
        for row in self.rows {
            let mut cells = Vec::new();
            for (program, scenario) in &row.cases {
                let program = Arc::new(Program::new(program.rank_traces()?)?);
                let points: Vec<Point> = (0..u64::from(trials))
                    .map(|trial| {
                        let seed = scenario.seed + trial;
                        Point {
                            values: Vec::new(),
                            scenario: Scenario { seed, ..scenario.clone() },
                        }
                    })
                    .collect();
                let observe = |of_case: usize| {
                    progress(Progress { done: done + of_case as u64, all });
                    ControlFlow::Continue(())
                };
                let outcomes = simulate_points(&points, &program, Some(jobs), &observe)?;
                done += u64::from(trials);
                cells.push(ProgramStudyCell::of(&outcomes));
            }
            rows.push(ProgramStudyRow { label: row.label, cells });
        }
        let claims = (self.claims)(&rows).into_iter();
        let claims = claims.map(|claim| claim.with_known(self.deviations)).collect();
        let Self { name, title, source, note, columns, .. } = self;
        Ok(ProgramStudy { name, title, source, note, trials, columns, rows, claims })
    }
}

impl ProgramStudyCell {
    fn of(outcomes: &[ProgramOutcome]) -> Self {
        let mean = |value: fn(&ProgramOutcome) -> f64| {
            outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
        };
        Self {
            seconds: mean(|outcome| outcome.seconds),
            file_seconds: mean(|outcome| {
                let of_ranks = outcome.ranks.iter().map(|rank| rank.file_seconds());
                of_ranks.sum::<f64>() / outcome.ranks.len().max(1) as f64
            }),
            requests: mean(|outcome| outcome.server_requests as f64),
            digests: outcomes.iter().map(|it| format!("{:016x}", it.digest)).collect(),
        }
    }
}

impl Labelled for ProgramStudyRow {
    fn label(&self) -> &str {
        &self.label
    }
}
