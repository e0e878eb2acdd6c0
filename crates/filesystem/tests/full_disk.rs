//! Proves: when a disk is full every client gets the fault, by every strategy. Earlier data is
//! intact, and a removal makes room.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::Fault;
use filesystem::collective::Strategy;
use policy::{Access, Direction, ListEntry, Pattern};
use support::{
    Cluster, Shape, create, expect_equal, image, memory_of, read_back, share, transfer, write_image,
};
use units::{Duration, GIB, MIB};
use world::Payloads;
use world::payload::Phantom;
use world_simulated::DiskKind;
use world_simulated::models::mechanical::Drive;

/// One HP 97560, which holds 1.3 GB.
fn one_disk(block_bytes: u64) -> Shape {
    Shape {
        servers: 1,
        block_bytes,
        mechanism: DiskKind::of(Drive::hp97560()),
        bound: Duration::from_seconds(1e5),
        ..Shape::default()
    }
}

fn is_full(outcome: &Result<(), Fault>) -> bool {
    matches!(outcome, Err(Fault::NoSpace { .. }))
}

#[test]
fn a_file_larger_than_the_disk_fails_at_every_client() {
    for strategy in Strategy::NAMED {
        let cluster = Cluster::<Phantom>::new(one_disk(4 * MIB));
        let ended = cluster.run(0..4, |start| async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", 2 * GIB, start.shape.stripe()).await.unwrap();
            let access = "wb".parse::<Pattern>().unwrap().access(4, MIB, 2 * GIB).unwrap();
            let memory = start.world.memory(access.memory_bytes(group.rank()));
            let memory = group.share(memory).await.unwrap();
            let write = transfer(Direction::Write, &file, &access, strategy);
            let too_much = group.transfer(&write, &memory).await;
            // The group goes on: a file that fits the disk fits it again once the other is gone.
            group.client().close(&file).await.unwrap();
            group.barrier().await.unwrap();
            if group.rank().0 == 0 {
                group.client().remove("f").await.unwrap();
            }
            let file = create(&group, "g", GIB, start.shape.stripe()).await.unwrap();
            let access = "wb".parse::<Pattern>().unwrap().access(4, MIB, GIB).unwrap();
            let write = transfer(Direction::Write, &file, &access, strategy);
            (too_much, group.transfer(&write, &memory).await)
        });
        for (too_much, fits) in ended {
            assert!(is_full(&too_much), "{strategy}: {too_much:?}");
            assert_eq!(fits, Ok(()), "{strategy}");
        }
    }
}

#[test]
fn full_disk_keeps_earlier_data() {
    const BYTES: u64 = 100_000;
    for strategy in Strategy::NAMED.into_iter().filter(|it| *it != Strategy::TwoPhase) {
        let cluster = Cluster::new(one_disk(8192));
        let contents = image(1, BYTES);
        let access = "wc".parse::<Pattern>().unwrap().access(4, 8, BYTES).unwrap();
        let ended = cluster.run(0..4, |start| {
            let (contents, access) = (contents.clone(), access.clone());
            async move {
                let group = start.join(0).await.unwrap();
                let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
                let write = transfer(Direction::Write, &file, &access, strategy);
                write_image(&group, &write, &contents).await.unwrap();
                // Some bytes at the start and far beyond the end of the disk.
                let large = create(&group, "large", 4 * GIB, start.shape.stripe()).await.unwrap();
                let entry = |file_offset, memory_offset| ListEntry {
                    file_offset,
                    memory_offset,
                    length: 8192,
                };
                let own = u64::from(group.rank().0);
                let list = |own: u64| vec![entry(own * 8192, 0), entry(3 * GIB + own * 8192, 8192)];
                let far = Access::lists((0..4).map(list).collect());
                let memory = share(&group, vec![own as u8; 16_384]).await.unwrap();
                let write = transfer(Direction::Write, &large, &far, strategy);
                let too_far = group.transfer(&write, &memory).await;
                let mut got = Vec::new();
                for strategy in Strategy::NAMED {
                    let read = transfer(Direction::Read, &file, &access, strategy);
                    got.push(read_back(&group, &read).await.unwrap());
                }
                (too_far, group.rank(), got)
            }
        });
        for (too_far, rank, got) in ended {
            assert!(is_full(&too_far), "{strategy}: {too_far:?}");
            for bytes in got {
                let wanted = memory_of(&access, rank, &contents);
                expect_equal(&bytes, &wanted, &format!("a file beside a full one, {strategy}"));
            }
        }
    }
}
