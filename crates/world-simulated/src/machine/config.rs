//! The configuration of a machine, and the reasons why one cannot be built.

use super::message_costs::MessageCosts;
use crate::device::DiskConfig;
use crate::models::layout::LayoutError;
use crate::models::network::{NetworkSpec, UnfitNetwork};
use std::ops::Range;

/// Configuration of a machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Configuration of each node.
    pub nodes: Vec<NodeConfig>,
    /// Computers whose cores several nodes share. Other nodes have a processor of their own.
    pub hosts: Vec<HostConfig>,
    /// Processor time of messages and one-sided transfers.
    pub messages: MessageCosts,
    /// Network between the nodes.
    pub network: NetworkSpec,
    /// Configuration of every disk.
    pub disk: DiskConfig,
    /// Seed of every random sequence.
    pub seed: u64,
}

/// Configuration of a computer that several nodes share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// Number of its cores, at least one.
    pub cores: u32,
    /// Nodes on it, with the threads of their disks. No node is on two hosts.
    pub nodes: Range<u32>,
}

/// Reason why a machine cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    /// The blocks do not fit the disks.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The nodes do not fit the network.
    #[error(transparent)]
    Network(#[from] UnfitNetwork),
}

/// Configuration of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Disks on its one bus; none on a client.
    pub disks: u32,
    /// Speed of its processor: numerator of the ratio to the reference processor.
    pub speed: u32,
    /// Speed of the reference processor: denominator of the ratio.
    pub reference_speed: u32,
    /// Largest deviation of each piece of work from its mean cost, in percent. It is drawn
    /// uniformly for each piece.
    pub variation_percent: u32,
    /// True to record the busy intervals of its processor
    /// ([`Machine::processor_trace`](crate::Machine::processor_trace)).
    pub traced: bool,
}
