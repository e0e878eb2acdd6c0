//! Computation on the cores of servers: the share of these cores that a load leaves to it, as D.
//! Kotz and T. Cai simulated and measured it ("Exploring the Use of I/O Nodes for Computation in a
//! MIMD Multiprocessor", Dartmouth PCS-TR94-232, 1994, sections 3 and 4).
//!
//! A thread for each server computes on that server's cores, with a lower priority. Its work during
//! the transfers of a load is divided by its work in the same time beside idle servers. Transfers
//! are told by clients, and the end of each piece of work by the threads, all by one clock: what
//! happens between transfers does not count.

mod computation;
mod cores;
mod kernel;
mod meeting;
mod progress;
mod report;
mod run;
mod simulated;

pub use cores::ComputeCores;
pub use report::{COMPUTE_SCHEMA, ComputeReport, ComputeRow, Share};
pub use run::{ComputePlan, compute};
