//! Studies whose results are a table: a case in each cell, and claims about the rows.

use super::claims::{ClaimResult, check_claims};
use interface::UserError;
use serde::Serialize;

/// Results of a study, with rows of the type `R`.
#[derive(Clone, Debug, Serialize)]
pub struct TableStudy<R> {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Paper, and its figures or section.
    pub source: &'static str,
    /// Differences from the paper, and values that the paper does not give.
    pub note: &'static str,
    /// Number of trials of each case.
    pub trials: u32,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<R>,
    /// Claims of the paper.
    pub claims: Vec<ClaimResult>,
}

impl<R> TableStudy<R> {
    /// Checks that every claim is about some row and holds, but in the rows that are known.
    ///
    /// # Errors
    /// The first claim that fails the check.
    pub fn check(&self) -> Result<(), UserError> {
        check_claims(self.name, &self.claims)
    }
}
