//! Proves: the cache and collectives see one file. Transfers of several files and groups at the
//! same time do not disturb one another. A member that cannot take part fails the others at once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use filesystem::{Client, Fault, PeerMesh};
use policy::{Access, Direction, ListEntry, Pattern};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Cluster, JOIN_TIMEOUT, Numbers, Shape, Start, create, expect_equal, for_each_seed, image,
    memory_of, overlay, read_back, share, transfer, write_image,
};
use units::{ClientId, Duration};
use world::Clock;
use world::payload::Bytes;

fn pattern(name: &str, clients: u32, bytes: u64) -> Access {
    name.parse::<Pattern>().unwrap().access(clients, 1, bytes).unwrap()
}

/// Every order of two writes by two strategies, then a read by a third.
#[test]
fn each_strategy_sees_what_the_others_wrote() {
    const BYTES: u64 = 700;
    for cache_blocks in [0, 1, 3, 100] {
        for (first, second, third) in triples() {
            let cluster = Cluster::new(Shape { cache_blocks, ..Shape::default() });
            let (one, two) = (image(1, BYTES), image(2, BYTES));
            // The second write leaves most bytes alone.
            let entry = |at: u64| ListEntry { file_offset: at, memory_offset: at, length: 33 };
            let lists =
                (0..4).map(|client| vec![entry(client * 170 + 5), entry(client * 170 + 60)]);
            let part = Access::lists(lists.collect());
            let (whole, all) = (pattern("wb", 4, BYTES), pattern("ra", 4, BYTES));
            let expected = overlay(&part, &one, &two);
            let got = cluster.run(0..4, |start| {
                let (one, two) = (one.clone(), two.clone());
                let (part, whole, all) = (part.clone(), whole.clone(), all.clone());
                async move {
                    let group = start.join(0).await.unwrap();
                    let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
                    let write = transfer(Direction::Write, &file, &whole, first);
                    write_image(&group, &write, &one).await.unwrap();
                    // Fills the cache with the old contents.
                    let read = transfer(Direction::Read, &file, &all, Strategy::Caching);
                    read_back(&group, &read).await.unwrap();
                    let write = transfer(Direction::Write, &file, &part, second);
                    write_image(&group, &write, &two).await.unwrap();
                    let read = transfer(Direction::Read, &file, &all, third);
                    read_back(&group, &read).await.unwrap()
                }
            });
            for bytes in got {
                expect_equal(&bytes, &expected, &format!("{first}, {second}, {third}"));
            }
        }
    }
}

fn triples() -> impl Iterator<Item = (Strategy, Strategy, Strategy)> {
    let all = Strategy::NAMED;
    (0..216).map(move |number| (all[number / 36], all[number / 6 % 6], all[number % 6]))
}

/// A reader uses the cache while others write the same file collectively: its reads may see old or
/// new bytes meanwhile, and only new ones afterwards.
#[test]
fn the_cache_keeps_nothing_that_a_collective_overwrote() {
    const BYTES: u64 = 1500;
    for_each_seed("coherence", "the_cache_keeps_nothing", 60, |seed| {
        let shape = Shape { clients: 3, cache_blocks: 1 + seed % 40, seed, ..Shape::default() };
        let cluster = Cluster::new(shape);
        let make = cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            client.create("f", BYTES, start.shape.stripe()).await.unwrap()
        });
        let (write, all) = (pattern("wc", 2, BYTES), pattern("ra", 1, BYTES));
        let new = image(seed, BYTES);
        let writing = Rc::new(Cell::new(2));
        let mut programs = cluster.programs(&[0, 1], |start| {
            let (write, new, writing) = (write.clone(), new.clone(), Rc::clone(&writing));
            async move {
                let group = start.join(0).await.unwrap();
                let file = group.client().open("f").await.unwrap();
                let write = transfer(Direction::Write, &file, &write, Strategy::DiskDirected);
                write_image(&group, &write, &new).await.unwrap();
                writing.set(writing.get() - 1);
            }
        });
        programs.extend(cluster.programs(&[2], |start| {
            let (file, writing) = (make.clone(), Rc::clone(&writing));
            async move {
                let group = start.join(1).await.unwrap();
                group.client().open("f").await.unwrap();
                // One block again and again: whenever the writers evict it, it comes back.
                let at = seed % (BYTES / 64) * 64;
                let block = ListEntry { file_offset: at, memory_offset: 0, length: 64 };
                let block = Access::lists(vec![vec![block]]);
                let read = transfer(Direction::Read, &file, &block, Strategy::Caching);
                while writing.get() > 0 {
                    read_back(&group, &read).await.unwrap();
                }
            }
        }));
        cluster.run_on(programs, None);
        let got = cluster.run_alone(2, |start| {
            let all = all.clone();
            async move {
                let group = start.join(2).await.unwrap();
                let file = group.client().open("f").await.unwrap();
                let read = transfer(Direction::Read, &file, &all, Strategy::Caching);
                read_back(&group, &read).await.unwrap()
            }
        });
        expect_equal(&got, &new, "what the cache shows after a collective write");
    });
}

/// Two groups, each with a file of its own, writing and reading at once, on the smallest cache.
#[test]
fn groups_and_files_do_not_mix() {
    for_each_seed("coherence", "groups_and_files_do_not_mix", 60, |seed| {
        let mut numbers = Numbers::new(seed);
        let cache_blocks = numbers.below(4);
        let shape =
            Shape { clients: 6, cache_blocks, disks_per_server: 2, seed, ..Shape::default() };
        let cluster = Cluster::new(shape);
        let member = |start: Start, number: u64, strategies: [Strategy; 3]| async move {
            let bytes = 600 + number * 77;
            let name = format!("file {number}");
            let contents = image(number, bytes);
            let clients = start.members.len() as u32;
            let group = start.join(number).await.unwrap();
            let file = create(&group, &name, bytes, start.shape.stripe()).await.unwrap();
            for (round, strategy) in strategies.into_iter().enumerate() {
                let write = pattern(["wc", "wb", "wn"][round], clients, bytes);
                let write = transfer(Direction::Write, &file, &write, strategy);
                write_image(&group, &write, &contents).await.unwrap();
                let read = pattern(["rb", "rc", "ra"][round], clients, bytes);
                let read = transfer(Direction::Read, &file, &read, strategies[2 - round]);
                let got = read_back(&group, &read).await.unwrap();
                let wanted = memory_of(&read.access, group.rank(), &contents);
                expect_equal(&got, &wanted, &format!("{name} with seed {seed}"));
            }
            group.leave().await;
        };
        let mut programs = Vec::new();
        for (number, clients) in [(1, vec![0, 1, 2]), (2, vec![3, 4]), (3, vec![5])] {
            let strategies = [0; 3].map(|_| numbers.pick(&Strategy::NAMED));
            programs.extend(cluster.programs(&clients, |start| member(start, number, strategies)));
        }
        cluster.run_on(programs, None);
    });
}

/// Runs of `length` bytes that member `member` of `members` owns, in turns.
fn stripes_of(member: u64, members: u64, length: u64, bytes: u64) -> Access {
    let starts = (member * length..bytes).step_by((members * length) as usize);
    let mut at = 0;
    let entries = starts.map(|file_offset| {
        let entry =
            ListEntry { file_offset, memory_offset: at, length: length.min(bytes - file_offset) };
        at += entry.length;
        entry
    });
    Access::lists(vec![entries.collect()])
}

/// The accesses of single clients as one of a group.
fn together(parts: &[Access]) -> Access {
    Access::Parts(parts.iter().map(|part| part.own_part(ClientId(0))).collect())
}

/// Two groups of two and two single clients write and read one file at the same time, by every
/// strategy, on the smallest caches. Each byte has one owner, which must find its last write
/// whatever happens to the rest of the block. Two-phase only reads: where others own bytes of a
/// segment, it writes back what it read of them (see ARCHITECTURE.md).
#[test]
fn owners_of_interleaved_bytes_do_not_disturb_one_another() {
    const BYTES: u64 = 1300;
    const ROUNDS: u64 = 5;
    for_each_seed("coherence", "owners_of_interleaved_bytes", 300, |seed| {
        let mut numbers = Numbers::new(seed);
        let shape = Shape {
            servers: 1 + numbers.below(2) as u32,
            disks_per_server: 1 + numbers.below(2) as u32,
            clients: 6,
            cache_blocks: numbers.below(7),
            seed,
            ..Shape::default()
        };
        let length = [1, 7, 32, 64, 100][numbers.below(5) as usize];
        let parts: Vec<Access> = (0..6).map(|it| stripes_of(it, 6, length, BYTES)).collect();
        let cluster = Cluster::new(shape);
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            client.create("f", BYTES, start.shape.stripe()).await.unwrap();
        });
        let alone = |strategy: &Strategy| *strategy != Strategy::TwoPhase;
        let writers: Vec<_> = Strategy::NAMED.into_iter().filter(alone).collect();
        let mut programs = Vec::new();
        for (number, clients) in [(0, vec![0, 1]), (1, vec![2, 3]), (2, vec![4]), (3, vec![5])] {
            let first = clients[0] as usize;
            let access = together(&parts[first..first + clients.len()]);
            let how: Vec<(Strategy, Strategy)> = (0..ROUNDS)
                .map(|_| (numbers.pick(&writers), numbers.pick(&Strategy::NAMED)))
                .collect();
            programs.extend(cluster.programs(&clients, |start| {
                let (access, how) = (access.clone(), how.clone());
                async move {
                    let group = start.join(number).await.unwrap();
                    let file = group.client().open("f").await.unwrap();
                    for (round, (write_by, read_by)) in (0..).zip(how) {
                        let contents = image(seed * ROUNDS + round, BYTES);
                        let write = transfer(Direction::Write, &file, &access, write_by);
                        write_image(&group, &write, &contents).await.unwrap();
                        let read = transfer(Direction::Read, &file, &access, read_by);
                        let got = read_back(&group, &read).await.unwrap();
                        let wanted = memory_of(&access, group.rank(), &contents);
                        let what = format!("group {number}: {write_by}, {read_by}, seed {seed}");
                        expect_equal(&got, &wanted, &what);
                    }
                    group.leave().await;
                }
            }));
        }
        cluster.run_on(programs, None);
        let last = image(seed * ROUNDS + ROUNDS - 1, BYTES);
        for (number, strategy) in (10..).zip(Strategy::NAMED) {
            let got = cluster.run_alone(2, |start| async move {
                let group = start.join(number).await.unwrap();
                let file = group.client().open("f").await.unwrap();
                let all = Access::All { bytes: BYTES, clients: 1 };
                let read = transfer(Direction::Read, &file, &all, strategy);
                read_back(&group, &read).await.unwrap()
            });
            expect_equal(&got, &last, &format!("the file in the end by {strategy}, seed {seed}"));
        }
    });
}

/// One client with memory too small: all members get the fault, and the group goes on.
#[test]
fn a_member_that_does_not_fit_fails_all_and_ends_nothing() {
    for strategy in Strategy::NAMED {
        let cluster = Cluster::new(Shape::default());
        let ended = cluster.run(0..4, |start| async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", 400, start.shape.stripe()).await.unwrap();
            let access = pattern("wb", 4, 400);
            let small = if group.rank() == ClientId(2) { 99 } else { 100 };
            let memory = share(&group, vec![1; small]).await.unwrap();
            let write = transfer(Direction::Write, &file, &access, strategy);
            let refused = group.transfer(&write, &memory).await;
            group.unshare(memory).await;
            write_image(&group, &write, &image(1, 400)).await.unwrap();
            refused
        });
        for refused in ended {
            assert!(matches!(refused, Err(Fault::BadAccess { .. })), "{strategy}: {refused:?}");
        }
    }
}

/// Clients join one group after another, with other ranks; some come before others know the group.
#[test]
fn a_client_can_join_one_group_after_another() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run(0..4, |start| async move {
        let client = start.connect().await.unwrap();
        for round in 0..4 {
            let rank = ClientId((start.rank.0 + round) % 4);
            let mut members = start.members.to_vec();
            members.rotate_right(round as usize);
            // The first member is late: the others are there before it opens the group.
            if rank == ClientId(0) {
                start.world.sleep(Duration::from_ms(20)).await;
            }
            let joined: Client<_> = client.clone();
            let group =
                PeerMesh::join(joined, u64::from(round), rank, members.into(), JOIN_TIMEOUT)
                    .await
                    .unwrap();
            let ranks = group.gather(u64::from(rank.0)).await.unwrap();
            match rank {
                ClientId(0) => assert_eq!(ranks, [0, 1, 2, 3]),
                _ => assert!(ranks.is_empty(), "{ranks:?}"),
            }
            // Some members leave with a message, others just disconnect.
            if round % 2 == 0 {
                group.leave().await;
            }
        }
    });
}
