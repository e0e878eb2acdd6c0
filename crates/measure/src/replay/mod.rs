//! Replay of a program on a real instance: a process for each rank carries out what the rank did,
//! with the client library, as the program did.
//!
//! *Invariants:*
//! - Computations are made by a rank's own thread, which moves no messages meanwhile, as in
//!   a program of MPI.
//! - Files of the replay have names of their own, and are gone at its end.

mod messages;
mod parent;
mod process;
mod rank;
mod spec;

pub use parent::replay;
pub use process::replay_rank;
pub use program::RankReport;
pub use spec::{ReplayPlan, ReplayReport, ReplayRun};
