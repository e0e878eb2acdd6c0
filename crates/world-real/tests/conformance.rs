//! Proves: a real node keeps the contracts of `world`, over Unix sockets with and without one-sided
//! copies, and over TCP.

mod support;

use std::future::Future;
use support::{Kind, Place};
use world::conformance::{Fixture, run_all};
use world_real::{RealPayload, RealWorld, run};

/// Nodes of one process that meet over one kind of network.
struct Nodes(Kind);

impl Fixture for Nodes {
    type World = RealWorld;

    fn run<R: 'static, F: Future<Output = R> + 'static>(
        &mut self,
        nodes: usize,
        program: impl FnOnce(Vec<RealWorld>) -> F,
    ) -> R {
        let place = Place::new();
        run(async {
            let worlds = (0..nodes).map(|index| place.node(self.0, index)).collect();
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

#[test]
fn over_unix_with_one_sided_copies() {
    run_all(&mut Nodes(Kind::OneSided));
}

#[test]
fn over_unix_with_frames_only() {
    run_all(&mut Nodes(Kind::Framed));
}

#[test]
fn over_tcp() {
    run_all(&mut Nodes(Kind::Tcp));
}
