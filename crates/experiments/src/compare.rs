//! What was simulated beside what was published, row by row, and how well they agree.

use crate::anchors::{self, AnchorResult};
use crate::availability::AvailableSummary;
use crate::catalogue::{Axis, Experiment, Point, Processors, RaUnit};
use crate::improvement::{ImprovementRow, improvements};
use crate::method::Method;
use crate::published::Throughputs;
use crate::queue::Done;
use crate::scenarios::{FIRST_SEED, scenario};
use crate::stats::{Ratio, Sample, median};
use interface::{Availability, UserError};
use serde::Serialize;
use simulate::Trial;

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

/// One row: a pattern with everything that is fixed.
#[derive(Clone, Debug, Serialize)]
pub struct RowResult {
    /// The pattern.
    pub pattern: String,
    /// Bytes of a record; nothing where the pattern does not depend on it.
    pub record_bytes: Option<u64>,
    /// How blocks lie on the disks.
    pub layout: String,
    /// The value of what is varied.
    pub value: Option<u32>,
    /// Clients that take part.
    pub clients: u32,
    /// One cell for each method.
    pub cells: Vec<Cell>,
    /// The ratio of two methods.
    pub ratio: Option<RatioCell>,
}

/// What a method achieves in a row. Throughputs are in 2^20 bytes a second.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The method.
    pub method: Method,
    /// The published throughput.
    pub published: Option<f64>,
    /// What was simulated.
    pub simulated: Option<Simulated>,
    /// How far the simulated mean is from the published value, in percent of that.
    pub error_percent: Option<f64>,
    /// The published share of the servers' processor time that is left for a computation.
    pub published_available_percent: Option<f64>,
}

/// All trials of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// Mean and deviation of the throughput.
    #[serde(flatten)]
    pub sample: Sample,
    /// The deviation over the mean.
    pub coefficient_of_variation: f64,
    /// What was left of the servers' processors, where the experiment is about that.
    #[serde(flatten)]
    pub availability: Option<Availability>,
    /// Each trial.
    pub trials: Vec<TrialResult>,
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct TrialResult {
    /// Its seed.
    pub seed: u64,
    /// Simulated seconds of the transfer.
    pub seconds: f64,
    /// Throughput, in 2^20 bytes a second.
    pub mib_s: f64,
    /// Equal for equal simulations, in hexadecimal.
    pub digest: String,
    /// Events of the engine.
    pub events: u64,
    /// Real seconds of computing.
    pub host_seconds: f64,
    /// What was left of the servers' processors, where the experiment is about that.
    #[serde(flatten)]
    pub availability: Option<Availability>,
}

/// The ratio of two methods in a row.
#[derive(Clone, Debug, Serialize)]
pub struct RatioCell {
    /// The published ratio.
    pub published: Option<f64>,
    /// The ratio of the simulated means.
    pub simulated: Option<Ratio>,
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

impl RowResult {
    fn new(
        experiment: &Experiment,
        point: &Point,
        published: &Throughputs,
        done: &Done,
    ) -> Result<Self, UserError> {
        let mut cells = Vec::new();
        let mut clients = 0;
        for &method in &experiment.methods {
            let scenario = scenario(experiment, point, method, done.count)?;
            clients = scenario.clients;
            let simulated = Simulated::of(done.of(&scenario), experiment.ra);
            let published_available_percent = published.available(point, method);
            let published = published.value(point, method);
            let error_percent = published
                .zip(simulated.as_ref())
                .map(|(published, simulated)| (simulated.sample.mean / published - 1.0) * 100.0);
            cells.push(Cell {
                method,
                published,
                simulated,
                error_percent,
                published_available_percent,
            });
        }
        let mut row = Self {
            pattern: point.pattern.clone(),
            record_bytes: point.record_bytes,
            layout: point.layout.to_string(),
            value: point.value,
            clients,
            cells,
            ratio: None,
        };
        row.ratio = experiment.ratio.map(|(one, other)| {
            let both = row.sample(one).zip(row.sample(other));
            let simulated = both.map(|(one, other)| Ratio::of(&one, &other));
            RatioCell { published: published.ratio(point), simulated }
        });
        Ok(row)
    }

    /// The cell of a method, if the experiment is about it.
    pub(crate) fn cell(&self, method: Method) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.method == method)
    }

    /// What was simulated of a method, if anything.
    pub(crate) fn sample(&self, method: Method) -> Option<Sample> {
        Some(self.cell(method)?.simulated.as_ref()?.sample)
    }

    /// The simulated mean throughput of a method, in 2^20 bytes a second.
    pub(crate) fn simulated(&self, method: Method) -> Option<f64> {
        self.sample(method).map(|sample| sample.mean)
    }

    /// The simulated throughput of a method over that of another.
    pub(crate) fn ratio_of(&self, method: Method, over: Method) -> Option<f64> {
        self.simulated(method).zip(self.simulated(over)).map(|(one, other)| one / other)
    }

    /// What a method leaves of the servers' processors, if that was simulated.
    pub(crate) fn availability(&self, method: Method) -> Option<Availability> {
        self.cell(method)?.simulated.as_ref()?.availability
    }

    /// What names it among the rows of its experiment.
    pub(crate) fn label(&self) -> String {
        let mut label = self.pattern.clone();
        if let Some(bytes) = self.record_bytes {
            label.push_str(&format!(" {bytes}"));
        }
        if let Some(value) = self.value {
            label.push_str(&format!(" at {value}"));
        }
        label
    }
}

impl Simulated {
    fn of(trials: &[Trial], ra: RaUnit) -> Option<Self> {
        let result = |trial: &Trial| TrialResult {
            seed: trial.seed,
            seconds: trial.seconds,
            mib_s: match ra {
                RaUnit::Each => trial.mib_s,
                RaUnit::Together => trial.moved_mib_s,
            },
            digest: format!("{:016x}", trial.digest),
            events: trial.events,
            host_seconds: trial.host_seconds,
            availability: trial.availability,
        };
        let availability = Availability::mean(trials.iter().filter_map(|trial| trial.availability));
        let trials: Vec<TrialResult> = trials.iter().map(result).collect();
        let rates: Vec<f64> = trials.iter().map(|trial| trial.mib_s).collect();
        let sample = Sample::of(&rates)?;
        let coefficient_of_variation = sample.coefficient_of_variation();
        Some(Self { sample, coefficient_of_variation, availability, trials })
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

    /// A row of caching and disk-directed I/O, each with published and simulated throughput.
    pub(crate) fn row(pattern: &str, caching: (f64, f64), disk_directed: (f64, f64)) -> RowResult {
        let cell = |method, (published, mean): (f64, f64)| {
            let sample = Sample { count: 1, mean, deviation: 0.0 };
            let (seed, seconds, digest) = (1, 10.0 / mean, "00000000000000ff".to_owned());
            let (events, host_seconds, availability) = (7, 0.1, None);
            let mib_s = mean;
            let trial =
                TrialResult { seed, seconds, mib_s, digest, events, host_seconds, availability };
            Cell {
                method,
                published: Some(published),
                simulated: Some(Simulated {
                    sample,
                    coefficient_of_variation: 0.0,
                    availability,
                    trials: vec![trial],
                }),
                error_percent: Some((mean / published - 1.0) * 100.0),
                published_available_percent: None,
            }
        };
        RowResult {
            pattern: pattern.to_owned(),
            record_bytes: Some(8192),
            layout: "contiguous".to_owned(),
            value: None,
            clients: 16,
            cells: vec![cell(Method::Caching, caching), cell(Method::DiskDirected, disk_directed)],
            ratio: None,
        }
    }

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
