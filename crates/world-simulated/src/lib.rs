//! A machine made of models, on which the file system's own code runs.
//!
//! [`Engine`] moves time; [`models`] know hardware and nothing else; [`Machine`] puts nodes,
//! processors, disks and a network together and gives each node its [`SimulatedWorld`].

mod contents;
mod device;
mod disk_queue;
mod engine;
mod faults;
mod flights;
mod look_ahead;
mod machine;
mod mechanism;
mod message_costs;
pub mod models;
mod prefetch;
mod queue;
mod regions;
mod timeline;
mod transport;
mod waker;
mod world;

pub use device::{DeviceConfig, LayoutKind, SimulatedDisk, StartAngle};
pub use engine::{Deadlock, Engine, Expire, Sleep, TaskHandle};
pub use faults::{Disruption, FaultPlan, PlannedFault};
pub use machine::{Machine, MachineConfig, MachineError, NodeConfig};
pub use mechanism::Mechanism;
pub use message_costs::{MessageCosts, Pieces};
pub use models::disk_model::{Activity, Phase};
pub use models::network::{
    FatTreeShape, LinkSpec, NetworkKind, NetworkSpec, TorusForm, TorusSize, UnfitNetwork,
};
pub use models::processor::Busy;
pub use models::request_queue::QueueKind;
pub use timeline::{Link, Mark, Recorder, SharedRecorder, Slice, Track, What};
pub use world::SimulatedWorld;
