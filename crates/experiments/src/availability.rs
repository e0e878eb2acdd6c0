//! Agreement of simulated and published processor time that a transfer leaves to a computation.

use crate::method::Method;
use crate::results::RowResult;
use serde::Serialize;

/// Difference of shares of processor time up to which they agree, in percentage points.
pub(crate) const WITHIN_POINTS: f64 = 5.0;

/// Agreement of the cells of a method with the published ones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AvailableSummary {
    /// The method.
    pub method: Method,
    /// Number of cells with both values.
    pub cells: usize,
    /// Number of cells within five points.
    pub within: usize,
    /// Largest difference: simulated less published, in percentage points.
    pub worst_points: f64,
    /// Row of the largest difference.
    pub worst_row: String,
}

impl AvailableSummary {
    /// Summarises a method; `None` if no value of it is published, or none was simulated.
    pub(crate) fn of(method: Method, rows: &[RowResult]) -> Option<Self> {
        let difference = |row: &RowResult| {
            let published = row.cell(method)?.published_available_percent?;
            let simulated = row.availability(method)?.cpu_available_percent;
            Some((simulated - published, row.label()))
        };
        let differences: Vec<(f64, String)> = rows.iter().filter_map(difference).collect();
        let is_within = |(points, _): &&(f64, String)| points.abs() <= WITHIN_POINTS;
        let within = differences.iter().filter(is_within).count();
        let cells = differences.len();
        let by_size = |a: &(f64, String), b: &(f64, String)| a.0.abs().total_cmp(&b.0.abs());
        let (worst_points, worst_row) = differences.into_iter().max_by(by_size)?;
        Some(Self { method, cells, within, worst_points, worst_row })
    }

    /// Formats the summary as a sentence.
    pub(crate) fn line(&self) -> String {
        format!(
            "{}: processor time within {WITHIN_POINTS} points in {} of {} cells, worst {:+.1} ({})",
            self.method, self.within, self.cells, self.worst_points, self.worst_row,
        )
    }
}

#[cfg(test)]
mod tests {
    //! Proves: only rows with both values count, and the worst is the farthest on either side.
    use super::*;
    use crate::results::tests::row;
    use interface::Availability;

    fn row_with(pattern: &str, published: Option<f64>, simulated: f64) -> RowResult {
        let mut row = row(pattern, (1.0, 1.0), (1.0, 1.0));
        row.cells[0].published_available_percent = published;
        if let Some(cell) = &mut row.cells[0].simulated {
            cell.availability = Some(Availability {
                cpu_available_percent: simulated,
                cpu_usable_with_barriers_percent: simulated,
                cpu_busy_percent: 0.0,
                cpu_interruptions: 0.0,
            });
        }
        row
    }

    #[test]
    fn differences_are_summed_up() {
        let rows = [
            row_with("rb", Some(90.0), 95.0),
            row_with("rc", Some(60.0), 50.0),
            row_with("rn", None, 1.0),
        ];
        let summary = AvailableSummary::of(Method::Caching, &rows).unwrap();
        assert_eq!((summary.cells, summary.within), (2, 1));
        let expected =
            "caching: processor time within 5 points in 1 of 2 cells, worst -10.0 (rc 8192)";
        assert_eq!(summary.line(), expected);
        assert_eq!(AvailableSummary::of(Method::DiskDirected, &rows), None);
    }
}
