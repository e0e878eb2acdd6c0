//! Proves: two runs of one seed give one digest, on any thread and beside other simulations. Other
//! seeds give other digests where anything is random.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use policy::{Direction, Pattern};
use support::{Cluster, Shape, create, image, read_back, transfer, write_image};
use world_simulated::models::mechanical::Drive;
use world_simulated::models::network::FatTreeShape;
use world_simulated::models::network::crossbar::CrossbarShape;
use world_simulated::models::network::torus::exact::ExactTorusShape;
use world_simulated::{DiskKind, LayoutKind, NetworkKind};

/// Writes and reads a file; returns the digest of the whole simulation and its events.
fn digest(strategy: Strategy, seed: u64) -> (u64, u64) {
    digest_on(NetworkKind::default(), strategy, seed)
}

fn digest_on(network: NetworkKind, strategy: Strategy, seed: u64) -> (u64, u64) {
    const BYTES: u64 = 8192 * 40 + 100;
    let cluster = Cluster::new(Shape {
        servers: 3,
        disks_per_server: 2,
        block_bytes: 8192,
        cache_blocks: 8,
        mechanism: DiskKind::of(Drive::hp97560()),
        layout: LayoutKind::RANDOM_BLOCKS,
        network,
        seed,
        ..Shape::default()
    });
    cluster.run(0..4, |start| async move {
        let group = start.join(0).await.unwrap();
        let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
        for name in ["wc", "rb"] {
            let pattern: Pattern = name.parse().unwrap();
            let access = pattern.access(4, 100 + 8192 * 40, BYTES).unwrap();
            let transfer = transfer(pattern.direction, &file, &access, strategy);
            match pattern.direction {
                Direction::Write => {
                    write_image(&group, &transfer, &image(1, BYTES)).await.unwrap();
                }
                Direction::Read => {
                    read_back(&group, &transfer).await.unwrap();
                }
            }
        }
        group.leave().await;
    });
    (cluster.engine.digest(), cluster.engine.events())
}

#[test]
fn one_seed_gives_one_digest() {
    for strategy in Strategy::ALL {
        assert_eq!(digest(strategy, 7), digest(strategy, 7), "{strategy}");
    }
}

#[test]
fn one_seed_gives_one_digest_on_every_network() {
    let shape = FatTreeShape { leaf_nodes: 2, spines: 2, ends: units::Duration::ZERO };
    let networks = [
        NetworkKind::default(),
        NetworkKind::of(ExactTorusShape::default()),
        NetworkKind::of(CrossbarShape),
        NetworkKind::of(shape),
    ];
    for strategy in Strategy::ALL {
        let digests = networks.clone().map(|network| {
            let digest = digest_on(network.clone(), strategy, 7);
            assert_eq!(
                digest,
                digest_on(network.clone(), strategy, 7),
                "{strategy} on {network:?}"
            );
            digest.0
        });
        let different: std::collections::BTreeSet<_> = digests.into_iter().collect();
        assert_eq!(different.len(), networks.len(), "{strategy}");
    }
}

#[test]
fn other_seeds_give_other_digests() {
    for strategy in Strategy::ALL {
        let digests: std::collections::BTreeSet<_> =
            (0..5).map(|seed| digest(strategy, seed)).collect();
        assert_eq!(digests.len(), 5, "{strategy}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the threads are those of the host, not of a program")]
fn simulations_at_the_same_time_do_not_disturb_one_another() {
    let alone: Vec<_> = (0..3).map(|seed| digest(Strategy::ALL[seed as usize], seed)).collect();
    std::thread::scope(|threads| {
        let running: Vec<_> = (0..6_u64)
            .map(|number| {
                let seed = number % 3;
                (seed, threads.spawn(move || digest(Strategy::ALL[seed as usize], seed)))
            })
            .collect();
        for (seed, digest) in running {
            assert_eq!(digest.join().unwrap(), alone[seed as usize]);
        }
    });
}
