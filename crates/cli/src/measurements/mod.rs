//! Commands that measure transfers of real servers.

pub(crate) mod bench;
mod bench_plot;
mod compute;
pub(crate) mod demo;
pub(crate) mod replay;
mod tops;
