//! Simulations: a scenario in, a report or a timeline out.
//!
//! [`SimulationPlan`] makes scenarios from a preset, a scenario file and options. [`simulate_all`]
//! runs the trials of [`Scenario`]s on machines made of models. [`trace_trial`] and [`follow_head`]
//! record one trial, and [`demerit`] compares a disk model with a trace of the disk. A program adds
//! disk models and networks of its own by [`OwnModels`]; [`models`] has their interfaces.
//!
//! *Invariants:*
//! - This is the only crate that puts the simulated world under the file system.
//! - Results follow from the scenario and its seed; they do not depend on the number of threads.
//! - Nothing here knows a real server, a socket or a clock.

mod cluster_preset;
mod demerit;
mod disk;
mod fitted;
mod machine;
mod memory;
pub mod models;
mod names;
mod network_name;
mod own_models;
mod plan;
mod presets;
mod program;
mod protected;
mod ranks;
mod records;
mod scenario;
mod timeline;
mod trials;
mod workload;

pub use demerit::{Demerit, DemeritPlan, demerit};
pub use disk::DiskName;
pub use fitted::FittedCosts;
pub use machine::{Machine, Network};
pub use names::{LayoutName, MachineName, ReadAhead};
pub use network_name::NetworkName;
pub use own_models::{BrokenModel, ModelName, OwnModels};
pub use plan::{Setting, SimulationPlan, scenarios_page};
pub use program::{
    Axis, POINTS_MAX, Point, Program, ProgramOutcome, RankReport, points, simulate_points,
    simulate_program,
};
pub use protected::{ProtectedCall, ProtectedCase, ProtectedOutcome, simulate_protected};
pub use records::{RecordCase, RecordDelivery, RecordOutcome, simulate_records};
pub use scenario::Scenario;
pub use timeline::{
    Activity, HeadMotion, HeadPath, TraceSummary, check_disk, follow_head, trace_program,
    trace_trial,
};
pub use trials::{
    Observer, Progress, Trial, combine_trials, simulate, simulate_all, simulate_trial,
    simulate_trials, simulate_workload, simulate_workloads,
};
pub use workload::{ColumnReads, Workload, WorkloadTrial};
