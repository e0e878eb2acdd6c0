//! Copying files into an instance, out of it, and within it.
//!
//! Invariants: a target is there under its name when it is whole, never before; what fails half-way
//! leaves nothing behind; holes stay holes; what the servers hold at the end, read back from their
//! disks, has the checksums of what was copied.

mod check;
mod ends;
mod failure;
mod output;
mod part;
mod plan;
mod run;
mod verify;
mod worker;

pub use ends::STANDARD_STREAM;
pub use output::LocalOutput;
pub use plan::{CopyPlan, no_directory};
