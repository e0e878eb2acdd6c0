//! Programs on simulated machines: the ranks of a trace as clients of simulated servers.
//!
//! [`simulate_program`] carries a [`Program`](::program::Program) out on the machine of a scenario,
//! whose clients are its ranks. [`mailbox`] has the messages between ranks, and [`rank`] what a
//! rank asks of the machine; [`points`] crosses lists of values.

mod mailbox;
mod points;
mod rank;
mod run;

pub use ::program::{Program, RankReport};
pub use points::{Axis, POINTS_MAX, Point, points, simulate_points};
pub(crate) use run::simulate_program_recorded;
pub use run::{ProgramOutcome, simulate_program};
