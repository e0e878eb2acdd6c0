//! Parts of a simulated machine: plain data that presets fill in and users may change.

use crate::disk::DiskName;
use crate::names::MachineName;
use crate::network_name::NetworkName;
use crate::own_models::OwnModels;
use filesystem::Costs;
use filesystem::collective::Strategy;
use interface::UserError;
use units::{Duration, KIB, MIB};
use world_simulated::{
    LinkSpec, MessageCosts, NetworkSpec, ParameterValues, QueueKind, StartAngle,
};

/// Parameters of a machine and of the file system on it, except the number of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Preset from which the parameters began.
    pub preset: MachineName,
    /// Its disks.
    pub disk: DiskName,
    /// Network between the nodes.
    pub network: Network,
    /// Angle at which the disks start.
    pub start: StartAngle,
    /// Order in which a disk serves its waiting requests.
    pub queue: QueueKind,
    /// Bus commands with which a directed read has the disk fetch a block into its buffer before it
    /// asks for the data.
    pub directed_prefetch_commands: u32,
    /// Processor time of messages, and how pieces travel.
    pub messages: MessageCosts,
    /// Processor time of the file system's own work.
    pub costs: Costs,
    /// Unix time at which the parameters were measured on the machine that they describe; 0 if they
    /// were not.
    pub calibrated_at: u64,
    /// Variation of the cost of each piece of work, in percent.
    pub variation_percent: u32,
    /// Cores of one host that all nodes and the threads of their disks share; 0 if each has a
    /// processor of its own.
    pub shared_cores: u32,
    /// Processor time of a client for each call of a program: the hand-over between its thread and
    /// the one that moves data.
    pub call: Duration,
    /// Processor time of a client to connect to the servers with its program's first file call.
    pub connect: Duration,
    /// Requests that one client has under way at one disk.
    pub outstanding_per_disk: u32,
    /// Blocks of cache for each client and disk.
    pub cache_blocks_per_client_and_disk: u32,
    /// Bytes of the cache of each server; 0 if they follow from the blocks for each client and
    /// disk.
    pub cache_bytes: u64,
    /// Dirty high-water mark, in percent of a cache. Above it the oldest dirty blocks are written
    /// back.
    pub cache_dirty_percent: u32,
    /// Buffers of a collective transfer for each disk, in blocks.
    pub buffers_per_disk: u32,
    /// Strategies whose writes end when the data is on the medium; writes of the others end when
    /// the disks have the data. In the order of [`Strategy::ALL`], each once.
    pub waits_for_medium: Vec<Strategy>,
}

impl Machine {
    /// Bytes of a block on this machine, unless a scenario says otherwise: 8 KiB as in the papers,
    /// and 1 MiB on a cluster of today, which is the default of the servers. There a request has
    /// costs of its own that blocks of 8 KiB would not pay back.
    pub(crate) fn default_block_bytes(&self) -> u64 {
        match self.preset {
            MachineName::Cluster => MIB,
            MachineName::Tr94
            | MachineName::Tocs97
            | MachineName::Ideal
            | MachineName::ThisMachine => 8 * KIB,
        }
    }

    /// True if servers are those of today, in whose cache the ends of files and of collective calls
    /// stay. Figures of the papers' machines depend on it.
    pub(crate) fn caches_ends(&self) -> bool {
        match self.preset {
            MachineName::Cluster | MachineName::ThisMachine => true,
            MachineName::Tr94 | MachineName::Tocs97 | MachineName::Ideal => false,
        }
    }

    /// True if its parameters were measured on the machine that it describes.
    pub fn is_calibrated(&self) -> bool {
        self.calibrated_at > 0
    }
}

/// Network that connects the nodes of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// Kind of network.
    pub name: NetworkName,
    /// Bandwidth of a link in each direction, in bytes a second.
    pub bytes_per_second: u64,
    /// Time that the head of a message takes from one router or switch to the next.
    pub hop: Duration,
    /// Parameters of the built-in kinds of networks.
    pub parameters: ParameterValues,
}

impl Network {
    /// Returns the specification of the network.
    ///
    /// # Errors
    /// Fails when the program does not have the network.
    pub(crate) fn spec(&self, own: &OwnModels) -> Result<NetworkSpec, UserError> {
        let kind = self.name.kind(&self.parameters, own)?;
        let link = LinkSpec { bytes_per_second: self.bytes_per_second, hop: self.hop };
        Ok(NetworkSpec { kind, link })
    }
}
