//! Ranks of a program on a real instance: a process for each carries out what the rank does, with
//! the client library. The parent is a replay, a bench or the demo.
//!
//! *Invariants:*
//! - Computations are made by a rank's own thread, which moves no messages meanwhile, as in
//!   a program of MPI.
//! - A process whose standard input ends leaves its group; in the middle of an order it ends at
//!   once, for its parent was killed.

mod bell;
mod case;
mod checks;
mod children;
mod messages;
mod process;
mod rank;
mod source;
mod spec;

pub use case::CaseSpec;
pub(crate) use case::{FileLife, SourceSpec, bytes_max, parse_pattern};
pub(crate) use children::Ranks;
pub(crate) use process::peak_bytes;
pub use process::run_rank;
pub(crate) use source::Source;
pub(crate) use spec::{Answer, CaseOrder, Order, RankSpec, Work};
