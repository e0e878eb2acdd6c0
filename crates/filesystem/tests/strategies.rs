//! Proves: data written in one distribution by one strategy is read in any other by any strategy,
//! byte for byte. Bytes that no client writes keep their values.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use policy::{Access, Direction, Level, ListEntry, Nested, Pattern};
use proptest::prelude::*;
use support::{
    Cluster, Numbers, Shape, create, expect_equal, image, memory_of, overlay, read_back, transfer,
    write_image,
};
use units::ClientId;
use world::payload::Bytes;

/// The patterns of the papers without their direction.
const PATTERNS: [&str; 11] = ["a", "n", "b", "c", "nb", "bb", "bc", "cn", "cb", "cc", "nn"];

fn pattern(direction: char, letters: &str, clients: u32, record: u64, file: u64) -> Access {
    let name = match letters {
        "nn" => format!("{direction}:none,none"),
        _ => format!("{direction}{letters}"),
    };
    name.parse::<Pattern>().unwrap().access(clients, record, file).unwrap()
}

/// One write of a whole or partial image, then reads by every strategy.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    file_bytes: u64,
    write: Access,
    write_by: Strategy,
    reads: Vec<Access>,
}

fn check(case: Case) {
    let cluster = Cluster::new(case.shape.clone());
    let Case { shape, file_bytes, write, write_by, reads } = case.clone();
    let (old, new) = (image(1, file_bytes), image(2, file_bytes));
    let expected = overlay(&write, &old, &new);
    let results = cluster.run(0..shape.clients, |start| {
        let (write, reads) = (write.clone(), reads.clone());
        let (old, new, shape) = (old.clone(), new.clone(), shape.clone());
        async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", file_bytes, shape.stripe()).await.unwrap();
            // The old contents come by way of another strategy and distribution.
            let whole = pattern('w', "b", shape.clients, 1, file_bytes);
            let before = match write_by {
                Strategy::DiskDirected => Strategy::Caching,
                _ => Strategy::DiskDirected,
            };
            let first = transfer(Direction::Write, &file, &whole, before);
            write_image(&group, &first, &old).await.unwrap();
            let second = transfer(Direction::Write, &file, &write, write_by);
            write_image(&group, &second, &new).await.unwrap();
            let mut got = Vec::new();
            for access in &reads {
                for strategy in Strategy::NAMED {
                    let read = transfer(Direction::Read, &file, access, strategy);
                    got.push((strategy, read_back(&group, &read).await.unwrap()));
                }
            }
            group.leave().await;
            got
        }
    });
    for (rank, got) in results.into_iter().enumerate() {
        for (index, (strategy, bytes)) in got.into_iter().enumerate() {
            let access = &case.reads[index / Strategy::NAMED.len()];
            let wanted = memory_of(access, ClientId(rank as u32), &expected);
            let what = format!("the memory of client {rank} after {strategy} of {case:?}");
            expect_equal(&bytes, &wanted, &what);
        }
    }
}

/// Servers, disks of each, clients, block, record, number of records.
const SHAPES: [(u32, u32, u32, u64, u64, u64); 9] = [
    (1, 1, 1, 64, 8, 64),    // everything alone
    (2, 1, 4, 64, 8, 96),    // records smaller than a block, all divides
    (2, 2, 4, 64, 24, 35),   // records do not divide blocks, the last block is short
    (3, 1, 3, 40, 100, 12),  // records larger than a block
    (4, 2, 3, 128, 64, 5),   // more disks than blocks
    (2, 1, 7, 64, 16, 6),    // clients that own nothing
    (1, 3, 5, 50, 7, 61),    // nothing divides anything
    (3, 2, 6, 512, 1, 1000), // single bytes
    (2, 1, 9, 256, 250, 2),  // more clients than blocks
];

#[test]
fn every_pattern_is_written_and_read_by_every_strategy() {
    for (servers, disks_per_server, clients, block_bytes, record, records) in SHAPES {
        let shape = Shape { servers, disks_per_server, clients, block_bytes, ..Shape::default() };
        let file_bytes = record * records;
        for (number, letters) in PATTERNS.iter().enumerate() {
            if *letters == "a" {
                continue;
            }
            let reads = [number, number + 3, 0].map(|other| {
                pattern('r', PATTERNS[other % PATTERNS.len()], clients, record, file_bytes)
            });
            check(Case {
                shape: shape.clone(),
                file_bytes,
                write: pattern('w', letters, clients, record, file_bytes),
                write_by: Strategy::NAMED[(number + clients as usize) % 6],
                reads: reads.to_vec(),
            });
        }
    }
}

#[test]
fn the_smallest_cache_is_enough() {
    for write_by in Strategy::NAMED {
        for (write, read) in [("c", "bc"), ("cb", "c"), ("n", "a")] {
            let shape = Shape { cache_blocks: 0, disks_per_server: 2, ..Shape::default() };
            check(Case {
                file_bytes: 24 * 40,
                write: pattern('w', write, shape.clients, 24, 24 * 40),
                write_by,
                reads: vec![pattern('r', read, shape.clients, 24, 24 * 40)],
                shape,
            });
        }
    }
}

fn entry(file_offset: u64, memory_offset: u64, length: u64) -> ListEntry {
    ListEntry { file_offset, memory_offset, length }
}

#[test]
fn lists_with_holes_leave_the_rest_alone() {
    let lists = Access::lists(vec![
        vec![entry(3, 10, 5), entry(100, 0, 7), entry(640, 40, 128)],
        vec![],
        vec![entry(8, 0, 1), entry(63, 1, 2), entry(300, 3, 300)],
        vec![entry(901, 5, 20)],
    ]);
    for write_by in Strategy::NAMED {
        check(Case {
            shape: Shape::default(),
            file_bytes: 950,
            write: lists.clone(),
            write_by,
            reads: vec![lists.clone(), pattern('r', "a", 4, 1, 950)],
        });
    }
}

fn nested(file_offset: u64, length: u64, levels: &[(u64, u64, u64)]) -> Nested {
    let level = |&(count, file_stride, memory_stride): &(u64, u64, u64)| Level {
        count,
        file_stride,
        memory_stride,
    };
    let levels = levels.iter().map(level).collect();
    Nested { file_offset, memory_offset: 0, length, levels }
}

#[test]
fn nested_strides_with_holes_leave_the_rest_alone() {
    let access = Access::nested(vec![
        nested(0, 3, &[(10, 12, 3), (4, 200, 30)]),
        nested(4, 5, &[(10, 12, 7), (4, 200, 70)]),
        nested(0, 0, &[]),
        nested(850, 100, &[]),
    ]);
    for write_by in Strategy::NAMED {
        check(Case {
            shape: Shape::default(),
            file_bytes: 1000,
            write: access.clone(),
            write_by,
            reads: vec![access.clone(), pattern('r', "cc", 4, 10, 1000)],
        });
    }
}

#[test]
fn clients_that_write_the_same_bytes_spoil_no_others() {
    // Both write the first half of every block, so that the sizes add up to whole blocks.
    let half = nested(0, 32, &[(8, 64, 32)]);
    let access = Access::nested(vec![half.clone(), half]);
    for write_by in Strategy::NAMED {
        let shape = Shape { clients: 2, ..Shape::default() };
        check(Case {
            shape,
            file_bytes: 512,
            write: access.clone(),
            write_by,
            reads: vec![pattern('r', "a", 2, 1, 512)],
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_list_and_any_shape(seed in any::<u64>()) {
        let mut numbers = Numbers::new(seed);
        let shape = Shape {
            servers: 1 + numbers.below(3) as u32,
            disks_per_server: 1 + numbers.below(2) as u32,
            clients: 1 + numbers.below(5) as u32,
            block_bytes: 1 + numbers.below(100),
            cache_blocks: numbers.below(6),
            seed,
            ..Shape::default()
        };
        let file_bytes = 1 + numbers.below(900);
        check(Case {
            write: random_list(&mut numbers, shape.clients, file_bytes),
            write_by: numbers.pick(&Strategy::NAMED),
            reads: vec![
                random_list(&mut numbers, shape.clients, file_bytes),
                pattern('r', "a", shape.clients, 1, file_bytes),
            ],
            shape,
            file_bytes,
        });
    }
}

/// Pieces in file order, dealt to clients at random, some to nobody; memory with gaps.
fn random_list(numbers: &mut Numbers, clients: u32, file_bytes: u64) -> Access {
    let mut lists = vec![Vec::new(); clients as usize];
    let mut memory = vec![0; clients as usize];
    let mut at = 0;
    loop {
        at += numbers.below(30);
        let length = 1 + numbers.below(90);
        if at + length > file_bytes {
            return Access::lists(lists);
        }
        let client = numbers.below(u64::from(clients)) as usize;
        memory[client] += numbers.below(5);
        lists[client].push(entry(at, memory[client], length));
        memory[client] += length;
        at += length;
    }
}

#[test]
fn digests_are_those_of_what_was_written() {
    for strategy in Strategy::NAMED {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..Shape::default() });
        cluster.run(0..2, |start| async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", 1000, start.shape.stripe()).await.unwrap();
            let access = "wb".parse::<policy::Pattern>().unwrap().access(2, 10, 1000).unwrap();
            for seed in [1, 2] {
                let content = image(seed, 1000);
                let write = transfer(Direction::Write, &file, &access, strategy);
                write_image(&group, &write, &content).await.unwrap();
                for (block, bytes) in content.chunks(64).enumerate() {
                    let digests = group.client().digests(&file, block as u64, 10).await.unwrap();
                    let expected: Vec<u32> = bytes
                        .chunks(10)
                        .map(|piece| world::Payload::digest(&Bytes::from(piece.to_vec())))
                        .collect();
                    assert_eq!(digests, expected, "{strategy}, block {block}");
                }
                group.barrier().await.unwrap();
            }
        });
    }
}
