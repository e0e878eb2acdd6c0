//! Experiments of the papers, as data.

mod cai94;
mod experiment;
mod list;
mod templates;

pub(crate) use experiment::Paper;
pub use experiment::{Axis, Experiment, Point, Processors, RaUnit};
pub(crate) use list::experiments;
