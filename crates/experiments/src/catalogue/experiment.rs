//! An experiment as data: what is fixed, what is varied, by which methods.

use crate::method::Method;
use serde::Serialize;
use simulate::LayoutName;

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
    /// Every paper.
    pub(crate) const ALL: [Self; 3] = [Self::Tr94, Self::Cai94, Self::Tocs97];

    /// Returns the name by which pages refer to the paper.
    pub(crate) fn short_name(self) -> &'static str {
        match self {
            Self::Tr94 => "TR94-226",
            Self::Cai94 => "TR94-232",
            Self::Tocs97 => "TOCS 1997",
        }
    }

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
