//! The size of a torus as its user states it, and the parameters that do so.

use super::grid::TorusSize;
use crate::models::{Parameter, ParameterValues, Unit};

/// Routers of a torus along x.
pub(in crate::models::network) const WIDTH: Parameter = Parameter {
    name: "torus-width",
    unit: Unit::Count,
    least: 0,
    most: 1 << 20,
    default: 0,
    meaning: "Number of routers of a torus along x. Nodes are numbered along x, servers first, \
              then clients. 0 means as many as the nodes need with torus-height. If both are 0, \
              the torus is the smallest nearly square one that holds all nodes.",
    source: "TR94-226 and TOCS 1997: 6, which 32 to 36 nodes need.",
};

/// Routers of a torus along y.
pub(in crate::models::network) const HEIGHT: Parameter = Parameter {
    name: "torus-height",
    meaning: "Number of routers of a torus along y. 0 means as many as the nodes need with \
              torus-width.",
    ..WIDTH
};

/// Requested size of a torus. A dimension of 0 follows from the other and the number of nodes; by
/// default both are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestedSize {
    /// Routers along x.
    pub width: u32,
    /// Routers along y.
    pub height: u32,
}

impl RequestedSize {
    /// Returns the size that the parameters state.
    pub(super) fn of(values: &ParameterValues) -> Self {
        Self { width: values.count(&WIDTH), height: values.count(&HEIGHT) }
    }

    /// Returns the size of a torus for `nodes` nodes, which must not be 0.
    pub(super) fn for_nodes(self, nodes: u32) -> TorusSize {
        match (self.width, self.height) {
            (0, 0) => TorusSize::for_nodes(nodes),
            (width, 0) => TorusSize { width, height: nodes.div_ceil(width) },
            (0, height) => TorusSize { width: nodes.div_ceil(height), height },
            (width, height) => TorusSize { width, height },
        }
    }
}
