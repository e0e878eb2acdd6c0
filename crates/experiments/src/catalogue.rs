//! Experiments of the papers, as data.

mod cai94;

use crate::method::Method;
use launch::LayoutName;
use serde::Serialize;

/// Paper that an experiment is from, which decides the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paper {
    /// D. Kotz, Disk-directed I/O for MIMD Multiprocessors, Dartmouth PCS-TR94-226, 1994.
    Tr94,
    /// D. Kotz, Disk-directed I/O for MIMD Multiprocessors, ACM Transactions on Computer Systems
    /// 15(1), 1997, pages 41-74.
    Tocs97,
    /// D. Kotz and T. Cai, Dartmouth PCS-TR94-232, 1994, revised 1995.
    Cai94,
}

impl Paper {
    /// Returns the citation.
    pub(crate) fn citation(self) -> &'static str {
        match self {
            Self::Tr94 => {
                "D. Kotz, Disk-directed I/O for MIMD Multiprocessors, Dartmouth PCS-TR94-226, 1994"
            }
            Self::Cai94 => {
                "D. Kotz and T. Cai, Exploring the Use of I/O Nodes for Computation in a MIMD \
                 Multiprocessor, Dartmouth PCS-TR94-232, 1994 (revised 1995)"
            }
            Self::Tocs97 => {
                "D. Kotz, Disk-directed I/O for MIMD Multiprocessors, ACM TOCS 15(1), 1997"
            }
        }
    }
}

/// Variable that differs between the points of an experiment, beside the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// No variable: the patterns are compared.
    Pattern,
    /// Number of clients.
    Clients,
    /// Number of servers, each with one bus; the disks are distributed over them.
    Servers,
    /// Number of disks of the only server, on one bus.
    Disks,
    /// Size of the file, in 2^20 bytes.
    FileMib,
    /// Size of a record, in bytes.
    RecordBytes,
}

impl Axis {
    /// Returns the heading of its column; `None` when nothing varies.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Pattern => "",
            Self::Clients => "clients",
            Self::Servers => "servers",
            Self::Disks => "disks",
            Self::FileMib => "file MB",
            Self::RecordBytes => "record B",
        }
    }
}

/// Meaning of the throughput of pattern `ra`, where every client reads the whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaUnit {
    /// Throughput divided by the number of clients, as in all figures.
    Each,
    /// Sum over all clients, as in the tables of TR94-226.
    Together,
}

/// Processor time of the servers that is shown beside throughput.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// None; it is not measured.
    Ignored,
    /// Share that is left for a computation.
    Available,
    /// As `Available`, and the share that is left when the computation has barriers.
    WithBarriers,
}

/// One row of an experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Pattern, as the papers name it.
    pub pattern: String,
    /// Bytes of a record; `None` if the pattern does not depend on it.
    pub record_bytes: Option<u64>,
    /// Layout of blocks on the disks.
    pub layout: LayoutName,
    /// Value of the experiment's variable, in the unit of its axis.
    pub value: Option<u32>,
}

/// One table or figure.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Table or figure in the paper.
    pub(crate) place: &'static str,
    /// Paper that published it.
    pub(crate) paper: Paper,
    /// Variable.
    pub axis: Axis,
    /// Meaning of the throughput of `ra`.
    pub ra: RaUnit,
    /// Processor time that is shown.
    pub processors: Processors,
    /// Methods to compare, in the order shown.
    pub methods: Vec<Method>,
    /// Methods whose ratio is shown: the first over the second.
    pub(crate) ratio: Option<(Method, Method)>,
    /// True if improvement factors over all rows are shown, as in TOCS 1997, Table III.
    pub(crate) improvement: bool,
    /// Rows.
    pub points: Vec<Point>,
    /// Note for readers; may be empty.
    pub(crate) note: &'static str,
}

/// Bytes of the small record: one double-precision number.
const SMALL: u64 = 8;
/// Bytes of the large record: one block.
const LARGE: u64 = 8192;

/// Patterns whose chunks do not depend on the record: all, or nothing distributed.
const WITHOUT_RECORD: [&str; 3] = ["ra", "rn", "wn"];

/// Patterns of TOCS 1997, Table II, without direction and without those that are equal to others
/// (`nn`, `nc`, `bn`).
const DISTRIBUTIONS: [&str; 8] = ["b", "c", "nb", "bb", "cb", "bc", "cc", "cn"];

/// Patterns of the sensitivity experiments (TOCS 1997, section 6.1).
const SENSITIVITY: [&str; 4] = ["ra", "rn", "rb", "rc"];

const RECORDS_NOTE: &str = "ra, rn and wn do not depend on the size of a record.";
const PICTURE_NOTE: &str = "The published curves are a picture; only figures that the text of the \
    paper states are compared.";
const CHOSEN_NOTE: &str = "The published curves are a picture, and the values on its horizontal \
    axis are not in the text: those here are ours.";

fn point(pattern: &str, record_bytes: u64, layout: LayoutName, value: Option<u32>) -> Point {
    let record_bytes = (!WITHOUT_RECORD.contains(&pattern)).then_some(record_bytes);
    Point { pattern: pattern.to_owned(), record_bytes, layout, value }
}

/// Returns every pattern with records of one size: reads first, `ra` and `rn` or `wn` at the front.
fn every_pattern(record_bytes: u64, layout: LayoutName) -> Vec<Point> {
    let named = |prefix: &'static str| {
        DISTRIBUTIONS.iter().map(move |distribution| format!("{prefix}{distribution}"))
    };
    let reads = ["ra", "rn"].map(str::to_owned).into_iter().chain(named("r"));
    let writes = std::iter::once("wn".to_owned()).chain(named("w"));
    reads.chain(writes).map(|pattern| point(&pattern, record_bytes, layout, None)).collect()
}

/// Returns every pattern with records of both sizes, in the order of the tables of TR94-226.
fn both_records(layout: LayoutName) -> Vec<Point> {
    let small = every_pattern(SMALL, layout);
    let pairs = small.iter().zip(every_pattern(LARGE, layout));
    let both = pairs.flat_map(|(small, large)| match large.record_bytes {
        None => vec![large],
        Some(_) => vec![small.clone(), large],
    });
    both.collect()
}

/// Returns patterns with records of a block, at each value of the variable.
fn varied(patterns: &[&str], values: &[u32], layout: LayoutName) -> Vec<Point> {
    let at = |pattern: &&str| {
        let pattern = (*pattern).to_owned();
        values.iter().map(move |value| point(&pattern, LARGE, layout, Some(*value)))
    };
    patterns.iter().flat_map(at).collect()
}

/// Returns caching of cyclic records of several sizes, in both layouts (TOCS 1997, Figure 15: "We
/// also tried 1024-byte and 4096-byte records").
fn record_sizes() -> Vec<Point> {
    let layouts = [LayoutName::Contiguous, LayoutName::RandomBlocks];
    let at = |layout| {
        [8, 1024, 4096, 8192].map(|bytes| point("rc", u64::from(bytes), layout, Some(bytes)))
    };
    layouts.into_iter().flat_map(at).collect()
}

/// Returns some patterns in all three layouts (TOCS 1997, section 5: random tracks lie between).
fn layouts() -> Vec<Point> {
    let all = [LayoutName::Contiguous, LayoutName::RandomTracks, LayoutName::RandomBlocks];
    let patterns = ["rn", "rb", "rc", "wn", "wb", "wc"];
    let at = |pattern| all.map(|layout| point(pattern, LARGE, layout, None));
    patterns.into_iter().flat_map(at).collect()
}

/// Returns a table or figure of TOCS 1997 that compares all methods on every pattern.
fn patterns_1997(
    name: &'static str,
    title: &'static str,
    place: &'static str,
    points: Vec<Point>,
) -> Experiment {
    // Sorting has no effect when blocks lie in the order of the file.
    let methods = match points.iter().all(|point| point.layout == LayoutName::Contiguous) {
        true => vec![Method::Caching, Method::TwoPhase, Method::DiskDirected],
        false => Method::ALL.to_vec(),
    };
    Experiment {
        name,
        title,
        place,
        paper: Paper::Tocs97,
        axis: Axis::Pattern,
        ra: RaUnit::Each,
        processors: Processors::Ignored,
        methods,
        ratio: Some((Method::DiskDirected, Method::Caching)),
        improvement: false,
        points,
        note: PICTURE_NOTE,
    }
}

/// Returns a figure of TOCS 1997, section 6.1, with one variable.
fn sensitivity(
    name: &'static str,
    title: &'static str,
    place: &'static str,
    axis: Axis,
    points: Vec<Point>,
) -> Experiment {
    Experiment {
        axis,
        methods: vec![Method::Caching, Method::DiskDirected],
        note: CHOSEN_NOTE,
        ..patterns_1997(name, title, place, points)
    }
}

/// Returns a table of TR94-226.
fn table_1994(name: &'static str, title: &'static str, place: &'static str) -> Experiment {
    Experiment {
        paper: Paper::Tr94,
        ra: RaUnit::Together,
        note: RECORDS_NOTE,
        ..patterns_1997(name, title, place, Vec::new())
    }
}

/// Returns every experiment, in the order of the papers.
pub(crate) fn experiments() -> Vec<Experiment> {
    const CONTIGUOUS: LayoutName = LayoutName::Contiguous;
    const RANDOM: LayoutName = LayoutName::RandomBlocks;
    let mut all = experiments_1994().to_vec();
    all.extend(cai94::experiments());
    all.extend([
        patterns_1997(
            "tocs-fig4",
            "Every pattern, 8-byte records, random blocks",
            "Figure 4",
            every_pattern(SMALL, RANDOM),
        ),
        patterns_1997(
            "tocs-fig5",
            "Every pattern, 8192-byte records, random blocks",
            "Figure 5",
            every_pattern(LARGE, RANDOM),
        ),
        patterns_1997(
            "tocs-fig6",
            "Every pattern, 8-byte records, contiguous",
            "Figure 6",
            every_pattern(SMALL, CONTIGUOUS),
        ),
        patterns_1997(
            "tocs-fig7",
            "Every pattern, 8192-byte records, contiguous",
            "Figure 7",
            every_pattern(LARGE, CONTIGUOUS),
        ),
        Experiment {
            improvement: true,
            note: "Every case of Figures 4 to 7; ra, rn and wn, which do not depend on the size of \
                   a record, count once for each layout.",
            ..patterns_1997(
                "tocs-table3",
                "Performance relative to caching",
                "Table III",
                [both_records(CONTIGUOUS), both_records(RANDOM)].concat(),
            )
        },
    ]);
    all.extend(experiments_that_vary());
    all.push(Experiment {
        methods: vec![Method::Caching, Method::DiskDirected],
        note: "Random tracks are said to lie between the other layouts; no figure is printed.",
        ..patterns_1997("tocs-layouts", "The three layouts", "section 5", layouts())
    });
    all
}

fn experiments_1994() -> [Experiment; 2] {
    [
        Experiment {
            methods: vec![Method::Caching, Method::DiskDirected],
            points: both_records(LayoutName::Contiguous),
            ..table_1994("tr94-table4", "Every pattern, contiguous", "Table 4")
        },
        Experiment {
            methods: vec![Method::Caching, Method::DiskDirectedUnsorted, Method::DiskDirected],
            points: both_records(LayoutName::RandomBlocks),
            note: "The published table is kept back; only figures that the text of the report \
                   states are compared. ra, rn and wn do not depend on the size of a record.",
            ..table_1994("tr94-table3", "Every pattern, random blocks", "Table 3")
        },
    ]
}

/// Returns TOCS 1997, Figures 8 to 15: "the patterns ra, rn, rb, and rc with 8KB records".
fn experiments_that_vary() -> [Experiment; 8] {
    const CONTIGUOUS: LayoutName = LayoutName::Contiguous;
    const RANDOM: LayoutName = LayoutName::RandomBlocks;
    let powers = [1, 2, 4, 8, 16];
    let disks = [1, 2, 4, 8, 16, 32];
    let files = [10, 100, 1000];
    [
        sensitivity(
            "tocs-fig8",
            "Disk-directed I/O and caching, as the number of clients varies",
            "Figure 8",
            Axis::Clients,
            varied(&["ra", "rb", "rc"], &powers, CONTIGUOUS),
        ),
        Experiment {
            methods: vec![Method::Caching, Method::TwoPhase],
            ratio: Some((Method::TwoPhase, Method::Caching)),
            ..sensitivity(
                "tocs-fig9",
                "Two-phase I/O and caching, as the number of clients varies",
                "Figure 9",
                Axis::Clients,
                varied(&SENSITIVITY, &powers, CONTIGUOUS),
            )
        },
        sensitivity(
            "tocs-fig10",
            "The number of servers and buses varies; 16 disks, contiguous",
            "Figure 10",
            Axis::Servers,
            varied(&SENSITIVITY, &powers, CONTIGUOUS),
        ),
        sensitivity(
            "tocs-fig11",
            "The number of disks on one server and bus varies, contiguous",
            "Figure 11",
            Axis::Disks,
            varied(&SENSITIVITY, &disks, CONTIGUOUS),
        ),
        sensitivity(
            "tocs-fig12",
            "The number of disks on one server and bus varies, random blocks",
            "Figure 12",
            Axis::Disks,
            varied(&SENSITIVITY, &disks, RANDOM),
        ),
        Experiment {
            note: PICTURE_NOTE,
            ..sensitivity(
                "tocs-fig13",
                "The size of the file varies, contiguous",
                "Figure 13",
                Axis::FileMib,
                varied(&SENSITIVITY, &files, CONTIGUOUS),
            )
        },
        Experiment {
            note: PICTURE_NOTE,
            ..sensitivity(
                "tocs-fig14",
                "The size of the file varies, random blocks",
                "Figure 14",
                Axis::FileMib,
                varied(&SENSITIVITY, &files, RANDOM),
            )
        },
        Experiment {
            methods: vec![Method::Caching],
            ratio: None,
            note: PICTURE_NOTE,
            ..sensitivity(
                "tocs-fig15",
                "Caching of cyclic records of various sizes, in both layouts",
                "Figure 15",
                Axis::RecordBytes,
                record_sizes(),
            )
        },
    ]
}

#[cfg(test)]
mod tests {
    //! Proves: every experiment consists of scenarios that can be simulated, each once, and the
    //! tables have the rows that the papers print.
    use super::*;
    use crate::scenarios::scenario;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_makes_sense() {
        for experiment in experiments() {
            let points: Vec<String> =
                experiment.points.iter().map(|point| format!("{point:?}")).collect();
            let distinct: BTreeSet<&String> = points.iter().collect();
            assert_eq!(distinct.len(), points.len(), "{}", experiment.name);
            for point in &experiment.points {
                for &method in &experiment.methods {
                    let scenario = scenario(&experiment, point, method, 1).unwrap();
                    scenario.check().unwrap();
                }
            }
        }
    }

    #[test]
    fn tables_have_the_published_rows() {
        let rows = |name: &str| {
            experiments().into_iter().find(|experiment| experiment.name == name).unwrap().points
        };
        // Two rows for each of 8 distributions and 2 directions, and ra, rn, wn.
        assert_eq!(rows("tr94-table4").len(), 35);
        assert_eq!(rows("tocs-fig4").len(), 19);
        assert_eq!(rows("tocs-table3").len(), 70);
        assert_eq!(rows("tocs-fig11").len(), 24);
    }
}
