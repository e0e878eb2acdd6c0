//! Comparison of an experiment with its published values, and measures of agreement.

use crate::anchors::{self, AnchorResult};
use crate::availability::AvailableSummary;
use crate::catalogue::{Axis, Experiment, Paper, Point, Processors, RaUnit, experiments};
use crate::improvement::{ImprovementRow, improvements};
use crate::method::Method;
use crate::plan::Done;
use crate::published::Throughputs;
use crate::results::{Cell, RowResult};
use crate::scenarios::FIRST_SEED;
use crate::stats::median;
use interface::UserError;
use serde::Serialize;

/// Errors within which cells are counted, in percent.
pub(crate) const WITHIN_PERCENT: [f64; 3] = [2.0, 10.0, 35.0];

/// Difference up to which published figures count as equal in the order of methods: the smallest of
/// [`WITHIN_PERCENT`].
const EQUAL_PERCENT: f64 = 2.0;

/// Results of one experiment beside the published ones.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Paper, and its table or figure.
    pub source: String,
    /// Paper.
    #[serde(skip)]
    pub(crate) paper: Paper,
    /// Table or figure in the paper.
    #[serde(skip)]
    pub(crate) place: &'static str,
    /// Simulated machine.
    pub machine: String,
    /// Variable.
    pub axis: Axis,
    /// Meaning of the throughput of `ra`.
    pub ra: RaUnit,
    /// Processor time that is shown.
    pub processors: Processors,
    /// Number of trials of each case.
    pub trials: u32,
    /// Seed of the first trial of each case.
    pub first_seed: u64,
    /// Note for readers; may be empty.
    pub note: &'static str,
    /// Methods, in the order shown.
    pub methods: Vec<Method>,
    /// Methods whose ratio is in each row: the first over the second.
    pub ratio: Option<(Method, Method)>,
    /// Rows.
    pub rows: Vec<RowResult>,
    /// Agreement of each method with published values.
    pub columns: Vec<ColumnSummary>,
    /// Agreement of processor time, for each method with published values.
    pub available: Vec<AvailableSummary>,
    /// Agreement of the order of methods; `None` without published values of two methods.
    pub order: Option<OrderSummary>,
    /// False if the user selected some of the rows.
    pub is_whole: bool,
    /// Improvement factors, if the experiment is about them and all rows are there.
    pub improvements: Vec<ImprovementRow>,
    /// Figures that the text states.
    pub anchors: Vec<AnchorResult>,
}

/// Agreement of the cells of a method with the published ones.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnSummary {
    /// Method.
    pub method: Method,
    /// Number of cells with both values.
    pub cells: usize,
    /// Median of the absolute errors, in percent.
    pub median_percent: f64,
    /// Error with the largest absolute value, in percent.
    pub worst_percent: f64,
    /// Row of the worst error.
    pub worst_row: String,
    /// Numbers of cells within 2, 10 and 35 percent.
    pub within: [usize; 3],
}

/// Agreement of the order of methods with the published one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderSummary {
    /// Number of rows in which every published difference has the right sign.
    pub right: usize,
    /// Number of rows in which published figures differ by more than 2 %.
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
        // The user may have selected rows; what a paper states is about all.
        let whole = whole(experiment);
        let is_whole = whole.points.len() == rows.len();
        Ok(Self {
            name: experiment.name,
            title: experiment.title,
            source: format!("{}, {}", experiment.paper.citation(), experiment.place),
            paper: experiment.paper,
            place: experiment.place,
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
            improvements: match experiment.improvement && is_whole {
                true => improvements(&rows)?,
                false => Vec::new(),
            },
            is_whole,
            anchors: anchors::compare(&whole, &rows)?,
            methods: experiment.methods.clone(),
            rows,
        })
    }

    /// Returns the table or figure, with the short name of its paper.
    pub(crate) fn short_source(&self) -> String {
        format!("{}, {}", self.paper.short_name(), self.place)
    }

    /// True if cells of rows are published.
    pub(crate) fn has_cells(&self) -> bool {
        !(self.columns.is_empty() && self.available.is_empty())
    }

    /// True if cells or improvement factors are published, not only figures in a text.
    pub(crate) fn is_tabulated(&self) -> bool {
        self.has_cells() || !self.improvements.is_empty()
    }

    /// True if any throughput of a method is published.
    pub(crate) fn is_published(&self, method: Method) -> bool {
        self.columns.iter().any(|column| column.method == method)
    }
}

/// The experiment without a selection of rows.
fn whole(experiment: &Experiment) -> Experiment {
    let is_it = |other: &Experiment| other.name == experiment.name;
    experiments().into_iter().find(is_it).unwrap_or_else(|| experiment.clone())
}

impl ColumnSummary {
    /// Summarises a method; `None` if no value of it is published, or none was simulated.
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
        let in_order: Vec<bool> = rows.iter().filter_map(order_is_right).collect();
        let right = in_order.iter().filter(|right| **right).count();
        (!in_order.is_empty()).then_some(Self { right, rows: in_order.len() })
    }
}

/// True if every pair of methods whose published figures differ has the published order; `None`
/// when none differ.
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
    //! Proves: errors, summaries and orders equal those of rows made by hand.
    use super::*;
    use crate::results::RatioCell;
    use crate::results::tests::row;
    use crate::stats::Ratio;

    /// Returns three rows of an experiment that is in none of the papers.
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
            paper: Paper::Tr94,
            place: "Table 0",
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
            is_whole: true,
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
