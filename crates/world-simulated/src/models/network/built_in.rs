//! The networks that users choose by name.

use super::spec::{NetworkDeclaration, NetworkKind};
use super::torus::{exact, modelled};
use super::{crossbar, fat_tree};
use crate::models::ParameterValues;

/// Declarations of the networks, in the order in which users see them.
pub const NETWORKS: &[NetworkDeclaration] =
    &[modelled::NETWORK, exact::NETWORK, crossbar::NETWORK, fat_tree::NETWORK];

impl Default for NetworkKind {
    /// The modelled torus of the size that is needed: 36 nodes are 6 by 6, as in the papers.
    fn default() -> Self {
        (modelled::NETWORK.make)(&ParameterValues::DEFAULTS)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each name belongs to one network, and each network keeps the contract of its
    //! interface. A network that fits no machine is refused, and the message names what would fit.
    use super::*;
    use crate::models::Parameter;
    use crate::models::network::torus::size::{HEIGHT, WIDTH};
    use crate::models::network::{
        BuiltNetwork, LinkSpec, NODES_MAX, NetworkSpec, contract, crossbar, fat_tree,
    };
    use std::collections::{BTreeMap, BTreeSet};
    use units::Instant;

    /// The reason why a network of some parameters cannot be built.
    fn refused(
        network: NetworkDeclaration,
        set: &[(&Parameter, u64)],
        link: LinkSpec,
        nodes: u32,
    ) -> String {
        let spec = NetworkSpec { kind: (network.make)(&values(set)), link };
        let checked = spec.check(nodes).expect_err("it fits no machine");
        assert_eq!(spec.build(nodes).expect_err("it was refused before"), checked);
        checked.to_string()
    }

    fn values(set: &[(&Parameter, u64)]) -> ParameterValues {
        let mut values = ParameterValues::default();
        for (parameter, value) in set {
            values.set(parameter, *value).expect("the value is permitted");
        }
        values
    }

    #[test]
    fn declared_networks_keep_the_contract() {
        let (mut names, mut parameters) = (BTreeSet::new(), BTreeMap::new());
        for network in NETWORKS {
            let name = network.info.name;
            assert!(names.insert(name), "{name} is there twice");
            let kind = (network.make)(&ParameterValues::DEFAULTS);
            assert_eq!(contract::check(&kind), Ok(()), "{name}");
            for parameter in network.parameters {
                let set = ParameterValues::default().set(parameter, parameter.default);
                assert_eq!(set, Ok(()), "{name}");
                let meaning = parameters.entry(parameter.name).or_insert(parameter.meaning);
                assert_eq!(*meaning, parameter.meaning, "one name has one meaning");
            }
        }
    }

    #[test]
    fn a_network_that_does_not_fit_is_refused() {
        let link = LinkSpec::TOCS_1997;
        let torus = modelled::NETWORK;
        let message = refused(torus, &[(&WIDTH, 6), (&HEIGHT, 6)], link, 37);
        assert!(message.contains("6 by 6 cannot hold 37 nodes"), "{message}");
        let fits = (torus.make)(&values(&[(&WIDTH, 6), (&HEIGHT, 6)]));
        assert!(NetworkSpec { kind: fits, link }.build(36).is_ok());
        refused(torus, &[(&WIDTH, WIDTH.most), (&HEIGHT, HEIGHT.most)], link, 1);
        refused(crossbar::NETWORK, &[], link, 0);
        refused(crossbar::NETWORK, &[], link, NODES_MAX + 1);
        refused(crossbar::NETWORK, &[], LinkSpec { bytes_per_second: 0, ..link }, 2);
        let slim = [(&fat_tree::LEAF_NODES, 1), (&fat_tree::SPINES, u64::from(NODES_MAX))];
        let message = refused(fat_tree::NETWORK, &slim, link, 65_536);
        assert!(message.contains("68719476736 links"), "{message}");
        let uneven = LinkSpec { bytes_per_second: 190_000_000, ..link };
        let message = refused(exact::NETWORK, &[], uneven, 2);
        assert!(message.contains("whole number of bytes"), "{message}");
    }

    #[test]
    fn the_default_is_the_modelled_torus_of_the_papers() {
        let network = NetworkSpec::default().build(36).unwrap();
        let BuiltNetwork::EventDriven(mut torus) = network else { panic!("another") };
        let nothing = &mut || panic!("nothing is before it");
        let arrival = torus.send(Instant::START, (0, 15), 8192, nothing);
        let expected = Instant::from_ns(40_960 + 5 * 20);
        assert_eq!(arrival, Some(expected), "3 hops along x, 2 along y");
    }
}
