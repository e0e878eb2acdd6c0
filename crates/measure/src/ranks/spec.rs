//! Orders to the process of a rank, and its answers.

use super::case::{CaseSpec, FileLife, SourceSpec};
use crate::span::Span;
use interface::{CoreList, Failure};
use program::RankReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Parameters of the process of one rank, on the first line of its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RankSpec {
    pub(crate) instance: PathBuf,
    pub(crate) rank: u32,
    /// Bytes of a block of the files that the rank makes.
    pub(crate) block_bytes: u64,
    /// Cores that the process may use. `None`: any core.
    pub(crate) cores: Option<CoreList>,
    /// True if names of files are paths of ordinary files, on which the servers work there.
    #[serde(default)]
    pub(crate) in_place: bool,
    pub(crate) work: Work,
}

/// Programs that a rank carries out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Program of a trace. Ranks send messages over sockets.
    Trace {
        trace: PathBuf,
        /// Directory of the sockets.
        sockets: PathBuf,
        strategy: String,
        outstanding_per_disk: u32,
    },
    /// Programs of cases that are ordered. Ranks meet at the servers, as one group for all cases.
    Cases {
        group: u64,
        clients: u32,
        /// As [`crate::BenchPlan::client_host`].
        host: Option<String>,
    },
}

/// Order to the process of a rank, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Connect to the other ranks, all of which listen.
    Connect,
    /// Carry the program of the trace out.
    Run {
        /// Names of the files of this run, by the names that the program gave.
        names: BTreeMap<String, String>,
        /// Part of the names of groups, different in each run.
        run: String,
    },
    /// Measure a case.
    Measure(CaseOrder),
}

/// Case for a rank to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaseOrder {
    pub(crate) case: CaseSpec,
    /// The file to write or read.
    pub(crate) file: String,
    /// Source of the file's bytes, with which bytes that are read are compared.
    pub(crate) source: SourceSpec,
    /// Creation and removal of the file.
    pub(crate) life: FileLife,
    /// File in which to leave the memory after a read, for a caller that assembles the whole file.
    pub(crate) dump: Option<PathBuf>,
    /// Processes whose processor time the rank counts during its transfers: those of the servers.
    pub(crate) counted: Vec<u32>,
}

/// Answer of the process of a rank to its parameters, and to each order, on one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The rank is ready for an order.
    Ready,
    /// The program has ended.
    Ended(RankReport),
    /// Each transfer, from the barrier before it to its end; processor time of the counted
    /// processes in all transfers; and a description of the first byte of this rank that was wrong,
    /// if any.
    Measured {
        spans: Vec<Span>,
        counted_ns: u64,
        moved_bytes: u64,
        wrong: Option<String>,
        peak_bytes: u64,
    },
    /// Reason of the failure.
    Failed(Failure),
}
