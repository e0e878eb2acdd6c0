//! An experiment as data: what is fixed, what is varied, by which methods.

use crate::method::Method;
use serde::Serialize;
use simulate::LayoutName;

/// Where an experiment was published, which decides the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paper {
    /// D. Kotz, Disk-directed I/O for MIMD Multiprocessors, Dartmouth PCS-TR94-226, 1994.
    Tr94,
    /// The same title, ACM Transactions on Computer Systems 15(1), 1997, pages 41-74.
    Tocs97,
    /// D. Kotz and T. Cai, Dartmouth PCS-TR94-232, 1994, revised 1995.
    Cai94,
}

impl Paper {
    /// How it is cited.
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

/// What differs between the points of an experiment, beside the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Nothing: the patterns are compared.
    Pattern,
    /// The number of clients.
    Clients,
    /// The number of servers, each with one bus; the disks are shared out among them.
    Servers,
    /// The number of disks of the only server, on one bus.
    Disks,
    /// The size of the file, in 2^20 bytes.
    FileMib,
    /// The size of a record, in bytes.
    RecordBytes,
}

impl Axis {
    /// The head of its column; nothing when nothing is varied.
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

/// What the throughput of pattern `ra` means, where every client reads the whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaUnit {
    /// Divided by the number of clients, as in all figures.
    Each,
    /// What all clients receive together, as in the tables of TR94-226.
    Together,
}

/// What is shown of the servers' processors, beside throughput.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// Nothing; it is not measured.
    Ignored,
    /// How much of them is left for a computation.
    Available,
    /// That, and how much of it is left when the computation has barriers.
    WithBarriers,
}

/// One row of an experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// The pattern, as the papers name it.
    pub pattern: String,
    /// Bytes of a record; `None` where the pattern does not depend on it.
    pub record_bytes: Option<u64>,
    /// How blocks lie on the disks.
    pub layout: LayoutName,
    /// The value of what the experiment varies, in the unit of its axis.
    pub value: Option<u32>,
}

/// One table or figure.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The table or figure.
    pub(crate) place: &'static str,
    /// Who published it.
    pub(crate) paper: Paper,
    /// What is varied.
    pub axis: Axis,
    /// How `ra` is counted.
    pub ra: RaUnit,
    /// What is shown of the servers' processors.
    pub processors: Processors,
    /// What is compared, in the order shown.
    pub methods: Vec<Method>,
    /// The two methods whose ratio is shown.
    pub(crate) ratio: Option<(Method, Method)>,
    /// Whether improvement factors over all rows are shown, as in TOCS 1997, Table III.
    pub(crate) improvement: bool,
    /// The rows.
    pub points: Vec<Point>,
    /// What a reader must know; may be empty.
    pub(crate) note: &'static str,
}
