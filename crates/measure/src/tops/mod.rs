//! The experiments of Tower of Pizzas (section 3), on this machine: throughput of a striped file
//! for independent clients, from buffers and from disks, compared with the limits of the machine.
//!
//! Throughput is the sum of the clients' rates, as in the paper, in 2^20 bytes a second. Clients
//! check the head of each page and nothing else, unless stated otherwise.

mod client;
mod device;
mod goals;
mod limits;
mod run;
mod spec;
mod testbed;

pub use client::tops_client;
pub use limits::TopsLimits;
pub use run::tops;
pub use spec::{Figure, TopsPlan, TopsPoint, TopsReport};
