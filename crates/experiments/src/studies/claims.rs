//! Claims of a paper, as inequalities that are checked in each row.

use interface::{ExitCode, UserError};
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

/// Row of a study.
pub(super) trait Labelled {
    /// Description, unique in the study.
    fn label(&self) -> &str;
}

impl ClaimResult {
    /// Checks a claim in the rows that it is about: those for which `holds` answers.
    pub(super) fn check<R: Labelled>(
        claim: impl Into<String>,
        rows: &[R],
        holds: impl Fn(&R) -> Option<bool>,
    ) -> Self {
        let mut result =
            Self { claim: claim.into(), rows: 0, exceptions: Vec::new(), known: Vec::new() };
        for (row, holds) in rows.iter().filter_map(|row| Some((row, holds(row)?))) {
            result.rows += 1;
            if !holds {
                result.exceptions.push(row.label().to_owned());
            }
        }
        result
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

/// Checks that every claim of a study is about some row and holds, but in the rows that are known.
///
/// # Errors
/// The first claim that fails the check.
pub(super) fn check_claims(study: &str, claims: &[ClaimResult]) -> Result<(), UserError> {
    let unexpected = |claim: &&ClaimResult| !claim.is_as_expected();
    let Some(claim) = claims.iter().find(unexpected) else { return Ok(()) };
    let new = claim.exceptions.iter().filter(|row| !claim.known.contains(row));
    let new: Vec<&str> = new.map(String::as_str).collect();
    let cause = match claim.rows {
        0 => format!("{:?} is about no row", claim.claim),
        _ => format!("{:?} does not hold in: {}", claim.claim, new.join("; ")),
    };
    Err(UserError::new(
        ExitCode::Failed,
        format!("a claim of the study {study} does not hold"),
        cause,
        "compare with the claims above; a few trials may differ from the usual five",
    ))
}
