//! Limits of a network, and the reasons why one cannot be built.

/// Largest number of nodes of a network, and of places of a torus.
pub const NODES_MAX: u32 = 1 << 20;

/// Reason why a network cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnfitNetwork {
    /// A torus with fewer places than nodes, or with too many.
    #[error(
        "a torus of {width} by {height} cannot hold {nodes} nodes; it needs a place for each node, \
         and has at most {NODES_MAX}"
    )]
    TorusSize {
        /// Places along x.
        width: u32,
        /// Places along y.
        height: u32,
        /// Nodes of the machine.
        nodes: u32,
    },
    /// No nodes, or too many.
    #[error("a network cannot have {nodes} nodes, only 1 to {NODES_MAX}")]
    Nodes {
        /// Nodes of the machine.
        nodes: u32,
    },
    /// Links of no speed.
    #[error("the links of a network must carry at least one byte per second")]
    Speed,
    /// A hop in which an exact network cannot move a whole number of bytes.
    #[error(
        "in an exact network, a link must carry a whole number of bytes in one hop time; {hop_ns} \
         ns at {bytes_per_second} bytes/s do not give one"
    )]
    Flit {
        /// Time of a hop, in ns.
        hop_ns: u64,
        /// Speed of a link.
        bytes_per_second: u64,
    },
    /// Routers that cannot buffer a flit.
    #[error("the buffers of an exact network must hold at least one flit")]
    Buffer,
    /// More links than fit in memory.
    #[error("{links} links between leaves and spines are too many; the maximum is {links_max}")]
    SpineLinks {
        /// Number of links from leaves to spines.
        links: u64,
        /// Largest permitted number.
        links_max: u64,
    },
    /// A fat tree without leaves or without spines.
    #[error("a fat tree must have nodes on each leaf and spines, from 1 to {NODES_MAX}")]
    FatTree,
}
