//! Measurements of a real instance: client processes make collective transfers, and every byte is
//! checked.

mod limits;
mod run;
mod spec;

pub(crate) use limits::measure_copy;
pub use limits::measure_limits;
pub use run::bench;
pub(crate) use run::{Clients, Observed};
pub use spec::BenchPlan;
