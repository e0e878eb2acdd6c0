//! Hints of MPI-IO: one table, and the hints of one file in force.
//!
//! [`HINTS`] is the table that the C interface and the command use. [`Hints`] are those of one
//! file. The environment comes first (`UNISONO_HINTS`, then `UNISONO_METHOD`), then the program's;
//! later ones win.
//!
//! *Invariants:*
//! - No hint vanishes: each that was set is in force, or rejected with a reason.
//! - A rejected hint changes nothing that is in force.

mod environment;
mod in_force;
mod table;
mod value;

pub use environment::hints_of_environment;
pub use in_force::{Hints, Verdict};
pub use table::{Form, HINTS, Hint, HintSite};
