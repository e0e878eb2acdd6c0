//! The experiments of Tower of Pizzas (section 3), on this machine: how much a striped file gives
//! to clients that work each for itself, from buffers and from disks, next to what the machine can
//! do.
//!
//! Throughput is the sum of what the clients observe, as in the paper, in 2^20 bytes a second.
//! Clients look at the head of each page and at nothing else, unless it says so.

mod client;
mod device;
mod goals;
mod limits;
mod run;
mod spec;
mod stand;

pub use client::tops_client;
pub use limits::TopsLimits;
pub use run::tops;
pub use spec::{Figure, TopsPlan, TopsPoint, TopsReport};
