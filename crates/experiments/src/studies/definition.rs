//! Definition of a study.

use super::claims::{ClaimResult, Deviation};
use super::row::StudyRow;
use simulate::{Scenario, Workload};

/// Definition of a study.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    pub(super) note: &'static str,
    pub(super) rows: Vec<RowDefinition>,
    pub(super) claims: fn(&[StudyRow]) -> Vec<ClaimResult>,
    /// Rows in which claims are known not to hold.
    pub(super) deviations: &'static [Deviation],
}

/// Definition of a row: a workload on a machine.
pub(super) struct RowDefinition {
    pub(super) label: String,
    pub(super) scenario: Scenario,
    pub(super) workload: Workload,
    pub(super) compulsory: Option<u64>,
}
