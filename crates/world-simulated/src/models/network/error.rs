//! Limits of a network, and the reasons why one cannot be built.

/// Largest number of nodes of a network, and of places of a torus.
pub const NODES_MAX: u32 = 1 << 20;

/// Reason why a network cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnfitNetwork {
    /// No nodes, or too many.
    #[error("a network cannot have {nodes} nodes, only 1 to {NODES_MAX}")]
    Nodes {
        /// Nodes of the machine.
        nodes: u32,
    },
    /// Links of no speed.
    #[error("the links of a network must carry at least one byte per second")]
    Speed,
    /// A shape that cannot be built for so many nodes, or with such links, as a sentence.
    #[error("{0}")]
    Shape(String),
}
