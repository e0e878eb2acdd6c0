//! The interface of a shape of networks, and its declaration to users.
//!
//! To add a network: write its file, beside [`crossbar`](super::crossbar), with its
//! [`NetworkShape`], its [`SwitchedNetwork`](super::SwitchedNetwork) or
//! [`EventDrivenNetwork`](super::EventDrivenNetwork), and its [`NetworkDeclaration`]. Then add one
//! line to [`NETWORKS`](super::NETWORKS). A program can also bring along a shape of its own, which
//! needs no declaration.

use super::built_network::BuiltNetwork;
use super::error::{NODES_MAX, UnfitNetwork};
use super::links::LinkSpec;
use crate::models::{ModelInfo, Parameter, ParameterValues};
use std::fmt::Debug;
use std::sync::Arc;

/// Shape of a network: the connections of its nodes, for any number of nodes.
pub trait NetworkShape: Debug + Send + Sync {
    /// Checks that such a network can be built for `nodes` nodes, from 1 to [`NODES_MAX`].
    ///
    /// # Errors
    /// The reason why it cannot.
    fn check(&self, link: LinkSpec, nodes: u32) -> Result<(), UnfitNetwork> {
        self.build(link, nodes).map(drop)
    }

    /// Builds a quiet network for `nodes` nodes, from 1 to [`NODES_MAX`].
    ///
    /// # Errors
    /// The reason why it cannot be built.
    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork>;
}

/// Kind of network: a shared shape.
#[derive(Clone, Debug)]
pub struct NetworkKind(Arc<dyn NetworkShape>);

impl NetworkKind {
    /// The kind of the networks of a shape.
    pub fn of(shape: impl NetworkShape + 'static) -> Self {
        Self(Arc::new(shape))
    }
}

/// Specification of a network.
#[derive(Clone, Debug, Default)]
pub struct NetworkSpec {
    /// Connections of its nodes.
    pub kind: NetworkKind,
    /// Properties of each of its links and switches.
    pub link: LinkSpec,
}

impl NetworkSpec {
    /// Checks that such a network can be built for `nodes` nodes.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        self.check_limits(nodes)?;
        self.kind.0.check(self.link, nodes)
    }

    /// Builds a quiet network for `nodes` nodes.
    ///
    /// # Errors
    /// The reason why it cannot be built.
    pub fn build(&self, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        self.check_limits(nodes)?;
        self.kind.0.build(self.link, nodes)
    }

    fn check_limits(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        if nodes == 0 || nodes > NODES_MAX {
            return Err(UnfitNetwork::Nodes { nodes });
        }
        match self.link.bytes_per_second {
            0 => Err(UnfitNetwork::Speed),
            _ => Ok(()),
        }
    }
}

/// Declaration of a network: all that users know of it.
#[derive(Clone, Copy, Debug)]
pub struct NetworkDeclaration {
    /// Name and help text.
    pub info: ModelInfo,
    /// Parameters, which scenario files set. Networks may share a parameter.
    pub parameters: &'static [Parameter],
    /// Constructor.
    pub make: fn(&ParameterValues) -> NetworkKind,
}

impl Eq for NetworkDeclaration {}

impl PartialEq for NetworkDeclaration {
    /// Compares the names, which differ from network to network.
    fn eq(&self, other: &Self) -> bool {
        self.info.name == other.info.name
    }
}
