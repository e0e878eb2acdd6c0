//! Networks between the nodes: what they are, and what carries a message over them.
//!
//! A network of switches says when a message arrives as soon as it is sent, because it gives its
//! links in the order of the calls. A torus cannot always: its worms keep what is behind their
//! heads while they wait, and what is sent later may meet what is under way. Its *exact* form moves
//! every flit. Its *modelled* form moves heads, and only those that have met others. All cost a
//! message that is alone the same: a hop time for each switch on its way, and its bytes once.
//!
//! | kind | forms | hops of a message |
//! |---|---|---|
//! | torus | modelled ([`torus`]), exact ([`exact`]) | links between routers |
//! | crossbar | modelled ([`crossbar`]) | 1 |
//! | fat tree | modelled ([`fat_tree`]) | 1 within a leaf, 3 otherwise |

pub mod crossbar;
pub mod exact;
pub mod fat_tree;
mod grid;
mod links;
#[cfg(test)]
mod sending;
pub mod torus;

use crossbar::Crossbar;
use exact::ExactTorus;
use fat_tree::FatTree;
use torus::Torus;
use units::{Duration, Instant};

/// What a network is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkSpec {
    /// How its nodes are connected.
    pub kind: NetworkKind,
    /// What each of its links and switches is.
    pub link: LinkSpec,
}

/// How the nodes of a network are connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkKind {
    /// A two-dimensional torus: worms go along x first, and along y then.
    Torus {
        /// Its size; `None` takes the smallest that is nearly square and holds all nodes.
        size: Option<TorusSize>,
        /// How its worms are simulated.
        form: TorusForm,
    },
    /// One switch to which every node has a link in each direction.
    Crossbar,
    /// Two levels of switches.
    FatTree(FatTreeShape),
}

/// Routers of a torus along each of its dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TorusSize {
    /// Along x, in which node numbers follow one another.
    pub width: u32,
    /// Along y.
    pub height: u32,
}

/// How the worms of a torus are simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TorusForm {
    /// Only heads are moved, where worms meet.
    Modelled,
    /// Every flit is moved.
    Exact {
        /// Flits that fit in the buffer of a router for each link and lane that ends there.
        buffer_flits: u32,
    },
}

/// What a two-level fat tree is made of. It is oversubscribed when a leaf has more nodes than
/// there are spines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatTreeShape {
    /// Nodes on each leaf switch.
    pub leaf_nodes: u32,
    /// Spine switches; each leaf has one link up to each, and one down from it.
    pub spines: u32,
}

/// What a link is, and the switch or router before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSpec {
    /// Bytes a second, in each direction.
    pub bytes_per_second: u64,
    /// Time the head of a message needs from one switch to the next.
    pub hop: Duration,
}

impl LinkSpec {
    /// 200 * 10^6 bytes/s in each direction and 20 ns per router (Kotz, ACM TOCS 15(1), 1997,
    /// Table I; the same in PCS-TR94-226).
    pub const TOCS_1997: Self = Self { bytes_per_second: 200_000_000, hop: Duration::from_ns(20) };

    /// Bytes of a flit: what a link carries in a hop, if that is a whole number and not zero.
    pub(crate) fn flit_bytes(&self) -> Option<u64> {
        let product = u128::from(self.hop.as_ns()) * u128::from(self.bytes_per_second);
        let bytes = u64::try_from(product / 1_000_000_000).unwrap_or(u64::MAX);
        (bytes > 0 && product % 1_000_000_000 == 0).then_some(bytes)
    }
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self::TOCS_1997
    }
}

impl NetworkSpec {
    /// Whether such a network can be built for `nodes` nodes.
    ///
    /// # Errors
    /// When it cannot, and why.
    pub fn check(&self, nodes: u32) -> Result<(), UnfitNetwork> {
        if nodes == 0 || nodes > NODES_MAX {
            return Err(UnfitNetwork::Nodes { nodes });
        }
        if self.link.bytes_per_second == 0 {
            return Err(UnfitNetwork::Speed);
        }
        match self.kind {
            NetworkKind::Torus { size, form } => {
                size.unwrap_or_else(|| TorusSize::for_nodes(nodes)).check(nodes)?;
                match form {
                    TorusForm::Modelled => Ok(()),
                    TorusForm::Exact { buffer_flits } => {
                        exact::check(self.link, buffer_flits).map(|_| ())
                    }
                }
            }
            NetworkKind::Crossbar => Ok(()),
            NetworkKind::FatTree(shape) => shape.check(nodes),
        }
    }
}

impl NetworkKind {
    /// A modelled torus of whatever size is needed: 36 nodes are 6 by 6, as in the papers.
    pub const MODELLED_TORUS: Self = Self::Torus { size: None, form: TorusForm::Modelled };
    /// The same torus, flit by flit.
    pub const EXACT_TORUS: Self =
        Self::Torus { size: None, form: TorusForm::Exact { buffer_flits: exact::BUFFER_FLITS } };
}

impl Default for NetworkKind {
    fn default() -> Self {
        Self::MODELLED_TORUS
    }
}

/// Most nodes of a network, and most places of a torus.
pub const NODES_MAX: u32 = 1 << 20;

/// Why there is no such network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnfitNetwork {
    /// A torus with fewer places than nodes, or with too many.
    #[error(
        "a torus of {width} by {height} cannot hold {nodes} nodes; it needs as many places, and \
         may have at most {NODES_MAX}"
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
    /// Links that carry nothing.
    #[error("the links of a network must carry at least a byte a second")]
    Speed,
    /// A hop in which an exact network cannot move a whole number of bytes.
    #[error(
        "an exact network moves a flit a hop, so hop time times speed must be a whole number of \
         bytes and not zero; {hop_ns} ns at {bytes_per_second} bytes/s are not"
    )]
    Flit {
        /// Time of a hop, in ns.
        hop_ns: u64,
        /// Speed of a link.
        bytes_per_second: u64,
    },
    /// Routers that cannot keep a flit.
    #[error("the buffers of an exact network must hold at least one flit")]
    Buffer,
    /// More links than a memory holds.
    #[error("{links} links between leaves and spines are too many, there may be {links_max}")]
    SpineLinks {
        /// From leaves to spines.
        links: u64,
        /// The most there may be.
        links_max: u64,
    },
    /// A fat tree without leaves or without a top.
    #[error("a fat tree must have nodes on each leaf and spines, from 1 to {NODES_MAX}")]
    FatTree,
}

/// A network of some kind.
#[derive(Debug)]
pub(crate) enum Network {
    /// It says at once when a message arrives.
    Switched(Switched),
    /// It has to be driven.
    Torus(Box<AnyTorus>),
}

impl Network {
    /// A quiet network for `nodes` nodes.
    pub(crate) fn new(spec: &NetworkSpec, nodes: u32) -> Result<Self, UnfitNetwork> {
        spec.check(nodes)?;
        Ok(match spec.kind {
            NetworkKind::Torus { size, form } => {
                let size = size.unwrap_or_else(|| TorusSize::for_nodes(nodes));
                Self::Torus(Box::new(match form {
                    TorusForm::Modelled => AnyTorus::Modelled(Torus::new(size, spec.link)),
                    TorusForm::Exact { buffer_flits } => {
                        AnyTorus::Exact(ExactTorus::new(size, spec.link, buffer_flits)?)
                    }
                }))
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

/// A network that says at once when a message arrives.
#[derive(Clone, Debug)]
pub(crate) enum Switched {
    /// One switch.
    Crossbar(Crossbar),
    /// Two levels of switches.
    FatTree(FatTree),
}

impl Switched {
    /// Sends `bytes` now: when the last of them arrives. At once when a node sends to itself.
    pub(crate) fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        match self {
            Self::Crossbar(crossbar) => crossbar.deliver(now, from, to, bytes),
            Self::FatTree(tree) => tree.deliver(now, from, to, bytes),
        }
    }
}

/// A torus in either form. What is sent later can delay what is under way, so it has to be driven:
/// asked, from the instants on that it names, what has arrived.
#[derive(Debug)]
pub(crate) enum AnyTorus {
    /// Its heads are moved where worms meet.
    Modelled(Torus),
    /// Its flits are moved.
    Exact(ExactTorus),
}

impl AnyTorus {
    /// Sends `bytes` now from one node to another: when the last of them arrives, if that is known
    /// already; otherwise [`arrived`](Self::arrived) will return what `parcel` does. At once when a
    /// node sends to itself.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Instant,
        ends: (u32, u32),
        bytes: u64,
        parcel: impl FnOnce() -> u32,
    ) -> Option<Instant> {
        match self {
            Self::Modelled(torus) => torus.send(now, ends, bytes, parcel),
            Self::Exact(_) if ends.0 == ends.1 => Some(now),
            Self::Exact(torus) => {
                torus.send(now, ends, bytes, parcel());
                None
            }
        }
    }

    /// The next parcel, in order, whose last flit has arrived by now.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<u32> {
        match self {
            Self::Modelled(torus) => torus.arrived(now),
            Self::Exact(torus) => torus.arrived(now),
        }
    }

    /// No parcel arrives before, whatever else is sent; `None` when none is under way.
    pub(crate) fn next_arrival_from(&self) -> Option<Instant> {
        match self {
            Self::Modelled(torus) => torus.next_arrival_from(),
            Self::Exact(torus) => torus.next_arrival_from(),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: what fits no machine is refused, with what would fit in the message.
    use super::*;

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
        let Network::Torus(torus) = network else { panic!("another") };
        let AnyTorus::Modelled(mut torus) = *torus else { panic!("another") };
        let arrival = torus.send(Instant::START, (0, 15), 8192, || panic!("nothing is before it"));
        let expected = Instant::from_ns(40_960 + 5 * 20);
        assert_eq!(arrival, Some(expected), "3 hops along x, 2 along y");
    }
}
