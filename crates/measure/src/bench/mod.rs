//! Measurements of a real instance: client processes make collective transfers, and every byte is
//! checked.

mod client;
mod limits;
mod rank;
mod run;
mod source;
mod spec;

pub use client::bench_client;
pub(crate) use limits::measure_copy;
pub use limits::measure_limits;
pub(crate) use run::Clients;
pub use run::bench;
pub(crate) use source::Source;
pub use spec::{BenchPlan, CaseSpec};
pub(crate) use spec::{FileLife, SourceSpec, parse_pattern};
