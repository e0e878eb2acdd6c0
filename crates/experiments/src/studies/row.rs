//! Rows of a study.

use super::claims::Labelled;
use interface::Cooperation;
use serde::Serialize;
use simulate::WorkloadTrial;

/// Cooperations that the studies compare. N-chance is not in the paper.
pub(super) const COOPERATIONS: [Cooperation; 5] = [
    Cooperation::Base,
    Cooperation::GreedyForwarding,
    Cooperation::CentrallyCoordinated,
    Cooperation::GloballyManaged,
    Cooperation::NChance,
];

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
    /// Results, one for each cooperation.
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

impl StudyCell {
    pub(super) fn of(cooperation: Cooperation, trials: &[WorkloadTrial]) -> Self {
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
        let place = COOPERATIONS.iter().position(|it| *it == cooperation);
        &self.cells[place.expect("every study has every cooperation")]
    }
}

impl Labelled for StudyRow {
    fn label(&self) -> &str {
        &self.label
    }
}
