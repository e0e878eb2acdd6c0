//! The interface between a program and its machine.
//!
//! A *world* is the machine under one node (one server or one client): a simulated one made of
//! models, or a real one made of Linux. Programs in `filesystem` are written once against the small
//! capability traits here and never learn in which world they run. [`conformance`] is the suite
//! that every world must pass.
//!
//! Invariants of every world:
//!
//! - It is single-threaded: nothing here is `Send`.
//! - It owns all time, randomness, tasks and I/O.
//! - A dropped future has no further effect on the caller's data. The exception are one-sided
//!   transfers under way, which may still land in their region until it is withdrawn.

pub mod conformance;
mod disk;
mod memory;
mod network;
mod one_sided;
pub mod payload;
mod places;
mod records;
mod scope;
mod tasks;

pub use disk::{Damage, Disk, DiskError, Disks, ObjectMetadata, OrdinaryFile, Space};
pub use memory::{Memory, Payload, Payloads, crc_of_xor};
pub use network::{
    Address, HEADER_BYTES_MAX, Header, Incoming, Loan, Message, Network, NetworkError, Place,
};
pub use one_sided::{OneSided, TransferError};
pub use records::{RecordChange, RecordTable, Records, RecordsError};
pub use scope::Scope;
pub use tasks::{Clock, JobFailed, Processor, ProcessorTime, Randomness, Tasks};

/// All capabilities: the one bound that programs state.
///
/// A value is a cheap handle to one node; clones are handles to the same node.
pub trait World:
    Clock + Tasks + Processor + Randomness + Disks + Records + Network + OneSided + Clone
{
}

impl<W> World for W where
    W: Clock + Tasks + Processor + Randomness + Disks + Records + Network + OneSided + Clone
{
}
