//! Plan, experiments and report of `bench tops`.

use super::limits::TopsLimits;
use interface::Failure;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::{KIB, MIB};

/// Names the form of the report.
pub(crate) const TOPS_SCHEMA: &str = "unisono.tops/3";

/// Parameters of the measurements.
#[derive(Clone, Debug)]
pub struct TopsPlan {
    /// Numbers of servers.
    pub servers: Vec<u32>,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Bytes of a page in the experiments that find all data in buffers.
    pub page_bytes: u64,
    /// Bytes of a page in the experiments that go to the disks.
    pub disk_page_bytes: u64,
    /// Pages that a client asks for at a time.
    pub pages: u64,
    /// Working time of the clients of one point, in seconds. A pass through a file takes as long as
    /// it takes.
    pub seconds: f64,
    /// Bytes of the file for each server, in the experiments with disks.
    pub disk_bytes: u64,
    /// Directory for the servers' data (default: the system's temporary directory).
    pub directory: Option<PathBuf>,
}

impl TopsPlan {
    /// Bytes of the file for one sequential pass in large pages.
    pub(super) fn long_bytes(&self) -> u64 {
        32 * self.pages * MIB
    }
}

impl Default for TopsPlan {
    /// Returns 1, 2, 4 and 8 servers and clients, and requests of 16 pages, as in the paper. With
    /// disks, pages have the paper's 8 KiB.
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
    /// Figure 5: pages that the servers have in their buffers, accessed in place and copied out.
    Figure5,
    /// Figure 6: buffered pages read through the library, into the client's buffers.
    Figure6,
    /// Figure 7: writes from the client's buffers to those of the servers.
    Figure7,
    /// Figure 8: ranges of pages at random places of a file on disks.
    Figure8,
    /// Figure 9: ranges of pages written at random places, each client in its part, stored after
    /// each range.
    Figure9,
    /// Figure 10: all clients share one pass through a file on disks.
    Figure10,
}

impl Figure {
    /// Returns the title of the experiment.
    pub fn title(self) -> &'static str {
        match self {
            Self::Table1 => "Table 1: the disk alone, without the page cache",
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
    /// Experiment to which the point belongs.
    pub figure: Figure,
    /// Line of the experiment: an access pattern of Table 1, or the servers' memory prefetch.
    pub line: String,
    /// Number of servers; 0 if there is none.
    pub servers: u32,
    /// Number of clients.
    pub clients: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Rate that all clients together observed, in 2^20 bytes a second.
    pub mib_s: f64,
}

/// Comparison of our rate with a limit, measured in turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopsGoal {
    /// Names of both sides of the comparison.
    pub name: String,
    /// Median of our rates, in 2^20 bytes a second.
    pub mib_s: f64,
    /// Median of the limits, in 2^20 bytes a second.
    pub limit_mib_s: f64,
    /// Median of the ratios of all turns, each our rate over the limit beside it.
    pub ratio: f64,
    /// Least ratio of a turn.
    pub ratio_min: f64,
    /// Greatest ratio of a turn.
    pub ratio_max: f64,
    /// Least ratio wanted, if the comparison is a goal.
    pub wanted: Option<f64>,
}

/// Report of all measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopsReport {
    /// `unisono.tops/3`.
    pub schema: String,
    /// Limits of the machine without our file system.
    pub limits: TopsLimits,
    /// Every measurement.
    pub points: Vec<TopsPoint>,
    /// Comparisons with limits and goals.
    pub goals: Vec<TopsGoal>,
}

/// Parameters of a client process, sent first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClientSpec {
    pub(super) instance: PathBuf,
    pub(super) rank: u32,
    pub(super) pool_bytes: u64,
}

/// Use of a file by a client.
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
    /// Writes ranges at random places of the client's part, and stores each.
    WriteRanges,
    /// Shares one pass through the file with the other clients, in turns.
    SharePass {
        /// True when servers read ahead for all clients of the pass.
        read_ahead: bool,
    },
}

/// Order to a client for one point. The client opens the file and answers, and begins at the next
/// line that it receives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) work: Work,
    pub(super) file: String,
    pub(super) clients: u32,
    pub(super) pages: u64,
    pub(super) seconds: f64,
}

/// Answer of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The client is ready to begin.
    Ready,
    /// The client has ended.
    Done {
        /// Bytes that it moved.
        bytes: u64,
        /// Time of the work, in seconds.
        seconds: f64,
    },
    /// The client failed.
    Failed(Failure),
}
