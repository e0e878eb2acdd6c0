//! What was simulated beside what was published, row by row, and how well they agree.

use crate::anchors::{self, AnchorResult};
use crate::availability::AvailableSummary;
use crate::catalogue::{Axis, Experiment, Point, Processors, RaUnit};
use crate::improvement::{ImprovementRow, improvements};
use crate::method::Method;
use crate::published::Throughputs;
use crate::queue::Done;
use crate::results::{Cell, RowResult};
use crate::scenarios::FIRST_SEED;
use crate::stats::median;
use interface::UserError;
use serde::Serialize;

/// Errors within which cells are counted, in percent.
pub(crate) const WITHIN_PERCENT: [f64; 3] = [2.0, 10.0, 35.0];

/// Published figures that differ by no more than this are taken for equal when the order of methods
/// is judged: the closest of [`WITHIN_PERCENT`].
const EQUAL_PERCENT: f64 = 2.0;

/// One experiment, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it was published.
    pub source: String,
    /// The machine that was simulated.
    pub machine: String,
    /// What is varied.
    pub axis: Axis,
    /// How `ra` is counted.
    pub ra: RaUnit,
    /// What is shown of the servers' processors.
    pub processors: Processors,
    /// Trials of each case.
    pub trials: u32,
    /// Seed of the first trial of each case.
    pub first_seed: u64,
    /// What a reader must know; may be empty.
    pub note: &'static str,
    /// The methods, in the order shown.
    pub methods: Vec<Method>,
    /// The methods whose ratio is in each row: the first over the second.
    pub ratio: Option<(Method, Method)>,
    /// The rows.
    pub rows: Vec<RowResult>,
    /// How well each method agrees; only methods with published values.
    pub columns: Vec<ColumnSummary>,
    /// How well processor time agrees for each method; only methods with published values.
    pub available: Vec<AvailableSummary>,
    /// How well the order of methods agrees; nothing without published values of two methods.
    pub order: Option<OrderSummary>,
    /// Improvement factors, where the experiment is about them.
    pub improvements: Vec<ImprovementRow>,
    /// Figures that the text states.
    pub anchors: Vec<AnchorResult>,
}

/// How well the cells of a method agree with published ones.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnSummary {
    /// The method.
    pub method: Method,
    /// Cells with both values.
    pub cells: usize,
    /// The median of the errors' sizes, in percent.
    pub median_percent: f64,
    /// The error of the largest size, in percent.
    pub worst_percent: f64,
    /// The row it is in.
    pub worst_row: String,
    /// How many cells are within 2, 10 and 35 percent.
    pub within: [usize; 3],
}

/// In how many rows the methods come in the published order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderSummary {
    /// Rows in which every difference that is published has the right sign.
    pub right: usize,
    /// Rows in which published figures differ by more than 2 %.
    pub rows: usize,
}

impl Comparison {
    /// Compares an experiment whose trials are done.
    pub(crate) fn new(experiment: &Experiment, done: &Done) -> Result<Self, UserError> {
        let published = Throughputs::of(experiment.name)?;
        let row = |point: &Point| RowResult::new(experiment, point, &published, done);
        let rows: Vec<RowResult> =
            experiment.points.iter().map(row).collect::<Result<_, UserError>>()?;
        let methods = experiment.methods.iter().copied();
        Ok(Self {
            name: experiment.name,
            title: experiment.title,
            source: format!("{}, {}", experiment.paper.citation(), experiment.place),
            machine: experiment.paper.machine().to_string(),
            axis: experiment.axis,
            ra: experiment.ra,
            processors: experiment.processors,
            trials: done.count,
            first_seed: FIRST_SEED,
            note: experiment.note,
            ratio: experiment.ratio,
            available: methods
                .clone()
                .filter_map(|method| AvailableSummary::of(method, &rows))
                .collect(),
            columns: methods.filter_map(|method| ColumnSummary::of(method, &rows)).collect(),
            order: OrderSummary::of(&rows),
            improvements: if experiment.improvement { improvements(&rows)? } else { Vec::new() },
            anchors: anchors::compare(experiment.name, &rows)?,
            methods: experiment.methods.clone(),
            rows,
        })
    }

    /// Whether any throughput of a method is published.
    pub(crate) fn is_published(&self, method: Method) -> bool {
        self.columns.iter().any(|column| column.method == method)
    }
}

impl ColumnSummary {
    /// `None` when nothing is published of the method, or nothing was simulated.
    fn of(method: Method, rows: &[RowResult]) -> Option<Self> {
        let error = |row: &RowResult| Some((row.cell(method)?.error_percent?, row.label()));
        let errors: Vec<(f64, String)> = rows.iter().filter_map(error).collect();
        let sizes: Vec<f64> = errors.iter().map(|(error, _)| error.abs()).collect();
        let by_size = |a: &&(f64, String), b: &&(f64, String)| a.0.abs().total_cmp(&b.0.abs());
        let (worst_percent, worst_row) = errors.iter().max_by(by_size)?.clone();
        let within =
            WITHIN_PERCENT.map(|limit| sizes.iter().filter(|size| **size <= limit).count());
        let median_percent = median(&sizes)?;
        Some(Self { method, cells: errors.len(), median_percent, worst_percent, worst_row, within })
    }
}

impl OrderSummary {
    fn of(rows: &[RowResult]) -> Option<Self> {
        let verdicts: Vec<bool> = rows.iter().filter_map(order_is_right).collect();
        let right = verdicts.iter().filter(|right| **right).count();
        (!verdicts.is_empty()).then_some(Self { right, rows: verdicts.len() })
    }
}

/// Whether every pair of methods whose published figures differ comes in the published order;
/// `None` when none differ.
fn order_is_right(row: &RowResult) -> Option<bool> {
    let both = |cell: &Cell| Some((cell.published?, cell.simulated.as_ref()?.sample.mean));
    let cells: Vec<(f64, f64)> = row.cells.iter().filter_map(both).collect();
    let pairs = cells.iter().enumerate();
    let pairs = pairs.flat_map(|(index, one)| cells[index + 1..].iter().map(move |two| (one, two)));
    let differing = pairs.filter(|((one, _), (two, _))| {
        (one / two - 1.0).abs().max((two / one - 1.0).abs()) * 100.0 > EQUAL_PERCENT
    });
    let right: Vec<bool> =
        differing.map(|(one, two)| one.0.total_cmp(&two.0) == one.1.total_cmp(&two.1)).collect();
    (!right.is_empty()).then(|| right.iter().all(|right| *right))
}

#[cfg(test)]
pub(crate) mod tests {
    //! Proves: errors, summaries and orders against hand-made rows.
    use super::*;
    use crate::results::RatioCell;
    use crate::results::tests::row;
    use crate::stats::Ratio;

    /// Three rows of an experiment that is none of the papers'.
    pub(crate) fn comparison() -> Comparison {
        let mut rows = vec![
            row("rb", (10.0, 10.1), (30.0, 30.0)),
            row("rc", (10.0, 9.0), (30.0, 30.0)),
            row("rn", (10.0, 15.0), (30.0, 30.0)),
        ];
        let methods = vec![Method::Caching, Method::DiskDirected];
        for row in &mut rows {
            let both = row.sample(Method::DiskDirected).zip(row.sample(Method::Caching));
            let simulated = both.map(|(one, other)| Ratio::of(&one, &other));
            row.ratio = Some(RatioCell { published: None, simulated });
        }
        rows[0].ratio = Some(RatioCell { published: Some(3.0), simulated: None });
        Comparison {
            name: "made-up",
            title: "Three <rows>",
            source: "nobody".to_owned(),
            machine: "none".to_owned(),
            axis: Axis::Pattern,
            ra: RaUnit::Each,
            processors: Processors::Ignored,
            trials: 1,
            first_seed: FIRST_SEED,
            note: "",
            ratio: Some((Method::DiskDirected, Method::Caching)),
            columns: methods.iter().filter_map(|it| ColumnSummary::of(*it, &rows)).collect(),
            available: Vec::new(),
            order: OrderSummary::of(&rows),
            improvements: Vec::new(),
            anchors: Vec::new(),
            methods,
            rows,
        }
    }

    #[test]
    fn columns_are_summed_up() {
        let rows = comparison().rows;
        let summary = ColumnSummary::of(Method::Caching, &rows).unwrap();
        assert_eq!((summary.cells, summary.within), (3, [1, 2, 2]));
        assert!((summary.median_percent - 10.0).abs() < 1e-9);
        assert!((summary.worst_percent - 50.0).abs() < 1e-9);
        assert_eq!(summary.worst_row, "rn 8192");
        assert!(ColumnSummary::of(Method::Caching, &[]).is_none());
    }

    #[test]
    fn order_counts_only_published_differences() {
        let rows = [
            row("rb", (10.0, 29.0), (30.0, 30.0)),
            row("rc", (10.0, 31.0), (30.0, 30.0)),
            row("rn", (30.0, 10.0), (30.1, 9.0)),
        ];
        assert_eq!(OrderSummary::of(&rows), Some(OrderSummary { right: 1, rows: 2 }));
        assert_eq!(OrderSummary::of(&rows[2..]), None);
    }
}
