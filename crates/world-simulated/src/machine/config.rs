//! The configuration of a machine, and the reasons why one cannot be built.

use super::message_costs::MessageCosts;
use crate::device::DiskConfig;
use crate::models::layout::LayoutError;
use crate::models::network::{NetworkSpec, UnfitNetwork};

/// Everything that can be chosen about a machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// What each node has.
    pub nodes: Vec<NodeConfig>,
    /// Processor time of messages and one-sided transfers.
    pub messages: MessageCosts,
    /// What connects the nodes.
    pub network: NetworkSpec,
    /// What each disk is.
    pub disk: DiskConfig,
    /// Start of every random sequence.
    pub seed: u64,
}

/// Why there is no such machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    /// The blocks do not fit the disks.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The nodes do not fit the network.
    #[error(transparent)]
    Network(#[from] UnfitNetwork),
}

/// What one node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Disks on its one bus; none on a client.
    pub disks: u32,
    /// Speed of its processor: this many times …
    pub speed: u32,
    /// … over this, the speed of the reference processor.
    pub reference_speed: u32,
    /// How far each piece of work may differ from what it costs on average, in percent: drawn
    /// anew each time, every length within being as likely as another.
    pub variation_percent: u32,
    /// Whether to remember when its processor works: [`Machine::processor_trace`](crate::Machine::processor_trace).
    pub traced: bool,
}
