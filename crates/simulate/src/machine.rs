//! What a simulated machine is made of: plain data, which presets fill in and users may change.

use crate::disk::DiskName;
use crate::names::{MachineName, NetworkName};
use filesystem::Costs;
use filesystem::collective::Strategy;
use units::Duration;
use world_simulated::{
    FatTreeShape, LinkSpec, MessageCosts, NetworkKind, NetworkSpec, QueueKind, StartAngle,
    TorusForm, TorusSize, UnfitNetwork,
};

/// All that makes up a machine and the file system on it, besides how many nodes there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The preset that it began as.
    pub preset: MachineName,
    /// Its disks.
    pub disk: DiskName,
    /// What connects its nodes.
    pub network: Network,
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
    /// So many hundredths of a cache may be dirty before the oldest blocks are written back.
    pub cache_dirty_percent: u32,
    /// Blocks that a collective holds for each disk.
    pub buffers_per_disk: u32,
    /// The strategies whose writes end when the data is on the medium; those of the others end
    /// when the disks have it. In the order of [`Strategy::ALL`], each once.
    pub waits_for_medium: Vec<Strategy>,
}

/// What connects the nodes of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// How they are connected.
    pub name: NetworkName,
    /// What a link carries in each direction.
    pub bytes_per_second: u64,
    /// Time of the head of a message from one router or switch to the next.
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

    /// The size of a torus, where anything is said of it; what is not said follows from the nodes.
    fn torus_size(&self, nodes: u32) -> Option<TorusSize> {
        match (self.torus_width, self.torus_height) {
            (0, 0) => None,
            (width, 0) => Some(TorusSize { width, height: nodes.div_ceil(width) }),
            (0, height) => Some(TorusSize { width: nodes.div_ceil(height), height }),
            (width, height) => Some(TorusSize { width, height }),
        }
    }

    /// Whether it can be built for so many nodes.
    pub(crate) fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        self.spec(nodes).check(nodes)
    }
}
