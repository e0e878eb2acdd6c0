//! Declaration of the exact torus.

use super::exact_torus::{ExactTorus, check};
use crate::models::network::built_network::{BuiltNetwork, EventDrivenNetwork};
use crate::models::network::spec::{NetworkDeclaration, NetworkKind, NetworkShape};
use crate::models::network::torus::grid::BUFFER_FLITS;
use crate::models::network::torus::size::{HEIGHT, RequestedSize, WIDTH};
use crate::models::network::{LinkSpec, UnfitNetwork};
use crate::models::{ModelInfo, Parameter, ParameterValues, Unit};
use units::Instant;

/// Declaration of the exact torus.
pub const NETWORK: NetworkDeclaration = NetworkDeclaration {
    info: ModelInfo { name: "exact-torus", help: "the same torus, simulated flit by flit" },
    parameters: &[WIDTH, HEIGHT, BUFFER],
    make: |values: &ParameterValues| {
        let size = RequestedSize::of(values);
        NetworkKind::of(ExactTorusShape { size, buffer_flits: values.count(&BUFFER) })
    },
};

const BUFFER: Parameter = Parameter {
    name: "exact-torus-buffer-flits",
    unit: Unit::Count,
    least: 1,
    most: 1 << 30,
    default: BUFFER_FLITS as u64,
    meaning: "Number of flits that a router of an exact torus buffers for each incoming virtual \
              channel.",
    source: "Our choice (docs/validation.md shows the effect of other depths).",
};

/// Shape of an exact torus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExactTorusShape {
    /// Its size.
    pub size: RequestedSize,
    /// Flits that a router buffers for each virtual channel that ends there.
    pub buffer_flits: u32,
}

impl Default for ExactTorusShape {
    /// The size that is needed, and buffers of the usual depth.
    fn default() -> Self {
        Self { size: RequestedSize::default(), buffer_flits: BUFFER_FLITS }
    }
}

impl NetworkShape for ExactTorusShape {
    fn check(&self, link: LinkSpec, nodes: u32) -> Result<(), UnfitNetwork> {
        self.size.for_nodes(nodes).check(nodes)?;
        check(link, self.buffer_flits).map(|_| ())
    }

    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        self.check(link, nodes)?;
        let torus = ExactTorus::new(self.size.for_nodes(nodes), link, self.buffer_flits)?;
        Ok(BuiltNetwork::EventDriven(Box::new(torus)))
    }
}

impl EventDrivenNetwork for ExactTorus {
    fn send(
        &mut self,
        now: Instant,
        ends: (u32, u32),
        bytes: u64,
        parcel: &mut dyn FnMut() -> u32,
    ) -> Option<Instant> {
        if ends.0 == ends.1 {
            return Some(now);
        }
        Self::send(self, now, ends, bytes, parcel());
        None
    }

    fn arrived(&mut self, now: Instant) -> Option<u32> {
        Self::arrived(self, now)
    }

    fn next_arrival_from(&self) -> Option<Instant> {
        Self::next_arrival_from(self)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: routers that buffer nothing are refused.
    use super::*;

    #[test]
    fn a_torus_without_buffers_is_refused() {
        let shape = ExactTorusShape { buffer_flits: 0, ..ExactTorusShape::default() };
        assert!(shape.check(LinkSpec::TOCS_1997, 2).is_err());
    }
}
