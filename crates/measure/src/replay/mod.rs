//! Replay of a program on a real instance: a process for each rank carries out what the rank did,
//! with the client library, as the program did.
//!
//! *Invariant:* files of the replay have names of their own, and are gone at its end.

mod parent;
mod spec;

pub use parent::replay;
pub use program::RankReport;
pub use spec::{ReplayPlan, ReplayReport, ReplayRun};
