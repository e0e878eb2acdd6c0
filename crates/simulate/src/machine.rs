//! Parts of a simulated machine: plain data that presets fill in and users may change.

use crate::disk::DiskName;
use crate::names::{MachineName, NetworkName};
use filesystem::Costs;
use filesystem::collective::Strategy;
use units::Duration;
use world_simulated::{
    FatTreeShape, LinkSpec, MessageCosts, NetworkKind, NetworkSpec, QueueKind, StartAngle,
    TorusForm, TorusSize, UnfitNetwork,
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
    /// Variation of the cost of each piece of work, in percent.
    pub variation_percent: u32,
    /// Requests that one client has under way at one disk.
    pub outstanding_per_disk: u32,
    /// Blocks of cache for each client and disk.
    pub cache_blocks_per_client_and_disk: u32,
    /// Dirty high-water mark, in percent of a cache. Above it the oldest dirty blocks are written
    /// back.
    pub cache_dirty_percent: u32,
    /// Buffers of a collective transfer for each disk, in blocks.
    pub buffers_per_disk: u32,
    /// Strategies whose writes end when the data is on the medium; writes of the others end when
    /// the disks have the data. In the order of [`Strategy::ALL`], each once.
    pub waits_for_medium: Vec<Strategy>,
}

/// Network that connects the nodes of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Kind of network.
    pub name: NetworkName,
    /// Bandwidth of a link in each direction, in bytes a second.
    pub bytes_per_second: u64,
    /// Time that the head of a message takes from one router or switch to the next.
    pub hop: Duration,
    /// Routers of a torus along x; 0 for as many as are needed.
    pub torus_width: u32,
    /// Routers of a torus along y; 0 for as many as are needed.
    pub torus_height: u32,
    /// Flits in each buffer of a router, where every flit is simulated.
    pub buffer_flits: u32,
    /// Nodes on a leaf of a fat tree.
    pub leaf_nodes: u32,
    /// Spines of a fat tree.
    pub spines: u32,
}

impl Network {
    pub(crate) fn spec(&self, nodes: u32) -> NetworkSpec {
        let torus = |form| NetworkKind::Torus { size: self.torus_size(nodes), form };
        let kind = match self.name {
            NetworkName::Torus => torus(TorusForm::Modelled),
            NetworkName::ExactTorus => torus(TorusForm::Exact { buffer_flits: self.buffer_flits }),
            NetworkName::Crossbar => NetworkKind::Crossbar,
            NetworkName::FatTree => {
                let Self { leaf_nodes, spines, .. } = *self;
                NetworkKind::FatTree(FatTreeShape { leaf_nodes, spines })
            }
        };
        let link = LinkSpec { bytes_per_second: self.bytes_per_second, hop: self.hop };
        NetworkSpec { kind, link }
    }

    /// Returns the size of a torus if its width or height is set; a dimension that is not set
    /// follows from the number of nodes.
    fn torus_size(&self, nodes: u32) -> Option<TorusSize> {
        match (self.torus_width, self.torus_height) {
            (0, 0) => None,
            (width, 0) => Some(TorusSize { width, height: nodes.div_ceil(width) }),
            (0, height) => Some(TorusSize { width: nodes.div_ceil(height), height }),
            (width, height) => Some(TorusSize { width, height }),
        }
    }

    /// Checks that the network can be built for this number of nodes.
    pub(crate) fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        self.spec(nodes).check(nodes)
    }
}
