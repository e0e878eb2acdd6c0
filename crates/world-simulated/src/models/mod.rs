//! Models of the hardware of a simulated machine: one file for each thing.
//!
//! Invariants:
//!
//! - A model is a state machine from `(request, state)` to instants.
//! - It knows no file system, task or engine, and draws no random numbers: seeds and starting
//!   angles are parameters.
//! - All arithmetic is in integers, so a figure is the same on every host.
//! - A model receives the present instant and answers with a future one; its driver waits until
//!   then. The driver reports events in the order of their instants.

pub mod bus;
pub mod disk;
pub mod host;
mod model_info;
pub mod network;
mod parameter;
pub mod processor;

pub use disk::{
    analytic, disk_model, ideal, layout, mechanical, nvme_p5510, page_cache, request_queue,
    shared_medium, ssd,
};
pub use model_info::ModelInfo;
pub use parameter::{Parameter, ParameterValues, Unit};
