//! What a simulated machine is made of: plain data, which presets fill in and users may change.

use crate::disk::DiskName;
use crate::scenario::{MachineName, NetworkName};
use crate::simulated::machines;
use filesystem::Costs;
use filesystem::collective::Strategy;
use world_simulated::{MessageCosts, QueueKind, StartAngle};

/// All that makes up a machine and the file system on it, besides how many nodes there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The preset that it began as.
    pub preset: MachineName,
    /// Its disks.
    pub disk: DiskName,
    /// What connects its nodes.
    pub network: NetworkName,
    /// At which angle its disks start.
    pub start: StartAngle,
    /// Which of the requests that wait for a disk is next.
    pub queue: QueueKind,
    /// Commands of a read over its bus besides the first, where servers direct the transfer.
    pub directed_prefetch_commands: u32,
    /// Processor time of messages, and how pieces travel.
    pub messages: MessageCosts,
    /// Processor time of the file system's own work.
    pub costs: Costs,
    /// How far the cost of each piece of work varies.
    pub variation_percent: u32,
    /// Requests that one client has under way at one disk.
    pub outstanding_per_disk: u32,
    /// Blocks of cache for each client and disk.
    pub cache_blocks_per_client_and_disk: u32,
    /// Blocks that a collective holds for each disk.
    pub buffers_per_disk: u32,
    /// The strategies whose writes end when the data is on the medium; those of the others end
    /// when the disks have it. In the order of [`Strategy::ALL`], each once.
    pub waits_for_medium: Vec<Strategy>,
}

impl Machine {
    /// A preset as it is.
    pub fn of(preset: MachineName) -> Self {
        machines::preset(preset)
    }
}
