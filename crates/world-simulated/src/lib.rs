//! A machine made of models, on which the file system's own code runs.
//!
//! - [`engine`] moves time.
//! - [`models`] know hardware and nothing else.
//! - [`device`] adds a queue, a bus and contents to the model of a disk.
//! - [`machine`] puts nodes, processors, disks and a network together, and gives each node its
//!   [`SimulatedWorld`].
//! - [`timeline`] tells a recorder what happens on a machine.

mod device;
mod engine;
mod host_member;
mod machine;
pub mod models;
mod random;
mod timeline;

pub use device::{DiskConfig, SimulatedDisk, StartAngle};
pub use engine::{Deadlock, Engine, Sleep, TaskHandle, TimerHandler};
pub use machine::{
    DirectCopies, Disruption, FaultPlan, HostConfig, Machine, MachineConfig, MachineError,
    MessageCosts, NodeConfig, Pieces, PlannedFault, PutCopier, SimulatedWorld,
};
pub use models::disk::disk_model::{Activity, Phase};
pub use models::disk::layout::LayoutKind;
pub use models::disk::request_queue::QueueKind;
pub use models::disk::{DISKS, DiskDeclaration, DiskKind, DiskSpec};
pub use models::network::{
    LinkSpec, NETWORKS, NetworkDeclaration, NetworkKind, NetworkShape, NetworkSpec, UnfitNetwork,
};
pub use models::processor::Busy;
pub use models::{Parameter, ParameterValues};
pub use timeline::{Link, Mark, Recorder, SharedRecorder, Slice, Track, What};
