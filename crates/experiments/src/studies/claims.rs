//! Claims of a paper, as inequalities that are checked in each row.

use super::row::StudyRow;
use serde::Serialize;

/// A claim, and the rows in which it holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClaimResult {
    /// The claim, as an inequality.
    pub claim: String,
    /// Number of rows that it is about.
    pub rows: usize,
    /// Rows in which it does not hold.
    pub exceptions: Vec<String>,
}

impl ClaimResult {
    /// Checks a claim in the rows that it is about: those for which `holds` answers.
    pub(super) fn check(
        claim: impl Into<String>,
        rows: &[StudyRow],
        holds: impl Fn(&StudyRow) -> Option<bool>,
    ) -> Self {
        let answers: Vec<(&StudyRow, bool)> =
            rows.iter().filter_map(|row| Some((row, holds(row)?))).collect();
        let exceptions = answers.iter().filter(|(_, holds)| !holds);
        Self {
            claim: claim.into(),
            rows: answers.len(),
            exceptions: exceptions.map(|(row, _)| row.label.clone()).collect(),
        }
    }

    /// True if the claim holds in all of its rows.
    pub fn holds(&self) -> bool {
        self.exceptions.is_empty()
    }
}
