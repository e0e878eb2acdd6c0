//! Simulated trials: the file system on a machine made of models.

mod availability;
mod queue;
mod run;
mod trial;
mod verify;
mod workload_queue;
mod workload_run;

pub use queue::{Observer, Progress, simulate, simulate_all, simulate_trials};
pub(crate) use trial::simulate_trial_recorded;
pub use trial::{Trial, combine_trials, simulate_trial};
pub(crate) use verify::Verify;
pub use workload_queue::simulate_workloads;
pub use workload_run::simulate_workload;
