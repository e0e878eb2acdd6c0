//! Proves: a client alone reads and writes its part, of any kind. Requests of several clients meet
//! in the cache, where one disk read serves all. A killed client disturbs no other. Invalid parts
//! are refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::Fault;
use filesystem::collective::{Part, Strategy};
use policy::{Access, Direction, DiskOrder, Level, ListEntry, Nested, OwnPart, Pattern};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use support::{
    Cluster, Kill, Numbers, Shape, Start, create, expect_equal, for_each_seed, image, memory_of,
    overlay, transfer,
};
use units::{ClientId, Duration, Instant};
use wire::FileRecord;
use world::payload::{Bytes, Phantom};
use world::{Clock, Memory, Payloads};
use world_simulated::{Engine, Link, Mark, Recorder, Slice, What};

fn pattern(name: &str, clients: u32, record: u64, bytes: u64) -> Access {
    name.parse::<Pattern>().unwrap().access(clients, record, bytes).unwrap()
}

fn part(direction: Direction, file: &FileRecord, access: &Access, client: u32) -> Part {
    let (file, access, client) = (file.clone(), access.clone(), ClientId(client));
    Part { direction, file, access, client, order: DiskOrder::Sorted, sync: false }
}

type Client = filesystem::Client<world_simulated::SimulatedWorld<Bytes>>;

/// Writes one client's part of `image`.
async fn write(
    client: &Client,
    file: &FileRecord,
    access: &Access,
    rank: u32,
    image: &[u8],
) -> Result<(), Fault> {
    let own = memory_of(access, ClientId(rank), image);
    let memory = client.world().thaw(own.into());
    client.transfer_part(&part(Direction::Write, file, access, rank), &memory).await
}

/// Reads one client's part; bytes of memory that are not part of it are 0xee.
async fn read(
    client: &Client,
    file: &FileRecord,
    access: &Access,
    rank: u32,
) -> Result<Vec<u8>, Fault> {
    let length = access.memory_bytes(ClientId(rank)) as usize;
    let memory = client.world().thaw(vec![0xee; length].into());
    client.transfer_part(&part(Direction::Read, file, access, rank), &memory).await?;
    Ok(memory.freeze().to_vec())
}

/// Accesses of four clients to 1000 bytes, all of which leave gaps for the other clients.
fn accesses() -> Vec<Access> {
    let entry =
        |file_offset, memory_offset, length| ListEntry { file_offset, memory_offset, length };
    let strided = |client: u64| Nested {
        file_offset: client * 6,
        memory_offset: 3,
        length: 5,
        levels: vec![
            Level { count: 7, file_stride: 24, memory_stride: 9 },
            Level { count: 5, file_stride: 190, memory_stride: 80 },
        ],
    };
    let list = |client: u64| vec![entry(client * 100, 7, 33), entry(600 + client * 9, 50, 8)];
    // A union whose nests go backwards, and have some bytes of the file twice.
    let union = |client: u64| {
        let level = |count| vec![Level { count, file_stride: 20, memory_stride: 10 }];
        let nest = |file_offset, memory_offset, count| Nested {
            file_offset: client * 240 + file_offset,
            memory_offset,
            length: 6,
            levels: level(count),
        };
        OwnPart::Nested(vec![nest(108, 100, 5), nest(2, 0, 10), nest(4, 200, 3)])
    };
    let patterns = ["wb", "wc", "wn", "wbc", "wcb", "wcc"];
    let patterns = patterns.map(|name| pattern(name, 4, 10, 1000));
    let others = [
        Access::nested((0..4).map(strided).collect()),
        Access::lists((0..4).map(list).collect()),
        Access::Parts((0..4).map(union).collect()),
    ];
    patterns.into_iter().chain(others).collect()
}

#[test]
fn clients_write_and_read_their_parts_alone() {
    for (number, access) in (0..).zip(accesses()) {
        for cache_blocks in [0, 3, 100] {
            let shape = Shape { cache_blocks, disks_per_server: 2, ..Shape::default() };
            let cluster = Cluster::new(shape);
            let (old, new) = (image(1, 1000), image(2, 1000));
            let expected = overlay(&access, &old, &new);
            cluster.run_alone(0, |start| {
                let old = old.clone();
                async move {
                    let client = start.connect().await.unwrap();
                    let file = client.create("f", 1000, start.shape.stripe()).await.unwrap();
                    let all = Access::All { bytes: 1000, clients: 1 };
                    write(&client, &file, &all, 0, &old).await.unwrap();
                }
            });
            // Each client begins at a random time, and reads its part as soon as it has written it.
            let got = cluster.run(0..4, |start| {
                let (access, new) = (access.clone(), new.clone());
                async move {
                    let rank = start.rank.0;
                    start.world.sleep(Duration::from_us(u64::from(rank) * 300 * number)).await;
                    let client = start.connect().await.unwrap();
                    let file = client.open("f").await.unwrap();
                    write(&client, &file, &access, rank, &new).await.unwrap();
                    read(&client, &file, &access, rank).await.unwrap()
                }
            });
            for (rank, bytes) in (0..).map(ClientId).zip(got) {
                let wanted = memory_of(&access, rank, &expected);
                expect_equal(&bytes, &wanted, &format!("the part of {rank} of {access:?}"));
            }
            let whole = cluster.run_alone(1, |start| async move {
                let client = start.connect().await.unwrap();
                let file = client.open("f").await.unwrap();
                // One of several clients with the whole file: no other need take part.
                let all = Access::All { bytes: 1000, clients: 3 };
                read(&client, &file, &all, 2).await.unwrap()
            });
            expect_equal(&whole, &expected, &format!("the file after {access:?}"));
        }
    }
}

/// Counts the commands of disks.
#[derive(Default)]
struct Commands {
    reads: u64,
    writes: u64,
}

impl Recorder for Commands {
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
        match slice.what {
            What::Command { reads: true, .. } => self.reads += 1,
            What::Command { reads: false, .. } => self.writes += 1,
            _ => {}
        }
        None
    }

    fn arrow(&mut self, _link: Link, _from: Mark, _to: Mark) {}
}

/// Disk commands, reads and writes, of eight clients with 8-byte pieces in every one of 40 blocks,
/// with room for 32 of them on two servers, when each begins `lag` after the one before it.
fn commands_of(name: &'static str, lag: Duration) -> (u64, u64) {
    const BYTES: u64 = 40 * 64;
    let shape = Shape { clients: 8, cache_blocks: 16, ..Shape::default() };
    let commands = Rc::new(RefCell::new(Commands::default()));
    let engine = Engine::recorded(Rc::clone(&commands) as Rc<RefCell<dyn Recorder>>);
    let cluster = Cluster::<Phantom>::on(engine, shape);
    let access = pattern(name, 8, 8, BYTES);
    let direction = name.parse::<Pattern>().unwrap().direction;
    cluster.run(0..8, |start| {
        let access = access.clone();
        async move {
            // A group only to open the file, and to flush once.
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
            let rank = start.rank.0;
            let memory = start.world.memory(access.memory_bytes(start.rank));
            if lag == Duration::ZERO {
                let memory = group.share(memory).await.unwrap();
                let transfer = transfer(direction, &file, &access, Strategy::Noncollective);
                group.transfer(&transfer, &memory).await.unwrap();
            } else {
                start.world.sleep(Duration::from_ns(lag.as_ns() * u64::from(rank))).await;
                let part = part(direction, &file, &access, rank);
                group.client().transfer_part(&part, &memory).await.unwrap();
            }
        }
    });
    let commands = commands.borrow();
    (commands.reads, commands.writes)
}

#[test]
fn requests_for_one_block_meet_in_the_cache() {
    // Together: each block is read once, or written once, for all eight.
    assert_eq!(commands_of("rc", Duration::ZERO), (40, 0));
    assert_eq!(commands_of("wc", Duration::ZERO), (0, 40));
    // One by one: the first reads all 40; each other finds the 32 that are left, takes them before
    // it turns to the disk, and reads 8.
    assert_eq!(commands_of("rc", Duration::from_ms(100)), (40 + 7 * 8, 0));
    // A client that writes alone writes an eighth of each block.
    assert_eq!(commands_of("wc", Duration::from_ms(100)), (0, 8 * 40));
}

/// Clients write and read their parts again and again, each alone; one is killed.
#[test]
fn a_client_that_is_killed_disturbs_no_other() {
    const BYTES: u64 = 2000;
    for_each_seed("noncollective", "a_client_that_is_killed", 300, |seed| {
        let mut numbers = Numbers::new(seed);
        let shape = Shape {
            servers: 1 + numbers.below(3) as u32,
            disks_per_server: 1 + numbers.below(2) as u32,
            cache_blocks: numbers.below(9),
            seed,
            ..Shape::default()
        };
        let victim = numbers.below(4) as u32;
        let access = pattern(numbers.pick(&["wc", "wb", "wcb"]), 4, 8, BYTES);
        let cluster = Cluster::new(shape.clone());
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            client.create("f", BYTES, start.shape.stripe()).await.unwrap();
        });
        let programs = cluster.programs(&[0, 1, 2, 3], |start| {
            let access = access.clone();
            async move {
                let client = start.connect().await.unwrap();
                let file = client.open("f").await.unwrap();
                let rank = start.rank.0;
                for round in 0..4 {
                    let contents = image(seed + round, BYTES);
                    write(&client, &file, &access, rank, &contents).await.unwrap();
                    let got = read(&client, &file, &access, rank).await.unwrap();
                    let wanted = memory_of(&access, start.rank, &contents);
                    expect_equal(&got, &wanted, &format!("the part of survivor {rank}"));
                }
            }
        });
        let kill = Kill {
            node: shape.node_of(victim),
            after: Duration::from_us(numbers.below(12_000)),
            ready: Rc::default(),
            ready_min: 0,
            at: Rc::new(Cell::new(Instant::START)),
        };
        cluster.run_on(programs, Some(kill));
        let by = (victim + 1) % 4;
        for status in cluster.status(by) {
            let status = status.unwrap();
            assert_eq!(status.collective_bytes, 0, "the buffers of who left must be free");
            assert_eq!(status.clients, 1, "only the client that asks is connected");
        }
    });
}

/// Faults that a client alone gets for invalid parts.
#[test]
fn senseless_parts_are_refused() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run_alone(0, |start: Start| async move {
        let client = start.connect().await.unwrap();
        let file = client.create("f", 1000, start.shape.stripe()).await.unwrap();
        let refused = |file: FileRecord, access: Access, rank: u32, bytes: usize| {
            let client = client.clone();
            async move {
                let memory = client.world().thaw(vec![0; bytes].into());
                let mut faults = Vec::new();
                for direction in [Direction::Read, Direction::Write] {
                    let part = part(direction, &file, &access, rank);
                    faults.push(client.transfer_part(&part, &memory).await.unwrap_err());
                }
                faults
            }
        };
        let cyclic = pattern("rc", 4, 8, 1000);
        let is_access = |fault: &Fault| matches!(fault, Fault::BadAccess { .. });
        for rank in [4, u32::MAX] {
            let faults = refused(file.clone(), cyclic.clone(), rank, 1000).await;
            assert!(faults.iter().all(is_access), "{rank}: {faults:?}");
        }
        let large = Access::All { bytes: 1001, clients: 1 };
        let faults = refused(file.clone(), large, 0, 2000).await;
        assert!(faults.iter().all(is_access), "{faults:?}");
        let faults = refused(file.clone(), cyclic.clone(), 1, 99).await;
        assert!(faults.iter().all(is_access), "{faults:?}");
        client.remove("f").await.unwrap();
        client.close(&file).await.unwrap();
        let faults = refused(file, cyclic, 1, 1000).await;
        let is_gone = |fault: &Fault| matches!(fault, Fault::NoSuchFile { .. });
        assert!(faults.iter().all(is_gone), "{faults:?}");
    });
}

/// A file that is removed under a client's part keeps its data until the client closes it.
#[test]
fn a_file_removed_in_use_serves_a_part() {
    for_each_seed("noncollective", "a_file_removed_in_use", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { cache_blocks: seed % 5, ..Shape::default() });
        let access = pattern("wc", 1, 8, 4000);
        cluster.run_alone(0, |start| {
            let access = access.clone();
            async move {
                let client = start.connect().await.unwrap();
                let file = client.create("f", 4000, start.shape.stripe()).await.unwrap();
                let work = async {
                    let mut is_gone = false;
                    while !std::mem::replace(&mut is_gone, client.stat("f").await.is_err()) {
                        match seed % 2 {
                            0 => write(&client, &file, &access, 0, &image(1, 4000)).await.unwrap(),
                            _ => _ = read(&client, &file, &access, 0).await.unwrap(),
                        }
                    }
                };
                let remove = async {
                    start.world.sleep(Duration::from_us(seed * 120)).await;
                    client.remove("f").await.unwrap();
                };
                futures_util::future::join(work, remove).await;
                client.close(&file).await.unwrap();
                let gone = client.open_record(file).await.unwrap_err();
                assert!(matches!(gone, Fault::NoSuchFile { .. }), "{gone}");
            }
        });
        let held: u64 = cluster.status(1).into_iter().map(|it| it.unwrap().cache_bytes).sum();
        assert_eq!(held, 0, "nothing of a removed file may stay in a cache");
    });
}
