//! Proves: the declared buffering of a file decides which of its blocks stay cached and which are
//! prefetched, and never changes the bytes. Dirty blocks are written back in the background, above
//! the high-water mark and when a file is closed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::{Part, Strategy};
use filesystem::{BufferPool, Client, NewFile};
use policy::{
    Access, Buffering, Declared, Direction, ListEntry, PolicyName, Pool, Prefetch, Protection,
    Replacement, ReplacementPolicies, ReplacementPolicy,
};
use std::collections::BTreeMap;
use support::{
    Cluster, Numbers, Shape, expect_equal, for_each_seed, image, memory_of, read_back, share,
    start_server, transfer, write_image,
};
use units::{ClientId, Duration, Instant};
use wire::{BufferStatistics, Fault, FileDefaults, FileRecord, Made};
use world::Clock;
use world::payload::Bytes;
use world_simulated::{Disruption, FaultPlan, PlannedFault, SimulatedWorld};

type TestClient = Client<SimulatedWorld<Bytes>>;

const BLOCK: u64 = 64;

fn new_file(shape: &Shape, blocks: u64, buffering: Buffering) -> NewFile {
    let (name, made) = ("f".to_owned(), Made::default());
    let (stripe, pool) = (shape.stripe(), Pool::all(shape.servers));
    let (bytes, protection) = (blocks * BLOCK, Protection::None);
    NewFile { name, bytes, stripe, pool, buffering, protection, made }
}

/// Returns the statistics of `reads`, each of one block, made one after the other by one client of
/// one server.
fn after_reads(cache_blocks: u64, buffering: Buffering, reads: Vec<u64>) -> BufferStatistics {
    let shape = Shape { servers: 1, clients: 1, cache_blocks, ..Shape::default() };
    after_reads_on(shape, buffering, reads)
}

fn after_reads_on(shape: Shape, buffering: Buffering, reads: Vec<u64>) -> BufferStatistics {
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
                let access = Access::lists(vec![vec![entry]]);
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

/// FIFO: the block that came first is evicted first, however often it is used.
#[derive(Debug, Default)]
struct Fifo {
    arrivals: BTreeMap<u64, u64>,
    next: u64,
}

impl ReplacementPolicy for Fifo {
    fn used(&mut self, block: u64, _: bool) {
        if !self.arrivals.values().any(|there| *there == block) {
            self.arrivals.insert(self.next, block);
            self.next += 1;
        }
    }
    fn left(&mut self, block: u64) {
        self.arrivals.retain(|_, there| *there != block);
    }
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(self.arrivals.values().copied())
    }
    fn count(&self) -> usize {
        self.arrivals.len()
    }
}

#[test]
fn a_rule_that_servers_brought_along_decides() {
    let fifo: PolicyName = "fifo".parse().unwrap();
    let policies = ReplacementPolicies::default().with(fifo, || Box::<Fifo>::default()).unwrap();
    let shape = Shape { servers: 1, clients: 1, cache_blocks: 3, policies, ..Shape::default() };
    // Block 0 is used before each new one: LRU keeps it, this policy does not.
    let reads = vec![0, 1, 0, 2, 0, 3, 0, 4, 0];
    let custom = replaced_by(Replacement::Custom(fifo));
    assert_eq!(after_reads_on(shape.clone(), custom, reads.clone()).hits, 3);
    assert_eq!(after_reads_on(shape, replaced_by(Replacement::Lru), reads).hits, 4);
}

#[test]
fn a_rule_that_is_not_there_is_refused_but_data_is_not() {
    let fifo: PolicyName = "fifo".parse().unwrap();
    let policies = ReplacementPolicies::default().with(fifo, || Box::<Fifo>::default()).unwrap();
    let custom = replaced_by(Replacement::Custom(fifo));
    let shape = Shape { servers: 1, clients: 1, policies, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape.clone());
    cluster.run_alone(0, |start| async move {
        let group = start.join(0).await.unwrap();
        let file = group.client().create_as(new_file(&start.shape, 20, custom)).await.unwrap();
        write_beginnings(group.client(), &file, 0..20, &[7; 64]).await;
        group.client().flush(&file, true).await.unwrap();
        group.client().stop_servers().await.unwrap();
    });
    cluster.machine.kill(0);
    cluster.machine.restart(0);
    let usual = Shape { policies: ReplacementPolicies::default(), ..shape };
    let _server = start_server(&cluster.machine, &usual, 0);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        read_blocks(&client, &file, (0..20).collect()).await;
        let new = NewFile { name: "g".to_owned(), ..new_file(&start.shape, 20, custom) };
        let defaults = FileDefaults { buffering: custom, ..FileDefaults::default() };
        for refused in
            [client.create_as(new).await.err(), client.set_defaults("", defaults).await.err()]
        {
            let Some(Fault::BadRequest { cause }) = refused else { panic!("{refused:?}") };
            assert!(cause.contains("custom:fifo"), "{cause}");
        }
        assert_eq!(client.list("").await.unwrap().len(), 1);
    });
}

#[test]
fn a_file_holds_no_more_than_it_may() {
    let limited = Buffering { blocks_max: 2, ..replaced_by(Replacement::Lru) };
    let reads = vec![0, 1, 2, 0, 1, 2];
    assert_eq!(after_reads(6, limited, reads.clone()).hits, 0);
    assert_eq!(after_reads(6, replaced_by(Replacement::Lru), reads).hits, 3);
}

#[test]
fn unused_prefetched_blocks_are_counted() {
    let next = Buffering { prefetch: Some(Prefetch::Next), ..Buffering::default() };
    // Each read brings in the block after it; block 1 is used, 11 to 17 are not.
    let found = after_reads(3, next, vec![0, 1, 10, 12, 14, 16]);
    assert_eq!((found.hits, found.misses), (1, 5));
    assert_eq!(found.prefetched, 6);
    assert!(found.prefetched_unused >= 3, "{found:?}");
}

/// Reads every block of a file once. `order` names the client of each read; each client has one
/// read at a time.
async fn read_blocks(client: &TestClient, file: &FileRecord, blocks: Vec<u64>) {
    for block in blocks {
        let part = Part {
            direction: Direction::Read,
            file: file.clone(),
            access: Access::lists(vec![vec![ListEntry {
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

/// Writes the first bytes of each of these blocks, as many as `content` has, without a flush.
async fn write_beginnings(
    client: &TestClient,
    file: &FileRecord,
    blocks: std::ops::Range<u64>,
    content: &[u8],
) {
    let pool = BufferPool::new(client, BLOCK).await.unwrap();
    let buffer = pool.take(content.len() as u64).unwrap();
    buffer.fill(&content.to_vec().into());
    for block in blocks {
        buffer.transfer(Direction::Write, file, block * BLOCK).await.unwrap();
    }
}

/// Number of blocks that the servers' disks lack, after all background work has ended.
async fn dirty_blocks(client: &TestClient) -> u64 {
    client.world().sleep(Duration::from_ms(100)).await;
    let all = client.status().await;
    all.into_iter().map(|one| one.unwrap().dirty_bytes).sum::<u64>() / BLOCK
}

#[test]
fn oldest_dirty_blocks_are_written_back_above_the_high_mark() {
    // Of 5 of one disk 2 are left, and the other disk's 4.
    for (dirty_percent, left) in [(100, 9), (50, 6), (0, 0)] {
        let shape = Shape { servers: 1, clients: 1, disks_per_server: 2, ..Shape::default() };
        let cluster = Cluster::<Bytes>::new(Shape { dirty_percent, ..shape });
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 16 * BLOCK, start.shape.stripe()).await.unwrap();
            write_beginnings(&client, &file, 0..8, &[1; 40]).await;
            let expected = if dirty_percent == 0 { 0 } else { 8 };
            assert_eq!(
                dirty_blocks(&client).await,
                expected,
                "half of each disk's part may be dirty"
            );
            write_beginnings(&client, &file, 8..9, &[1; 40]).await;
            assert_eq!(dirty_blocks(&client).await, left);
            // The newest are those that are left; they can be written again, and so can the others.
            write_beginnings(&client, &file, 0..16, &[2; 30]).await;
            let pool = BufferPool::new(&client, 16 * BLOCK).await.unwrap();
            let buffer = pool.take(16 * BLOCK).unwrap();
            buffer.transfer(Direction::Read, &file, 0).await.unwrap();
            for (block, read) in buffer.payload().chunks(BLOCK as usize).enumerate() {
                let old = if block < 9 { 1 } else { 0 };
                let expected = [[2; 30].as_slice(), &[old; 10], &[0; 24]].concat();
                expect_equal(read, &expected, &format!("block {block}, {dirty_percent} %"));
            }
            client.flush(&file, true).await.unwrap();
            assert_eq!(dirty_blocks(&client).await, 0);
        });
    }
}

#[test]
fn closed_file_is_written_back() {
    for leaves in [false, true] {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..Shape::default() });
        cluster.run(0..2, |start| async move {
            let group = start.join(0).await.unwrap();
            let (client, is_first) = (group.client(), group.rank() == ClientId(0));
            if is_first {
                let made = client.create("f", 10 * BLOCK, start.shape.stripe()).await.unwrap();
                client.close(&made).await.unwrap();
            }
            group.barrier().await.unwrap();
            let file = client.open("f").await.unwrap();
            let again = client.open("f").await.unwrap();
            client.close(&again).await.unwrap();
            group.barrier().await.unwrap();
            if is_first {
                write_beginnings(client, &file, 0..10, &[7; 40]).await;
                client.close(&file).await.unwrap();
                assert_eq!(dirty_blocks(client).await, 10, "the other has it open");
            }
            group.barrier().await.unwrap();
            match (is_first, leaves) {
                (true, _) => assert_eq!(dirty_blocks(client).await, 0),
                (false, true) => group.leave().await,
                (false, false) => client.close(&file).await.unwrap(),
            }
        });
    }
}

#[test]
fn failed_write_behind_is_reported_at_the_next_flush() {
    for (dirty_percent, closes) in [(0, false), (50, false), (100, true)] {
        let shape = Shape { servers: 1, clients: 1, dirty_percent, ..Shape::default() };
        let cluster = Cluster::<Bytes>::new(shape);
        let fault = |at, fails| PlannedFault {
            at: Instant::START + Duration::from_ms(at),
            what: Disruption::DiskFails { node: 0, disk: 0, fails },
        };
        let faults = vec![fault(50, true), fault(500, false)];
        cluster.machine.plan(&FaultPlan { seed: 1, faults, ..FaultPlan::default() }, |_| {});
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 16 * BLOCK, start.shape.stripe()).await.unwrap();
            start.world.sleep_until(Instant::START + Duration::from_ms(100)).await;
            write_beginnings(&client, &file, 0..9, &[1; 40]).await;
            if closes {
                client.close(&file).await.unwrap();
            }
            assert!(dirty_blocks(&client).await <= 4);
            start.world.sleep_until(Instant::START + Duration::from_ms(600)).await;
            client.open("f").await.unwrap();
            let told = client.flush(&file, true).await;
            assert!(matches!(told, Err(Fault::DiskFailed { .. })), "{dirty_percent}: {told:?}");
            client.flush(&file, true).await.unwrap();
        });
    }
}
