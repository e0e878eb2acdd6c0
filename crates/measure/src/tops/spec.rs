//! What is measured, and what comes of it.

use super::limits::TopsLimits;
use interface::Failure;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::{KIB, MIB};

/// Names the form of the report.
pub(crate) const TOPS_SCHEMA: &str = "unisono.tops/3";

/// What to measure.
#[derive(Clone, Debug)]
pub struct TopsPlan {
    /// Numbers of servers.
    pub servers: Vec<u32>,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Bytes of a page in the experiments that find everything in buffers.
    pub page_bytes: u64,
    /// Bytes of a page in those that go to the disks.
    pub disk_page_bytes: u64,
    /// Pages that a client asks for at a time.
    pub pages: u64,
    /// How long the clients of one point work, in seconds; a pass through a file takes as long as
    /// it takes.
    pub seconds: f64,
    /// Bytes of the file for each server, in the experiments with disks.
    pub disk_bytes: u64,
    /// Where servers keep their data (default: the system's temporary directory).
    pub directory: Option<PathBuf>,
}

impl TopsPlan {
    /// Bytes of the file for one sequential pass in large pages.
    pub(super) fn long_bytes(&self) -> u64 {
        32 * self.pages * MIB
    }
}

impl Default for TopsPlan {
    /// 1, 2, 4 and 8 of each; requests of 16 pages, as in the paper, and of its 8 KiB where there
    /// are disks.
    fn default() -> Self {
        Self {
            servers: vec![1, 2, 4, 8],
            clients: vec![1, 2, 4, 8],
            page_bytes: 256 * KIB,
            disk_page_bytes: 8 * KIB,
            pages: 16,
            seconds: 0.5,
            disk_bytes: 64 * MIB,
            directory: None,
        }
    }
}

/// An experiment, by what it reproduces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Table 1: the file system under the servers, by itself.
    Table1,
    /// Figure 5: pages that the servers have in their buffers, seen in place and copied out.
    Figure5,
    /// Figure 6: the same bytes through the library, into the client's buffers.
    Figure6,
    /// Figure 7: the client's buffers to those of the servers.
    Figure7,
    /// Figure 8: ranges of pages at random places of a file on disks.
    Figure8,
    /// Figure 9: the same for writing, each client its part, stored after each range.
    Figure9,
    /// Figure 10: all clients share one pass through a file on disks.
    Figure10,
}

impl Figure {
    /// What it shows.
    pub fn title(self) -> &'static str {
        match self {
            Self::Table1 => "Table 1: the disk by itself, past the page cache",
            Self::Figure5 => "Figure 5: buffered read, pages in shared memory, copied out",
            Self::Figure6 => "Figure 6: buffered read through the library",
            Self::Figure7 => "Figure 7: buffered write",
            Self::Figure8 => "Figure 8: random ranges, read from disk",
            Self::Figure9 => "Figure 9: random ranges, written and stored",
            Self::Figure10 => "Figure 10: global sequential read from disk",
        }
    }
}

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopsPoint {
    /// Of which experiment.
    pub figure: Figure,
    /// Which of its lines: an access pattern of Table 1, or how servers read ahead.
    pub line: String,
    /// Servers; 0 where there is none.
    pub servers: u32,
    /// Clients.
    pub clients: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// What all clients together observed.
    pub mib_s: f64,
}

/// How close we come to something, measured in turns with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopsGoal {
    /// What is compared.
    pub name: String,
    /// The median of what we reach, in 2^20 bytes a second.
    pub mib_s: f64,
    /// The median of what it is compared with, in 2^20 bytes a second.
    pub limit_mib_s: f64,
    /// The median of the ratios of all turns, each one measurement over its neighbour.
    pub ratio: f64,
    /// The least of them.
    pub ratio_min: f64,
    /// The greatest.
    pub ratio_max: f64,
    /// What the ratio should be at least, if it is a goal.
    pub wanted: Option<f64>,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopsReport {
    /// `unisono.tops/3`.
    pub schema: String,
    /// What the machine can do without us.
    pub limits: TopsLimits,
    /// Every measurement.
    pub points: Vec<TopsPoint>,
    /// How close we come.
    pub goals: Vec<TopsGoal>,
}

/// What a client process is told first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClientSpec {
    pub(super) instance: PathBuf,
    pub(super) rank: u32,
    pub(super) pool_bytes: u64,
}

/// How a client uses a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// Pins pages and copies them out, again and again.
    CopyPages,
    /// Reads into buffers, again and again.
    Read,
    /// Writes buffers, again and again, without waiting for each.
    Write,
    /// Reads ranges at random places.
    ReadRanges,
    /// Writes ranges at random places of its part, and stores each.
    WriteRanges,
    /// Takes its turn with the others in one pass.
    SharePass {
        /// Whether servers read ahead for all of them.
        read_ahead: bool,
    },
}

/// What a client is told for each point. It opens the file and answers; told anything, it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) work: Work,
    pub(super) file: String,
    pub(super) clients: u32,
    pub(super) pages: u64,
    pub(super) seconds: f64,
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is ready to begin.
    Ready,
    /// It has ended.
    Done {
        /// What it moved.
        bytes: u64,
        /// How long it took.
        seconds: f64,
    },
    /// It could not.
    Failed(Failure),
}
