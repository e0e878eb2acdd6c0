//! Proves: when a disk is full every client gets the fault, by every strategy. Earlier data is
//! intact, and a removal makes room.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use filesystem::{Fault, NewFile};
use policy::{Access, Buffering, Direction, ListEntry, Pattern, Pool, Protection, Stripe};
use support::{
    Cluster, Shape, create, expect_equal, image, memory_of, read_back, share, transfer, write_image,
};
use units::{Duration, GIB, MIB};
use wire::{FileRecord, Made};
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

#[test]
fn a_disk_that_is_full_for_parity_alone_fails_the_write() {
    // Proves: the collective that writes the data gets the fault, and not only a later sync, also
    // when the server with the parity could hold its changes in memory.
    let shape = Shape {
        servers: 3,
        clients: 2,
        block_bytes: 64 * MIB,
        cache_blocks: 8,
        protection: Protection::Parity { blocks: 2 },
        mechanism: DiskKind::of(Drive::hp97560()),
        bound: Duration::from_seconds(1e5),
        ..Shape::default()
    };
    let cluster = Cluster::<Phantom>::new(shape);
    let ended = cluster.run(0..2, |start| async move {
        let group = start.join(0).await.unwrap();
        let write = async |file: &FileRecord| {
            let access = "wb".parse::<Pattern>().unwrap().access(2, MIB, file.bytes).unwrap();
            let memory = start.world.memory(access.memory_bytes(group.rank()));
            let memory = group.share(memory).await.unwrap();
            let write = transfer(Direction::Write, file, &access, Strategy::DiskDirected);
            group.transfer(&write, &memory).await
        };
        let file = create(&group, "f", 128 * MIB, start.shape.stripe()).await.unwrap();
        let rows = file.protection.rows(&file.stripe).unwrap();
        let server = file.pool.server(rows.parity(0).server);
        let free = group.client().status().await[server.0 as usize].as_ref().unwrap().disks[0].1;
        // All but half of what the parity takes.
        let (name, made) = ("filler".to_owned(), Made::default());
        let filler = NewFile {
            name,
            bytes: (free - 32 * MIB) / (2 * MIB) * (2 * MIB),
            stripe: Stripe::round_robin(64 * MIB, 1, 1),
            pool: Pool::Named(vec![server]),
            buffering: Buffering::default(),
            protection: Protection::None,
            made,
        };
        let made = match group.rank().0 {
            0 => Some(group.client().create_as(filler).await.unwrap()),
            _ => None,
        };
        group.barrier().await.unwrap();
        let filler = match made {
            Some(made) => made,
            None => group.client().open("filler").await.unwrap(),
        };
        write(&filler).await.unwrap();
        let refused = write(&file).await;
        // Once there is room, a file can be written, and stored.
        group.client().close(&filler).await.unwrap();
        group.client().close(&file).await.unwrap();
        group.barrier().await.unwrap();
        if group.rank().0 == 0 {
            group.client().remove("filler").await.unwrap();
            group.client().remove("f").await.unwrap();
        }
        let file = create(&group, "g", 128 * MIB, start.shape.stripe()).await.unwrap();
        let again = write(&file).await.and(group.client().flush(&file, true).await);
        (refused, again)
    });
    for (refused, again) in ended {
        assert!(is_full(&refused), "{refused:?}");
        assert_eq!(again, Ok(()));
    }
}
