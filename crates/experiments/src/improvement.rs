//! Improvement factors over all rows of an experiment, as in TOCS 1997, Table III.

use crate::method::Method;
use crate::published;
use crate::results::RowResult;
use crate::stats::Improvement;
use interface::UserError;
use serde::Serialize;
use simulate::LayoutName;

/// Speed-up of a method over caching, over all rows.
#[derive(Clone, Debug, Serialize)]
pub struct ImprovementRow {
    /// Method.
    pub method: Method,
    /// Number of rows that were counted.
    pub rows: usize,
    /// Published factors.
    pub published: Improvement,
    /// Simulated factors; `None` if the method was not simulated.
    pub simulated: Option<Improvement>,
}

/// Returns the factors of every method that is published.
///
/// # Errors
/// If a file of this crate is damaged.
pub(crate) fn improvements(rows: &[RowResult]) -> Result<Vec<ImprovementRow>, UserError> {
    let row = |(method, published)| {
        let ratios: Vec<f64> = rows
            .iter()
            .filter(|row| counts(row, method))
            .filter_map(|row| row.ratio_of(method, Method::Caching))
            .collect();
        let simulated = Improvement::of(&ratios);
        ImprovementRow { method, rows: ratios.len(), published, simulated }
    };
    Ok(published::improvements()?.into_iter().map(row).collect())
}

/// True if a row counts for a method. "We include 'DDIO no sort' only for comparison [...]; these
/// numbers apply only to the random disk layout" (TOCS 1997, section 6).
fn counts(row: &RowResult, method: Method) -> bool {
    method != Method::DiskDirectedUnsorted || row.layout != LayoutName::CONTIGUOUS.to_string()
}
