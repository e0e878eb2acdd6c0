//! Nodes for the checks of `world`'s contracts.

use super::{Kind, Place, open};
use std::future::Future;
use world::conformance::Fixture;
use world_real::{DiskConfig, RealPayload, RealWorld, run};

/// Nodes of one process that meet over one kind of network, with disks as the function makes them.
pub(crate) struct Nodes(pub(crate) Kind, pub(crate) fn(&mut DiskConfig));

impl Fixture for Nodes {
    type World = RealWorld;

    fn run<R: 'static, F: Future<Output = R> + 'static>(
        &mut self,
        nodes: usize,
        program: impl FnOnce(Vec<RealWorld>) -> F,
    ) -> R {
        let place = Place::new();
        run(async {
            let worlds = (0..nodes).map(|index| {
                let mut config = place.config(self.0, index);
                config.disks.iter_mut().for_each(self.1);
                open(self.0, config)
            });
            let worlds = worlds.collect();
            program(worlds).await
        })
    }

    fn payload(bytes: &[u8]) -> RealPayload {
        bytes.to_vec().into()
    }

    fn read_back(payload: &RealPayload) -> Option<Vec<u8>> {
        Some(payload.bytes().to_vec())
    }
}
