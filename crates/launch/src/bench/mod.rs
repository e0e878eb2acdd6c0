//! Measurements of a real instance: client processes make collective transfers, and every byte is
//! checked.

mod client;
mod limits;
mod run;
mod source;
mod spec;

pub use client::bench_client;
pub use limits::Limits;
pub(crate) use limits::{measure_copy, peak_bytes};
pub(crate) use run::Clients;
pub use run::bench;
pub(crate) use source::Source;
pub use spec::{BenchPlan, CaseSpec};
pub(crate) use spec::{ClientSpec, FileLife, SourceSpec, parse_pattern};
