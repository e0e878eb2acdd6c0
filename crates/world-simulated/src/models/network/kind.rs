//! The kinds of networks, and the construction of one from its specification.

use super::crossbar::Crossbar;
use super::fat_tree::{FatTree, FatTreeShape};
use super::torus::form::{self, TorusForm};
use super::torus::grid::TorusSize;
use super::{EventDriven, LinkSpec, NODES_MAX, Switched, UnfitNetwork};
use crate::models::ModelInfo;

/// Specification of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkSpec {
    /// Connections of its nodes.
    pub kind: NetworkKind,
    /// Properties of each of its links and switches.
    pub link: LinkSpec,
}

/// The connections of the nodes of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkKind {
    /// A two-dimensional torus with wormhole routing: packets go along x first, then along y.
    Torus {
        /// Its size. `None` takes the smallest, nearly square one that holds all nodes.
        size: Option<TorusSize>,
        /// Detail of the simulation.
        form: TorusForm,
    },
    /// One switch to which every node has a link in each direction.
    Crossbar,
    /// Two levels of switches.
    FatTree(FatTreeShape),
}

impl NetworkKind {
    /// A modelled torus of the size that is needed: 36 nodes are 6 by 6, as in the papers.
    pub const MODELLED_TORUS: Self = Self::Torus { size: None, form: TorusForm::Modelled };
    /// The torus of [`MODELLED_TORUS`](Self::MODELLED_TORUS), simulated flit by flit.
    pub const EXACT_TORUS: Self = Self::Torus { size: None, form: TorusForm::EXACT };

    /// Names and help texts of all kinds, from the files of the models.
    pub const ALL: [ModelInfo; 4] =
        [form::MODELLED_INFO, form::EXACT_INFO, Crossbar::INFO, FatTreeShape::INFO];

    /// Name and help text of this kind.
    pub fn info(&self) -> ModelInfo {
        match self {
            Self::Torus { form, .. } => form.info(),
            Self::Crossbar => Crossbar::INFO,
            Self::FatTree(_) => FatTreeShape::INFO,
        }
    }
}

impl Default for NetworkKind {
    fn default() -> Self {
        Self::MODELLED_TORUS
    }
}

impl NetworkSpec {
    /// Checks that such a network can be built for `nodes` nodes.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        if nodes == 0 || nodes > NODES_MAX {
            return Err(UnfitNetwork::Nodes { nodes });
        }
        if self.link.bytes_per_second == 0 {
            return Err(UnfitNetwork::Speed);
        }
        match self.kind {
            NetworkKind::Torus { size, form } => form.check(size, self.link, nodes),
            NetworkKind::Crossbar => Ok(()),
            NetworkKind::FatTree(shape) => shape.check(nodes),
        }
    }
}

/// A network of some kind, by the interface that its driver has to use.
#[derive(Debug)]
pub(crate) enum Network {
    /// Names the arrival of a message when it is sent.
    Switched(Switched),
    /// Names instants at which its driver asks for arrivals.
    EventDriven(Box<EventDriven>),
}

impl Network {
    /// Builds a quiet network for `nodes` nodes.
    pub(crate) fn new(spec: &NetworkSpec, nodes: u32) -> Result<Self, UnfitNetwork> {
        spec.check(nodes)?;
        Ok(match spec.kind {
            NetworkKind::Torus { size, form } => {
                Self::EventDriven(Box::new(form.build(size, spec.link, nodes)?))
            }
            NetworkKind::Crossbar => {
                Self::Switched(Switched::Crossbar(Crossbar::new(nodes, spec.link)))
            }
            NetworkKind::FatTree(shape) => {
                Self::Switched(Switched::FatTree(FatTree::new(nodes, shape, spec.link)?))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a network that fits no machine is refused, and the message names what would fit.
    use super::*;
    use crate::models::network::{LinkSpec, NODES_MAX};
    use units::Instant;

    fn refused(kind: NetworkKind, link: LinkSpec, nodes: u32) -> String {
        Network::new(&NetworkSpec { kind, link }, nodes).unwrap_err().to_string()
    }

    #[test]
    fn a_network_that_does_not_fit_is_refused() {
        let link = LinkSpec::TOCS_1997;
        let size = Some(TorusSize { width: 6, height: 6 });
        let torus = |form| NetworkKind::Torus { size, form };
        let message = refused(torus(TorusForm::Modelled), link, 37);
        assert!(message.contains("6 by 6 cannot hold 37 nodes"), "{message}");
        assert!(Network::new(&NetworkSpec { kind: torus(TorusForm::Modelled), link }, 36).is_ok());
        let huge = Some(TorusSize { width: u32::MAX, height: u32::MAX });
        refused(NetworkKind::Torus { size: huge, form: TorusForm::Modelled }, link, 1);
        refused(NetworkKind::Crossbar, link, 0);
        refused(NetworkKind::Crossbar, link, NODES_MAX + 1);
        refused(NetworkKind::Crossbar, LinkSpec { bytes_per_second: 0, ..link }, 2);
        refused(torus(TorusForm::Exact { buffer_flits: 0 }), link, 2);
        let shape = FatTreeShape { leaf_nodes: 1, spines: NODES_MAX };
        assert!(refused(NetworkKind::FatTree(shape), link, 65_536).contains("68719476736 links"));
        let uneven = LinkSpec { bytes_per_second: 190_000_000, ..link };
        let message = refused(NetworkKind::EXACT_TORUS, uneven, 2);
        assert!(message.contains("whole number of bytes"), "{message}");
        for shape in [(0, 1), (1, 0), (1, u32::MAX)] {
            let shape = FatTreeShape { leaf_nodes: shape.0, spines: shape.1 };
            refused(NetworkKind::FatTree(shape), link, 2);
        }
    }

    #[test]
    fn the_default_is_the_modelled_torus_of_the_papers() {
        let network = Network::new(&NetworkSpec::default(), 36).unwrap();
        let Network::EventDriven(network) = network else { panic!("another") };
        let EventDriven::ModelledTorus(mut torus) = *network else { panic!("another") };
        let arrival = torus.send(Instant::START, (0, 15), 8192, || panic!("nothing is before it"));
        let expected = Instant::from_ns(40_960 + 5 * 20);
        assert_eq!(arrival, Some(expected), "3 hops along x, 2 along y");
    }
}
