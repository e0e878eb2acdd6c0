//! Programs on simulated machines: the ranks of a trace as clients of simulated servers.
//!
//! [`simulate_program`] carries a [`Program`](::program::Program) out on the machine of a scenario,
//! whose clients are its ranks. [`points`] crosses lists of values.

mod points;
mod run;

pub use ::program::{Program, RankReport};
pub use points::{Axis, POINTS_MAX, Point, points, simulate_points};
pub(crate) use run::simulate_program_recorded;
pub use run::{ProgramOutcome, simulate_program};
