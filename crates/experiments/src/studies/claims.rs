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
    /// The exceptions that are known: our system differs from that of the paper there.
    pub known: Vec<String>,
}

/// Rows in which a claim is known not to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Deviation {
    /// Claim.
    pub(super) claim: &'static str,
    /// Labels of the rows.
    pub(super) rows: &'static [&'static str],
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
            known: Vec::new(),
        }
    }

    /// Notes which exceptions are known.
    pub(super) fn with_known(mut self, deviations: &[Deviation]) -> Self {
        let is_known = |row: &&String| {
            deviations.iter().any(|it| it.claim == self.claim && it.rows.contains(&row.as_str()))
        };
        self.known = self.exceptions.iter().filter(is_known).cloned().collect();
        self
    }

    /// True if the claim is about some row, and holds in all of its rows.
    pub fn holds(&self) -> bool {
        self.rows > 0 && self.exceptions.is_empty()
    }

    /// True if the claim is about some row, and holds in all of its rows but the known ones.
    pub fn is_as_expected(&self) -> bool {
        self.rows > 0 && self.exceptions.len() == self.known.len()
    }
}
