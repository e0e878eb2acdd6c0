//! What the simulated machine is made of: one file a thing, named by what it models.
//!
//! Every model is a state machine from `(request, state)` to instants. It knows no file system, no
//! task, no engine, and draws no random numbers: seeds and starting angles are given to it. All
//! arithmetic is in integers, so that a figure is the same on every host.
//!
//! A model is told the present and answers with a future instant; whoever drives it waits until
//! then. It must be told of events in the order of their instants.

pub mod analytic;
pub mod bus;
pub mod disk_model;
pub mod ideal;
pub mod layout;
pub mod mechanical;
pub mod network;
pub mod processor;
pub mod request_queue;
pub mod ssd;
