//! What a protection costs: one collective call on a file with it, written in one way or another,
//! or read, also without the data of a server.

mod case;
mod run;

pub use case::{ProtectedCall, ProtectedCase, ProtectedOutcome};
pub use run::simulate_protected;
