//! A study, its rows, and its runs.

use super::claims::ClaimResult;
use super::piosim_caches;
use interface::{Cooperation, UserError};
use serde::Serialize;
use simulate::{Progress, Scenario, Workload, WorkloadTrial, simulate_workloads};

/// Results of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Paper, and its figures.
    pub source: &'static str,
    /// What differs from the paper, and what the paper does not say.
    pub note: &'static str,
    /// Number of trials of each case.
    pub trials: u32,
    /// Rows.
    pub rows: Vec<StudyRow>,
    /// Claims of the paper.
    pub claims: Vec<ClaimResult>,
}

/// Row of a study: everything but the cooperation of the caches.
#[derive(Clone, Debug, Serialize)]
pub struct StudyRow {
    /// Description, unique in the study.
    pub label: String,
    /// Blocks that must be read from the disks at least once, if the workload reads a certain set.
    pub compulsory: Option<u64>,
    /// Blocks that the servers' caches and the coordinated parts of clients' caches hold.
    pub coordinated_blocks: u64,
    /// Blocks that the servers' caches hold.
    pub server_blocks: u64,
    /// Blocks that the cache of one client holds.
    pub client_blocks: u64,
    /// Results, in the order of [`piosim_caches::COOPERATIONS`].
    pub cells: Vec<StudyCell>,
}

/// Means over the trials of one case.
#[derive(Clone, Debug, Serialize)]
pub struct StudyCell {
    /// Name of the cooperation.
    pub cooperation: String,
    /// Simulated seconds.
    pub seconds: f64,
    /// Blocks read from disks.
    pub disk_reads: f64,
    /// Reads that the client's own cache answered.
    pub hits: f64,
    /// Blocks that other clients sent.
    pub from_clients: f64,
    /// Digest of each trial, in hexadecimal.
    pub digests: Vec<String>,
}

/// Definition of a study.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    pub(super) note: &'static str,
    pub(super) rows: Vec<RowDefinition>,
    pub(super) claims: fn(&[StudyRow]) -> Vec<ClaimResult>,
}

/// Definition of a row: a workload on a machine.
pub(super) struct RowDefinition {
    pub(super) label: String,
    pub(super) scenario: Scenario,
    pub(super) workload: Workload,
    pub(super) compulsory: Option<u64>,
}

/// Returns the name of every study.
pub fn study_names() -> Vec<&'static str> {
    piosim_caches::studies().iter().map(|study| study.name).collect()
}

/// Runs the studies of these names; others are ignored. `progress` is called after each trial. The
/// result does not depend on the number of jobs.
///
/// # Errors
/// If a case cannot be simulated, or a simulation fails.
pub fn run_studies(
    names: &[String],
    trials: u32,
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Study>, UserError> {
    let wanted = |study: &Definition| names.iter().any(|name| name == study.name);
    let studies = piosim_caches::studies().into_iter().filter(wanted);
    studies.map(|study| study.run(trials, jobs, progress)).collect()
}

impl Definition {
    /// Simulates every row with every cooperation.
    pub(super) fn run(
        self,
        trials: u32,
        jobs: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Study, UserError> {
        let mut cases = Vec::new();
        for row in &self.rows {
            for cooperation in piosim_caches::COOPERATIONS {
                let mut scenario = row.scenario.clone();
                scenario.client_cache.cooperation = cooperation;
                scenario.trials = trials;
                cases.push((scenario, row.workload));
            }
        }
        let done = simulate_workloads(&cases, jobs, progress)?;
        let of_rows = done.chunks(piosim_caches::COOPERATIONS.len());
        let rows: Vec<StudyRow> =
            self.rows.iter().zip(of_rows).map(|(row, trials)| row.result(trials)).collect();
        let claims = (self.claims)(&rows);
        let Self { name, title, source, note, .. } = self;
        Ok(Study { name, title, source, note, trials, rows, claims })
    }
}

impl RowDefinition {
    fn result(&self, trials: &[Vec<WorkloadTrial>]) -> StudyRow {
        let scenario = &self.scenario;
        let per_client = scenario.machine.cache_blocks_per_client_and_disk;
        let server_blocks =
            u64::from(per_client * scenario.clients * scenario.disks_per_server * scenario.servers);
        let mut coordinated = scenario.client_cache;
        coordinated.cooperation = Cooperation::CentrallyCoordinated;
        // Each server manages a whole number of blocks.
        let global = coordinated.global_lines() / scenario.servers * scenario.servers;
        let cells = piosim_caches::COOPERATIONS.iter().zip(trials);
        StudyRow {
            label: self.label.clone(),
            compulsory: self.compulsory,
            coordinated_blocks: server_blocks + u64::from(global * scenario.clients),
            server_blocks,
            client_blocks: scenario.client_cache.lines.into(),
            cells: cells.map(|(cooperation, trials)| StudyCell::of(*cooperation, trials)).collect(),
        }
    }
}

impl StudyCell {
    fn of(cooperation: Cooperation, trials: &[WorkloadTrial]) -> Self {
        let mean = |value: fn(&WorkloadTrial) -> f64| {
            trials.iter().map(value).sum::<f64>() / trials.len().max(1) as f64
        };
        Self {
            cooperation: cooperation.to_string(),
            seconds: mean(|trial| trial.seconds),
            disk_reads: mean(|trial| trial.disk_reads as f64),
            hits: mean(|trial| trial.hits as f64),
            from_clients: mean(|trial| trial.from_clients as f64),
            digests: trials.iter().map(|trial| format!("{:016x}", trial.digest)).collect(),
        }
    }
}

impl StudyRow {
    /// Returns the result of a cooperation.
    ///
    /// # Panics
    /// Panics if no study has it.
    pub(super) fn of(&self, cooperation: Cooperation) -> &StudyCell {
        let place = piosim_caches::COOPERATIONS.iter().position(|it| *it == cooperation);
        &self.cells[place.expect("every study has every cooperation")]
    }
}
