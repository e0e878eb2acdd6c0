//! Published values, from the files of `published/`.

use crate::catalogue::Point;
use crate::defect::defect;
use crate::method::Method;
use crate::stats::Improvement;
use interface::UserError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const TR94_TABLE4: &str = include_str!("../published/tr94_table4_contiguous.csv");
const CAI94_TABLE2: &str = include_str!("../published/cai94_table2.csv");
const CAI94_TABLE4: &str = include_str!("../published/cai94_table4.csv");
const TOCS97_TABLE3: &str = include_str!("../published/tocs97_table3.csv");
const ANCHORS: &str = include_str!("../published/anchors.csv");

/// Throughputs of one table or figure, by row.
#[derive(Default)]
pub(crate) struct Throughputs {
    rows: Vec<ThroughputRow>,
}

struct ThroughputRow {
    pattern: String,
    record_bytes: u64,
    values: Vec<(Method, f64)>,
    /// Percent of the servers' processor time that is left for a computation.
    available: Vec<(Method, f64)>,
    ratio: Option<f64>,
}

/// Row of the file of TR94-226, Table 4.
#[derive(Debug, Deserialize)]
struct Table4Row {
    pattern: String,
    record_bytes: u64,
    #[serde(rename = "tc_MBps")]
    caching: f64,
    #[serde(rename = "dd_MBps")]
    disk_directed: f64,
    #[serde(rename = "ratio_dd_tc")]
    ratio: f64,
}

/// Row of the file of TR94-232, Table 2.
#[derive(Debug, Deserialize)]
struct Table2Row {
    pattern: String,
    record_bytes: u64,
    #[serde(rename = "tc_MBps")]
    caching: f64,
    #[serde(rename = "tc_cpu_available_percent")]
    caching_available: f64,
    #[serde(rename = "dd_MBps")]
    disk_directed: f64,
    #[serde(rename = "dd_cpu_available_percent")]
    disk_directed_available: f64,
}

/// Row of the file of TR94-232, Table 4: a computation on workstations, one of which serves a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredLoad {
    /// The load; `none` for the computation alone.
    pub io_load: String,
    /// Execution time of the computation in seconds.
    pub execution_s: f64,
    /// Performance in percent of that without a load.
    pub efficiency_percent: Option<f64>,
}

/// Returns the loads of TR94-232, Table 4, that were measured on real workstations.
///
/// # Errors
/// Fails when the file that was built in is damaged.
pub fn measured_loads() -> Result<Vec<MeasuredLoad>, UserError> {
    parse("cai94_table4.csv", CAI94_TABLE4)
}

/// Row of the file of TOCS 1997, Table III.
#[derive(Debug, Deserialize)]
struct ImprovementLine {
    method: String,
    minimum: f64,
    geometric_mean: f64,
    maximum: f64,
}

/// Row of the file of anchors.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AnchorLine {
    pub(crate) experiment: String,
    pub(crate) name: String,
    pub(crate) statistic: String,
    pub(crate) method: String,
    pub(crate) over: String,
    pub(crate) patterns: String,
    pub(crate) layouts: String,
    pub(crate) values: String,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) unit: String,
    pub(crate) source: String,
    pub(crate) sentence: String,
}

impl Throughputs {
    /// Returns the values of an experiment; empty if none are printed as numbers.
    ///
    /// # Errors
    /// If a file of this crate is damaged.
    pub(crate) fn of(experiment: &str) -> Result<Self, UserError> {
        let rows = match experiment {
            "tr94-table4" => {
                let rows = parse::<Table4Row>("tr94_table4_contiguous.csv", TR94_TABLE4)?;
                rows.into_iter().map(ThroughputRow::from).collect()
            }
            "cai-table2" => {
                let rows = parse::<Table2Row>("cai94_table2.csv", CAI94_TABLE2)?;
                rows.into_iter().map(ThroughputRow::from).collect()
            }
            _ => Vec::new(),
        };
        Ok(Self { rows })
    }

    /// Returns the throughput of a row by a method, in 2^20 bytes a second.
    pub(crate) fn value(&self, point: &Point, method: Method) -> Option<f64> {
        find(&self.row(point)?.values, method)
    }

    /// Returns the share of the servers' processors that a row leaves, in percent.
    pub(crate) fn available(&self, point: &Point, method: Method) -> Option<f64> {
        find(&self.row(point)?.available, method)
    }

    /// Returns the printed ratio of a row.
    pub(crate) fn ratio(&self, point: &Point) -> Option<f64> {
        self.row(point)?.ratio
    }

    fn row(&self, point: &Point) -> Option<&ThroughputRow> {
        let is_it = |row: &&ThroughputRow| {
            let record = point.record_bytes.is_none_or(|bytes| bytes == row.record_bytes);
            row.pattern == point.pattern && record
        };
        self.rows.iter().find(is_it)
    }
}

fn find(values: &[(Method, f64)], method: Method) -> Option<f64> {
    values.iter().find(|(published, _)| *published == method).map(|(_, value)| *value)
}

impl From<Table4Row> for ThroughputRow {
    fn from(row: Table4Row) -> Self {
        Self {
            pattern: row.pattern,
            record_bytes: row.record_bytes,
            values: vec![(Method::Caching, row.caching), (Method::DiskDirected, row.disk_directed)],
            available: Vec::new(),
            ratio: Some(row.ratio),
        }
    }
}

impl From<Table2Row> for ThroughputRow {
    fn from(row: Table2Row) -> Self {
        let both = |caching, disk_directed| {
            vec![(Method::Caching, caching), (Method::DiskDirected, disk_directed)]
        };
        Self {
            pattern: row.pattern,
            record_bytes: row.record_bytes,
            values: both(row.caching, row.disk_directed),
            available: both(row.caching_available, row.disk_directed_available),
            ratio: None,
        }
    }
}

/// Returns the improvement factors of TOCS 1997, Table III.
///
/// # Errors
/// If a file of this crate is damaged.
pub(crate) fn improvements() -> Result<Vec<(Method, Improvement)>, UserError> {
    let file = "tocs97_table3.csv";
    let lines = parse::<ImprovementLine>(file, TOCS97_TABLE3)?;
    let read = |line: ImprovementLine| {
        let method = Method::parse(&line.method)
            .ok_or_else(|| defect(format!("{file}: no method is called {:?}", line.method)))?;
        let ImprovementLine { minimum, geometric_mean, maximum, .. } = line;
        Ok((method, Improvement { minimum, geometric_mean, maximum }))
    };
    lines.into_iter().map(read).collect()
}

/// Returns the figures that the text of the papers states about an experiment.
///
/// # Errors
/// If a file of this crate is damaged.
pub(crate) fn anchors(experiment: &str) -> Result<Vec<AnchorLine>, UserError> {
    let mut anchors = parse::<AnchorLine>("anchors.csv", ANCHORS)?;
    anchors.retain(|anchor| anchor.experiment == experiment);
    Ok(anchors)
}

fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, UserError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Result<Vec<T>, csv::Error> = reader.deserialize().collect();
    rows.map_err(|error| defect(format!("{file}: {error}")))
}

#[cfg(test)]
mod tests {
    //! Proves: every file parses, every row of it belongs to a row of an experiment, and cells are
    //! found where the papers print them.
    use super::*;
    use crate::catalogue::experiments;
    use crate::select::experiment_names;
    use simulate::LayoutName;

    fn point(pattern: &str, record_bytes: Option<u64>) -> Point {
        let (pattern, layout) = (pattern.to_owned(), LayoutName::CONTIGUOUS);
        Point { pattern, record_bytes, layout, value: None }
    }

    #[test]
    fn measured_loads_have_efficiencies() {
        let [alone, loads @ ..] = &measured_loads().unwrap()[..] else { panic!("it has rows") };
        assert_eq!((alone.io_load.as_str(), alone.efficiency_percent), ("none", None));
        assert_eq!(loads.len(), 4);
        for load in loads {
            let efficiency = alone.execution_s / load.execution_s * 100.0;
            let published = load.efficiency_percent.unwrap();
            assert!((efficiency - published).abs() < 0.1, "{load:?}");
        }
    }

    #[test]
    fn table_4_is_complete() {
        let published = Throughputs::of("tr94-table4").unwrap();
        let all = experiments();
        let table = all.iter().find(|experiment| experiment.name == "tr94-table4").unwrap();
        for point in &table.points {
            for &method in &table.methods {
                assert!(published.value(point, method).is_some(), "{point:?} {method}");
            }
            assert!(published.ratio(point).is_some(), "{point:?}");
        }
        assert_eq!(published.rows.len(), table.points.len());
    }

    #[test]
    fn cells_are_where_the_paper_has_them() {
        let published = Throughputs::of("tr94-table4").unwrap();
        let small = point("wbc", Some(8));
        assert_eq!(published.value(&small, Method::Caching), Some(0.8));
        assert_eq!(published.value(&small, Method::DiskDirected), Some(13.7));
        assert_eq!(published.ratio(&small), Some(18.2));
        assert_eq!(published.value(&small, Method::TwoPhase), None);
        assert_eq!(published.value(&point("ra", None), Method::Caching), Some(469.1));
        assert_eq!(published.value(&point("rc", Some(1024)), Method::Caching), None);
    }

    #[test]
    fn table_2_has_processors() {
        let published = Throughputs::of("cai-table2").unwrap();
        let hard_read = point("rbc", Some(8));
        assert_eq!(published.value(&hard_read, Method::DiskDirected), Some(16.2));
        assert_eq!(published.available(&hard_read, Method::DiskDirected), Some(3.4));
        assert_eq!(published.available(&hard_read, Method::Caching), Some(60.0));
        let all = experiments();
        let table = all.iter().find(|experiment| experiment.name == "cai-table2").unwrap();
        let has_both = |it: &Point| published.available(it, Method::Caching).is_some();
        assert!(table.points.iter().all(has_both));
    }

    #[test]
    fn improvements_and_anchors_parse() {
        let improvements = improvements().unwrap();
        assert_eq!(improvements.len(), 3);
        assert!(improvements.iter().all(|(_, factors)| factors.minimum <= factors.maximum));
        let all = parse::<AnchorLine>("anchors.csv", ANCHORS).unwrap();
        assert!(all.iter().all(|anchor| {
            experiment_names().contains(&anchor.experiment.as_str()) && !anchor.sentence.is_empty()
        }));
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let error = parse::<ImprovementLine>("x.csv", "method,minimum\na,b\n").unwrap_err();
        assert!(error.cause.starts_with("x.csv: "), "{error}");
    }
}
