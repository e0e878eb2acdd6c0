//! A study and its runs.

use super::claims::{ClaimResult, check_claims};
use super::definition::{Definition, RowDefinition};
use super::row::{COOPERATIONS, StudyCell, StudyRow};
use interface::{Cooperation, UserError};
use serde::Serialize;
use simulate::{Progress, WorkloadTrial, simulate_workloads};

/// Results of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Paper, and its figures.
    pub source: &'static str,
    /// Differences from the paper, and values that the paper does not give.
    pub note: &'static str,
    /// Number of trials of each case.
    pub trials: u32,
    /// Rows.
    pub rows: Vec<StudyRow>,
    /// Claims of the paper.
    pub claims: Vec<ClaimResult>,
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
            for cooperation in COOPERATIONS {
                let mut scenario = row.scenario.clone();
                scenario.client_cache.cooperation = cooperation;
                scenario.trials = trials;
                cases.push((scenario, row.workload));
            }
        }
        let done = simulate_workloads(&cases, jobs, progress)?;
        let of_rows = done.chunks(COOPERATIONS.len());
        let rows: Vec<StudyRow> =
            self.rows.iter().zip(of_rows).map(|(row, trials)| row.result(trials)).collect();
        let claims = (self.claims)(&rows).into_iter();
        let claims = claims.map(|claim| claim.with_known(self.deviations)).collect();
        let Self { name, title, source, note, .. } = self;
        Ok(Study { name, title, source, note, trials, rows, claims })
    }
}

impl Study {
    /// Checks that every claim is about some row and holds, but in the rows that are known.
    ///
    /// # Errors
    /// The first claim that fails the check.
    pub fn check(&self) -> Result<(), UserError> {
        check_claims(self.name, &self.claims)
    }

    /// Panics unless the claims fail in exactly the listed rows.
    #[cfg(test)]
    pub(super) fn expect_exactly_the_deviations(&self, deviations: &[super::claims::Deviation]) {
        let text = super::study_text::study_text(self);
        assert!(self.claims.iter().all(ClaimResult::is_as_expected), "{text}");
        let known: usize = self.claims.iter().map(|claim| claim.known.len()).sum();
        let listed: usize = deviations.iter().map(|deviation| deviation.rows.len()).sum();
        assert_eq!(known, listed, "a listed row agrees with the paper now: {text}");
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
        let cells = COOPERATIONS.iter().zip(trials);
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
