//! Simulated trials: the file system on a machine made of models.

mod all;
mod availability;
mod config;
mod run;
mod trial;
mod verify;

pub use all::simulate;
pub(crate) use trial::simulate_trial_recorded;
pub use trial::{Trial, combine_trials, simulate_trial};
