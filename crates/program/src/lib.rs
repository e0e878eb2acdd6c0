//! Carries out what the ranks of a program did, on any machine: the replay of a trace.
//!
//! A [`Program`] is made of a checked trace. [`Program::run_rank`] performs the events of one rank
//! on a [`Rank`], which is either a process on real servers or a node of a simulated machine.
//!
//! *Invariants:*
//! - Recorded computation is done again; recorded waiting is not, it follows from what the rank
//!   waits for.
//! - Ranks meet only in messages and in files, so that a replay waits where the program waited.

mod collective;
mod extents;
mod limits;
mod made;
mod meeting;
mod rank;
mod report;
mod requests;
mod run;
mod streams;

pub use collective::{Step, steps_of};
pub use made::MadeRank;
pub use meeting::meet;
pub use rank::{Manner, Meeting, OpenedFile, Rank, Stream, Transfer};
pub use report::RankReport;
pub use run::Program;
