//! Proves: what users declare of a file decides which of its blocks stay in the servers' caches and
//! what is read ahead; the bytes are the same whatever is declared.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::{Part, Strategy};
use filesystem::{Client, NewFile};
use policy::{Access, Buffering, Declared, Direction, ListEntry, Pool, Prefetch, Replacement};
use support::{
    Cluster, Numbers, Shape, expect_equal, for_each_seed, image, memory_of, read_back, share,
    transfer, write_image,
};
use units::ClientId;
use wire::{BufferStatistics, Fault, FileRecord, Made};
use world::payload::Bytes;
use world_simulated::SimulatedWorld;

type TestClient = Client<SimulatedWorld<Bytes>>;

const BLOCK: u64 = 64;

fn new_file(shape: &Shape, blocks: u64, buffering: Buffering) -> NewFile {
    let (name, made) = ("f".to_owned(), Made::default());
    let (stripe, pool) = (shape.stripe(), Pool::all(shape.servers));
    NewFile { name, bytes: blocks * BLOCK, stripe, pool, buffering, made }
}

/// What became of `reads`, each a block, made one after the other by one client of one server.
fn after_reads(cache_blocks: u64, buffering: Buffering, reads: Vec<u64>) -> BufferStatistics {
    let shape = Shape { servers: 1, clients: 1, cache_blocks, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| {
        let reads = reads.clone();
        async move {
            let group = start.join(0).await.unwrap();
            let new = new_file(&start.shape, 20, buffering);
            let file = group.client().create_as(new).await.unwrap();
            let memory = share(&group, vec![0; BLOCK as usize]).await.unwrap();
            for block in reads {
                let (file_offset, memory_offset, length) = (block * BLOCK, 0, BLOCK);
                let entry = ListEntry { file_offset, memory_offset, length };
                let access = Access::List(vec![vec![entry]]);
                let read = transfer(Direction::Read, &file, &access, Strategy::Caching);
                group.transfer(&read, &memory).await.unwrap();
            }
            let all = group.client().buffers(&file).await.unwrap();
            assert_eq!(all.len(), 1);
            all[0]
        }
    })
}

fn replaced_by(replacement: Replacement) -> Buffering {
    let (replacement, prefetch) = (Some(replacement), Some(Prefetch::Nothing));
    Buffering { replacement, prefetch, ..Buffering::default() }
}

#[test]
fn loops_keep_what_they_will_need() {
    let reads: Vec<u64> = (0..5).flat_map(|_| 0..8).collect();
    let of = |replacement| after_reads(6, replaced_by(replacement), reads.clone());
    let lru = of(Replacement::Lru);
    assert_eq!((lru.hits, lru.misses, lru.evictions), (0, 40, 34), "always the next one is gone");
    for better in [Replacement::Mru, Replacement::LoopAware] {
        let found = of(better);
        assert!(found.hits >= 20, "{better}: {found:?}");
        assert_eq!(found.hits + found.misses, 40);
        assert_eq!(found.evictions, found.misses - 6);
    }
    let declared = Declared::LoopingSequential;
    let prefetch = Some(Prefetch::Nothing);
    let declared = Buffering { declared, prefetch, ..Buffering::default() };
    assert_eq!(after_reads(6, declared, reads.clone()), of(Replacement::LoopAware));
}

#[test]
fn a_file_holds_no_more_than_it_may() {
    let limited = Buffering { blocks_max: 2, ..replaced_by(Replacement::Lru) };
    let reads = vec![0, 1, 2, 0, 1, 2];
    assert_eq!(after_reads(6, limited, reads.clone()).hits, 0);
    assert_eq!(after_reads(6, replaced_by(Replacement::Lru), reads).hits, 3);
}

#[test]
fn what_was_read_ahead_and_not_used_is_counted() {
    let next = Buffering { prefetch: Some(Prefetch::Next), ..Buffering::default() };
    // Each read brings in the block after it; block 1 is used, 11 to 17 are not.
    let found = after_reads(3, next, vec![0, 1, 10, 12, 14, 16]);
    assert_eq!((found.hits, found.misses), (1, 5));
    assert_eq!(found.prefetched, 6);
    assert!(found.prefetched_unused >= 3, "{found:?}");
}

/// Reads every block of a file once, `order` saying who asks for which, each client one at a time.
async fn read_blocks(client: &TestClient, file: &FileRecord, blocks: Vec<u64>) {
    for block in blocks {
        let part = Part {
            direction: Direction::Read,
            file: file.clone(),
            access: Access::List(vec![vec![ListEntry {
                file_offset: block * BLOCK,
                memory_offset: 0,
                length: BLOCK,
            }]]),
            client: ClientId(0),
            order: policy::DiskOrder::Sorted,
            sync: false,
        };
        let memory = world::Payloads::memory(client.world(), BLOCK);
        client.transfer_part(&part, &memory).await.unwrap();
    }
}

#[test]
fn the_bytes_are_the_same_whatever_is_declared() {
    const DECLARED: [Declared; 6] = [
        Declared::Unknown,
        Declared::Sequential,
        Declared::LoopingSequential,
        Declared::LoopingRandom,
        Declared::Random,
        Declared::GlobalSequential,
    ];
    for_each_seed("buffering", "the_bytes_are_the_same_whatever_is_declared", 60, |seed| {
        let mut numbers = Numbers::new(seed);
        let (cache_blocks, blocks) = (1 + numbers.below(12), 1 + numbers.below(40));
        let buffering = Buffering {
            declared: numbers.pick(&DECLARED),
            blocks_min: numbers.below(4) as u32,
            blocks_max: [0, 4, 5][numbers.below(3) as usize],
            prefetch: numbers.pick(&[None, Some(Prefetch::Window(3)), Some(Prefetch::Next)]),
            replacement: numbers.pick(&[None, Some(Replacement::Mru), Some(Replacement::Random)]),
        };
        let cluster = Cluster::<Bytes>::new(Shape { cache_blocks, seed, ..Shape::default() });
        let content = image(seed, blocks * BLOCK);
        let record = 1 + numbers.below(100);
        let access = |word: &str| {
            let pattern: policy::Pattern = word.parse().unwrap();
            pattern.access(4, record, blocks * BLOCK / record * record)
        };
        let (Ok(write), Ok(read)) = (access("wc"), access("rb")) else { return };
        let whole = (blocks * BLOCK / record * record) as usize;
        cluster.run(0..4, |start| {
            let (content, write, read) = (content[..whole].to_vec(), write.clone(), read.clone());
            async move {
                let group = start.join(0).await.unwrap();
                let made = match group.rank() {
                    ClientId(0) => {
                        let new = new_file(&start.shape, blocks, buffering);
                        let new = NewFile { bytes: whole as u64, ..new };
                        group.client().create_as(new).await.map(|_| ())
                    }
                    _ => Ok(()),
                };
                group.agree(made).await.unwrap();
                let file = group.client().open("f").await.unwrap();
                let written = transfer(Direction::Write, &file, &write, Strategy::Caching);
                write_image(&group, &written, &content).await.unwrap();
                for _ in 0..2 {
                    let again = transfer(Direction::Read, &file, &read, Strategy::Caching);
                    let found = read_back(&group, &again).await.unwrap();
                    let expected = memory_of(&read, group.rank(), &content);
                    expect_equal(&found, &expected, &format!("{buffering:?}"));
                }
            }
        });
    });
}

#[test]
fn a_closed_file_is_not_open() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.create("f", 640, start.shape.stripe()).await.unwrap();
        client.flush(&file, false).await.unwrap();
        client.close(&file).await.unwrap();
        let fault = client.flush(&file, false).await.unwrap_err();
        assert!(matches!(fault, Fault::BadRequest { .. }), "{fault}");
        client.open("f").await.unwrap();
        client.flush(&file, false).await.unwrap();
        read_blocks(&client, &file, vec![3, 1]).await;
    });
}
