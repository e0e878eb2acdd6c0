//! Proves: a real node keeps the contracts of `world`, over Unix sockets with and without one-sided
//! copies, and over TCP; its disks with and without the page cache, and with and without checksums.

mod support;

use std::future::Future;
use support::{Kind, Place, open};
use world::conformance::{Fixture, run_all};
use world_real::{DiskOptions, RealPayload, RealWorld, run};

/// Nodes of one process that meet over one kind of network, with disks of one kind.
struct Nodes(Kind, DiskOptions);

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
                config.disks.iter_mut().for_each(|disk| disk.options = self.1);
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

#[test]
fn over_unix_with_one_sided_copies() {
    run_all(&mut Nodes(Kind::OneSided, DiskOptions::default()));
}

#[test]
fn over_unix_with_frames_only() {
    run_all(&mut Nodes(Kind::Framed, DiskOptions::default()));
}

#[test]
fn over_tcp() {
    run_all(&mut Nodes(Kind::Tcp, DiskOptions::default()));
}

#[test]
fn past_the_page_cache() {
    run_all(&mut Nodes(Kind::OneSided, DiskOptions { direct: true, ..Default::default() }));
}

#[test]
fn past_the_page_cache_without_checksums() {
    run_all(&mut Nodes(
        Kind::OneSided,
        DiskOptions { direct: true, checksums: false, preallocate: true },
    ));
}

#[test]
fn without_checksums() {
    run_all(&mut Nodes(
        Kind::OneSided,
        DiskOptions { direct: false, checksums: false, preallocate: false },
    ));
}
