//! Declaration of the modelled torus.

use super::state::Torus;
use crate::models::network::built_network::{BuiltNetwork, EventDrivenNetwork};
use crate::models::network::spec::{NetworkDeclaration, NetworkKind, NetworkShape};
use crate::models::network::torus::size::{HEIGHT, RequestedSize, WIDTH};
use crate::models::network::{LinkSpec, UnfitNetwork};
use crate::models::{ModelInfo, ParameterValues};
use units::Instant;

/// Declaration of the modelled torus.
pub const NETWORK: NetworkDeclaration = NetworkDeclaration {
    info: ModelInfo {
        name: "torus",
        help: "a nearly square torus of two dimensions with wormhole routing and modelled \
               contention",
    },
    parameters: &[WIDTH, HEIGHT],
    make: |values: &ParameterValues| {
        NetworkKind::of(ModelledTorusShape { size: RequestedSize::of(values) })
    },
};

/// Shape of a modelled torus.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ModelledTorusShape {
    /// Its size.
    pub size: RequestedSize,
}

impl NetworkShape for ModelledTorusShape {
    fn check(&self, _link: LinkSpec, nodes: u32) -> Result<(), UnfitNetwork> {
        self.size.for_nodes(nodes).check(nodes)
    }

    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        self.check(link, nodes)?;
        let torus = Torus::new(self.size.for_nodes(nodes), link);
        Ok(BuiltNetwork::EventDriven(Box::new(torus)))
    }
}

impl EventDrivenNetwork for Torus {
    fn send(
        &mut self,
        now: Instant,
        ends: (u32, u32),
        bytes: u64,
        parcel: &mut dyn FnMut() -> u32,
    ) -> Option<Instant> {
        Self::send(self, now, ends, bytes, parcel)
    }

    fn arrived(&mut self, now: Instant) -> Option<u32> {
        Self::arrived(self, now)
    }

    fn next_arrival_from(&self) -> Option<Instant> {
        Self::next_arrival_from(self)
    }
}
