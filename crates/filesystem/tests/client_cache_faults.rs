//! Proves: caches at clients neither lose nor keep wrong bytes when disks fail, requests are given
//! up, clients stop or leave, and others use the file without a cache. Faults are reported once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::client_caches::make_file;
use crate::support;

use filesystem::collective::Part;
use filesystem::{Client, Costs, Fault};
use futures_util::future::{Either, join, join_all, select};
use policy::{
    Access, ClientCacheSpec, Cooperation, Direction, DiskOrder, ListEntry, Organisation, WriteMiss,
    WritePolicy,
};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use support::{Cluster, Numbers, Program, Shape, Start, expect_equal, for_each_seed};
use units::{ByteRange, ClientId, Duration, Instant, PeerId};
use wire::{
    BlockRequest, CacheAnswer, CacheCommand, CacheRegistration, CacheRequest, ClientKey,
    FileRecord, FileRequest, FlushRequest, LineName, Message, Reply, Request, RequestId,
};
use world::payload::Bytes;
use world::{Clock, Incoming, Memory, Network, Payloads};
use world_simulated::{Disruption, FaultPlan, PlannedFault, SimulatedWorld};

type World = SimulatedWorld<Bytes>;

const LINE: u64 = 64;

/// Instants at which disk 0 of server 0 fails and has recovered.
const FAILS: Duration = Duration::from_ms(20);
const RECOVERED: Duration = Duration::from_ms(60);

fn back(lines: u32) -> ClientCacheSpec {
    ClientCacheSpec {
        lines,
        write: WritePolicy::Back,
        write_miss: WriteMiss::Allocate,
        ..ClientCacheSpec::default()
    }
}

fn line(number: u64) -> ByteRange {
    ByteRange::at(number * LINE, LINE)
}

fn disk_fails_and_recovers(cluster: &Cluster) {
    let fault = |at, fails| PlannedFault {
        at: Instant::START + at,
        what: Disruption::DiskFails { node: 0, disk: 0, fails },
    };
    let faults = vec![fault(FAILS, true), fault(RECOVERED, false)];
    cluster.machine.plan(&FaultPlan { seed: 1, faults, ..FaultPlan::default() }, |_| {});
}

async fn until(start: &Start, at: Duration) {
    start.world.sleep_until(Instant::START + at).await;
}

async fn write(
    client: &Client<World>,
    file: &FileRecord,
    range: ByteRange,
    value: u8,
) -> Result<(), Fault> {
    let memory = client.world().thaw(vec![value; range.length() as usize].into());
    client.write_cached(file, range, &memory, 0).await
}

async fn read(
    client: &Client<World>,
    file: &FileRecord,
    range: ByteRange,
) -> Result<Vec<u8>, Fault> {
    let memory = client.world().thaw(vec![0xee; range.length() as usize].into());
    client.read_cached(file, range, &memory, 0).await?;
    Ok(memory.freeze().to_vec())
}

/// Reads or writes the first bytes of a file without a cache at the client.
async fn move_directly(
    client: &Client<World>,
    file: &FileRecord,
    direction: Direction,
    bytes: Vec<u8>,
) -> Result<Vec<u8>, Fault> {
    let length = bytes.len() as u64;
    let entry = ListEntry { file_offset: 0, memory_offset: 0, length };
    let part = Part {
        direction,
        file: file.clone(),
        access: Access::lists(vec![vec![entry]]),
        client: ClientId(0),
        order: DiskOrder::Sorted,
        sync: false,
    };
    let memory = client.world().thaw(bytes.into());
    client.transfer_part(&part, &memory).await?;
    Ok(memory.freeze().to_vec())
}

/// Runs `work` for at most `length`. Returns `None` if it was given up.
async fn at_most<T>(world: &World, length: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), pin!(world.sleep(length))).await {
        Either::Left((ended, _)) => Some(ended),
        Either::Right(_) => None,
    }
}

/// A failure of write-behind reaches the writer, though the request that follows it is an eviction
/// of the cache. The evicted bytes are not lost.
#[test]
fn an_eviction_neither_loses_its_line_nor_hides_a_fault() {
    let cluster = Cluster::new(Shape { servers: 1, clients: 1, ..Shape::default() });
    make_file(&cluster, 16 * LINE);
    disk_fails_and_recovers(&cluster);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        client.enable_cache(&back(2), LINE).await.unwrap();
        until(&start, FAILS + Duration::from_ms(5)).await;
        for number in 0..3 {
            write(&client, &file, line(number), 1).await.unwrap();
        }
        // The server has failed to write line 0 behind. Line 1 is evicted next.
        until(&start, RECOVERED + Duration::from_ms(5)).await;
        write(&client, &file, line(3), 1).await.unwrap();
        start.world.sleep(Duration::from_ms(5)).await;
        let flushed = client.flush_cached(&file, false).await;
        assert!(matches!(flushed, Err(Fault::DiskFailed { .. })), "{flushed:?}");
        assert_eq!(client.flush_cached(&file, false).await, Ok(()), "it is reported once");
        let kept = read(&client, &file, ByteRange::new(LINE, 4 * LINE)).await.unwrap();
        expect_equal(&kept, &[1; 3 * LINE as usize], "the lines that were written later");
    });
}

/// A server that serves no caches refuses one, and the client goes on without.
#[test]
fn servers_without_caches_refuse_them() {
    let shape = Shape { servers: 2, clients: 1, client_caches: false, ..Shape::default() };
    let cluster = Cluster::new(shape);
    make_file(&cluster, 4 * LINE);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        let refused = client.enable_cache(&back(2), LINE).await;
        assert!(matches!(refused, Err(Fault::BadRequest { .. })), "{refused:?}");
        assert_eq!(client.cache_counts(), None);
        let bytes = vec![7; 4 * LINE as usize];
        move_directly(&client, &file, Direction::Write, bytes.clone()).await.unwrap();
        let empty = vec![0; bytes.len()];
        let read = move_directly(&client, &file, Direction::Read, empty).await.unwrap();
        expect_equal(&read, &bytes, "bytes that were written without a cache");
    });
}

/// Bytes that a client writes after it gave up a flush are as visible as ever.
#[test]
fn a_flush_that_is_given_up_ends_no_right_behind_the_back() {
    for_each_seed("client_cache_faults", "a_flush_that_is_given_up", 60, |seed| {
        let cluster = Cluster::new(Shape { clients: 2, servers: 1, seed, ..Shape::default() });
        make_file(&cluster, 4 * LINE);
        cluster.run(0..2, |start| async move {
            let group = start.join(1).await.unwrap();
            let client = group.client().clone();
            let file = client.open("f").await.unwrap();
            client.enable_cache(&back(8), LINE).await.unwrap();
            if start.rank == ClientId(0) {
                write(&client, &file, ByteRange::new(0, 4 * LINE), 1).await.unwrap();
                let flush = client.flush_cached(&file, false);
                let _ = at_most(&start.world, Duration::from_us(3 * seed), flush).await;
                write(&client, &file, ByteRange::new(0, 4 * LINE), 2).await.unwrap();
            }
            group.barrier().await.unwrap();
            if start.rank == ClientId(1) {
                let got = read(&client, &file, ByteRange::new(0, 4 * LINE)).await.unwrap();
                expect_equal(&got, &[2; 4 * LINE as usize], "the other client's write");
            }
            group.barrier().await.unwrap();
        });
    });
}

/// Blocks of a file that no cache uses do not go to the clients: others change it directly.
#[test]
fn only_lines_of_cached_files_go_to_global_parts() {
    let spec = ClientCacheSpec {
        lines: 40,
        cooperation: Cooperation::CentrallyCoordinated,
        ..ClientCacheSpec::default()
    };
    let bytes = 12 * LINE as usize;
    let cluster =
        Cluster::new(Shape { clients: 2, servers: 1, cache_blocks: 2, ..Shape::default() });
    make_file(&cluster, bytes as u64);
    cluster.run(0..2, |start| async move {
        let group = start.join(1).await.unwrap();
        let client = group.client().clone();
        let file = client.open("f").await.unwrap();
        if start.rank == ClientId(0) {
            client.enable_cache(&spec, LINE).await.unwrap();
        }
        group.barrier().await.unwrap();
        if start.rank == ClientId(1) {
            move_directly(&client, &file, Direction::Read, vec![0; bytes]).await.unwrap();
            move_directly(&client, &file, Direction::Write, vec![2; bytes]).await.unwrap();
        }
        group.barrier().await.unwrap();
        if start.rank == ClientId(0) {
            for number in 0..12 {
                let got = read(&client, &file, line(number)).await.unwrap();
                expect_equal(&got, &[2; LINE as usize], "what was written without a cache");
            }
        }
        group.barrier().await.unwrap();
    });
}

/// A cache does not keep what a write without a cache, which had begun before, replaces.
#[test]
fn a_first_cached_read_waits_for_other_writes() {
    for_each_seed("client_cache_faults", "a_first_cached_read_waits", 60, |seed| {
        let bytes = 12 * LINE as usize;
        let cluster = Cluster::new(Shape {
            clients: 2,
            servers: 1,
            cache_blocks: 2,
            seed,
            ..Shape::default()
        });
        make_file(&cluster, bytes as u64);
        cluster.run(0..2, |start| async move {
            let group = start.join(1).await.unwrap();
            let client = group.client().clone();
            let file = client.open("f").await.unwrap();
            let is_reader = start.rank == ClientId(0);
            if is_reader {
                client.enable_cache(&ClientCacheSpec::default(), LINE).await.unwrap();
            }
            group.barrier().await.unwrap();
            let all = ByteRange::new(0, bytes as u64);
            let mut is_written = false;
            if is_reader {
                start.world.sleep(Duration::from_us(20 * seed)).await;
                read(&client, &file, all).await.unwrap();
            } else {
                let write = move_directly(&client, &file, Direction::Write, vec![2; bytes]);
                is_written = write.await.is_ok();
            }
            group.barrier().await.unwrap();
            // Without a cache, the servers have the truth.
            let truth = move_directly(&client, &file, Direction::Read, vec![0; bytes]).await;
            let truth = truth.unwrap();
            assert!(!is_written || truth == vec![2; bytes], "it was written");
            if is_reader {
                let got = read(&client, &file, all).await.unwrap();
                expect_equal(&got, &truth, "the cache");
            }
            group.barrier().await.unwrap();
        });
    });
}

/// The servers have every line when a flush returns, though lines were evicted meanwhile.
#[test]
fn no_eviction_is_left_behind_by_a_flush() {
    for_each_seed("client_cache_faults", "no_eviction_is_left_behind", 400, |seed| {
        const LINES: u64 = 24;
        let mut numbers = Numbers::new(seed);
        let organisation =
            numbers.pick(&[Organisation::DirectMapped, Organisation::FullyAssociative]);
        let spec = ClientCacheSpec { organisation, ..back(numbers.pick(&[4, 8, 20])) };
        let costs = Costs { cache_read: Duration::from_us(numbers.below(20)), ..Costs::FREE };
        let shape =
            Shape { clients: 1, servers: 1, cache_blocks: 64, costs, seed, ..Shape::default() };
        let cluster = Cluster::new(shape);
        make_file(&cluster, 2 * LINES * LINE);
        cluster.run_alone(0, |start| async move {
            let mut numbers = Numbers::new(seed + 7);
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            client.enable_cache(&spec, LINE).await.unwrap();
            for number in 0..LINES {
                write(&client, &file, line(number), 1).await.unwrap();
            }
            start.world.sleep(Duration::from_ms(5)).await;
            let (client, file) = (&client, &file);
            let reads: Vec<(u64, Duration)> = (0..30)
                .map(|_| {
                    let number = numbers.below(2 * LINES);
                    (number, Duration::from_us(numbers.below(60)))
                })
                .collect();
            let delay = Duration::from_us(numbers.below(30));
            let world = &start.world;
            let reads = reads.into_iter().map(|(number, delay)| async move {
                world.sleep(delay).await;
                read(client, file, line(number)).await.unwrap();
            });
            let flush = async {
                world.sleep(delay).await;
                client.flush_cached(file, false).await.unwrap();
                let status = client.status().await.remove(0).unwrap();
                assert_eq!(status.dirty_bytes, 0, "all was on the disks");
            };
            join(join_all(reads), flush).await;
        });
    });
}

/// A client whose write of a line in its global part is refused can still read the line.
#[test]
fn a_refused_write_leaves_the_global_part_readable() {
    let spec = ClientCacheSpec {
        lines: 40,
        cooperation: Cooperation::CentrallyCoordinated,
        ..ClientCacheSpec::default()
    };
    let cluster =
        Cluster::new(Shape { clients: 1, servers: 1, cache_blocks: 2, ..Shape::default() });
    make_file(&cluster, 64 * LINE);
    disk_fails_and_recovers(&cluster);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        client.enable_cache(&spec, LINE).await.unwrap();
        for number in 0..40 {
            read(&client, &file, line(number)).await.unwrap();
        }
        until(&start, FAILS + Duration::from_ms(5)).await;
        write(&client, &file, line(50), 1).await.unwrap();
        until(&start, RECOVERED + Duration::from_ms(5)).await;
        let mut refused = 0;
        // The first of these is in the global part.
        for number in (20..40).chain(0..20) {
            refused += u32::from(write(&client, &file, line(number), 2).await.is_err());
            read(&client, &file, line(number)).await.unwrap();
        }
        assert_eq!(refused, 1, "the failure is reported once");
        for number in 0..40 {
            read(&client, &file, line(number)).await.unwrap();
        }
    });
}

/// A node with a cache that speaks to server 0 without the client library.
struct Bare {
    start: Start,
    server: PeerId,
    file: FileRecord,
    next: Cell<u64>,
}

impl Bare {
    /// Connects, opens a file and registers a cache.
    async fn registered(start: &Start, file: &FileRecord, line_bytes: u64) -> Self {
        let base = ClientCacheSpec::default().cooperation;
        Self::cooperating(start, file, line_bytes, (base, 0)).await
    }

    /// Connects, opens a file and registers a cache that gives the server some lines.
    async fn cooperating(
        start: &Start,
        file: &FileRecord,
        line_bytes: u64,
        (cooperation, global_lines): (Cooperation, u32),
    ) -> Self {
        let server = start.world.connect(&start.servers[0]).await.unwrap();
        let bare = Self { start: start.clone(), server, file: file.clone(), next: Cell::new(1) };
        let hello = Message::Hello { version: wire::PROTOCOL_VERSION, key: ClientKey(4) };
        bare.send(&hello, None).await;
        let opened = bare.ask(FileRequest::Open(file.clone()), None).await;
        assert!(opened.is_ok(), "{opened:?}");
        let registration = CacheRegistration {
            line_bytes,
            cooperation,
            chances: ClientCacheSpec::default().chances,
            global_lines,
            address: start.world.address().0,
            ticket: 1,
        };
        let registered = bare.ask_cache(CacheRequest::Register(registration), None).await;
        assert_eq!(registered, Ok(Reply::Done));
        bare
    }

    async fn send(&self, message: &Message, body: Option<Bytes>) {
        let header = wire::encode(message);
        let message = world::Message { header, body, place: None, loan: None };
        self.start.world.send(self.server, message).await.unwrap();
    }

    /// Returns the next message; `None` when the server has ended the connection.
    async fn next(&self) -> Option<Message> {
        match self.start.world.receive().await {
            Incoming::Message { header, .. } => Some(wire::decode(&header).unwrap()),
            Incoming::Departed { .. } => None,
        }
    }

    async fn ask(&self, request: impl Into<Request>, body: Option<Bytes>) -> Result<Reply, Fault> {
        let id = RequestId(self.next.replace(self.next.get() + 1));
        self.send(&Message::Request { id, request: request.into() }, body).await;
        loop {
            match self.next().await {
                Some(Message::Reply { id: answered, result }) if answered == id => return result,
                Some(_) => {}
                None => panic!("the server must answer"),
            }
        }
    }

    async fn ask_cache(&self, request: CacheRequest, body: Option<Bytes>) -> Result<Reply, Fault> {
        self.ask(request, body).await
    }

    fn line(&self, line: u64) -> LineName {
        LineName { file: self.file.file, line }
    }

    /// Becomes the owner of line 0.
    async fn own(&self) {
        let own = CacheRequest::Own { line: self.line(0), fetches: false, dropped: Vec::new() };
        let owned = self.ask_cache(own, None).await;
        assert!(matches!(owned, Ok(Reply::Line { .. })), "{owned:?}");
    }
}

/// Runs a program of a client, and one of a node without the client library beside it.
fn beside<F, G>(
    cluster: &Cluster,
    client: impl Fn(Start, Rc<Cell<u32>>) -> F,
    bare: impl Fn(Start, Rc<Cell<u32>>) -> G,
) where
    F: Future<Output = ()> + 'static,
    G: Future<Output = ()> + 'static,
{
    let stage = Rc::new(Cell::new(0));
    let mut programs: Vec<(u32, Program<()>)> =
        cluster.programs(&[0], |start| client(start, Rc::clone(&stage)));
    programs.extend(cluster.programs(&[1], |start| bare(start, Rc::clone(&stage))));
    cluster.run_on(programs, None);
}

async fn until_stage(start: &Start, stage: &Cell<u32>, at_least: u32) {
    while stage.get() < at_least {
        start.world.sleep(Duration::from_us(10)).await;
    }
}

/// Opens the file with a cache, ends the first stage, and waits for the second.
async fn cached_until_second_stage(
    start: &Start,
    stage: &Cell<u32>,
) -> (Client<World>, FileRecord) {
    let client = start.connect().await.unwrap();
    let file = client.open("f").await.unwrap();
    client.enable_cache(&ClientCacheSpec::default(), LINE).await.unwrap();
    stage.set(1);
    until_stage(start, stage, 2).await;
    (client, file)
}

/// An owner whose bytes the server could not take gets a fault at its next flush, also when a
/// reader had made it write back.
#[test]
fn an_owner_hears_that_its_bytes_are_lost() {
    let cluster = Cluster::new(Shape { clients: 2, servers: 1, ..Shape::default() });
    make_file(&cluster, 4 * LINE);
    let reader = |start: Start, stage: Rc<Cell<u32>>| async move {
        let (client, file) = cached_until_second_stage(&start, &stage).await;
        let got = read(&client, &file, line(0)).await;
        assert!(got.is_err(), "its bytes are lost: {got:?}");
        assert_eq!(client.flush_cached(&file, false).await, Ok(()), "it has the fault already");
        stage.set(3);
        until_stage(&start, &stage, 4).await;
    };
    let owner = |start: Start, stage: Rc<Cell<u32>>| async move {
        until_stage(&start, &stage, 1).await;
        let file = record_of(&start).await;
        let bare = Bare::registered(&start, &file, LINE).await;
        bare.own().await;
        stage.set(2);
        let number = loop {
            if let Some(Message::CacheCommand(CacheCommand::WriteBack { number, .. })) =
                bare.next().await
            {
                break number;
            }
        };
        let answer = CacheAnswer { number, was_there: true };
        bare.send(&Message::CacheAnswer(answer), Some(vec![1; 1 + LINE as usize].into())).await;
        until_stage(&start, &stage, 3).await;
        let flush = FlushRequest { file: file.file, sync: false };
        let flushed = bare.ask(BlockRequest::Flush(flush), None).await;
        assert!(flushed.is_err(), "the owner must hear of the loss");
        stage.set(4);
    };
    beside(&cluster, reader, owner);
}

/// Record of the file, from another connection that is closed again.
async fn record_of(start: &Start) -> FileRecord {
    let client =
        Client::connect(start.world.clone(), &start.servers, start.shape.costs).await.unwrap();
    client.stat_file("f").await.unwrap()
}

/// A client that answers no commands is disconnected. A write that it keeps waiting goes on.
#[test]
fn a_stopped_client_does_not_block_its_lines_for_ever() {
    let cluster = Cluster::new(Shape { clients: 2, servers: 1, ..Shape::default() });
    make_file(&cluster, 4 * LINE);
    let writer = |start: Start, stage: Rc<Cell<u32>>| async move {
        let (client, file) = cached_until_second_stage(&start, &stage).await;
        write(&client, &file, line(0), 1).await.unwrap();
        assert_eq!(read(&client, &file, line(0)).await.unwrap(), [1; LINE as usize]);
        stage.set(3);
    };
    let stopped = |start: Start, stage: Rc<Cell<u32>>| async move {
        until_stage(&start, &stage, 1).await;
        let file = record_of(&start).await;
        let bare = Bare::registered(&start, &file, LINE).await;
        let read = CacheRequest::Read { line: bare.line(0), dropped: Vec::new() };
        assert!(bare.ask_cache(read, None).await.is_ok());
        stage.set(2);
        let invalidate = bare.next().await;
        let Some(Message::CacheCommand(CacheCommand::Invalidate { .. })) = invalidate else {
            panic!("the server must have the copy dropped: {invalidate:?}");
        };
        assert_eq!(bare.next().await, None, "the server hangs up");
        until_stage(&start, &stage, 3).await;
    };
    beside(&cluster, writer, stopped);
}

/// Lines of one file that is used with records of different sizes are neither cut off nor lost.
#[test]
fn records_of_different_sizes_share_a_cache() {
    for spec in [back(8), ClientCacheSpec::default()] {
        let cluster = Cluster::new(Shape { clients: 1, servers: 1, ..Shape::default() });
        make_file(&cluster, 100);
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            client.enable_cache(&spec, LINE).await.unwrap();
            let shorter = FileRecord { bytes: 90, ..file.clone() };
            write(&client, &file, ByteRange::new(64, 100), 1).await.unwrap();
            write(&client, &shorter, ByteRange::new(64, 90), 2).await.unwrap();
            let got = read(&client, &file, ByteRange::new(64, 100)).await.unwrap();
            expect_equal(&got, &[[2; 26].as_slice(), &[1; 10]].concat(), "the whole end");
            let got = read(&client, &shorter, ByteRange::new(64, 90)).await.unwrap();
            expect_equal(&got, &[2; 26], "the part that the shorter record knows");
            let longer = FileRecord { bytes: 110, ..file.clone() };
            let got = read(&client, &longer, ByteRange::new(64, 110)).await;
            assert!(matches!(got, Err(Fault::BadRequest { .. })), "{got:?}");
        });
    }
}

/// A cache that one server refuses is no cache at any. The client can go on without, and try again.
#[test]
fn a_refused_cache_is_withdrawn_everywhere() {
    let cluster = Cluster::new(Shape { clients: 2, servers: 2, ..Shape::default() });
    make_file(&cluster, 8 * LINE);
    let refused = |start: Start, stage: Rc<Cell<u32>>| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        stage.set(1);
        until_stage(&start, &stage, 2).await;
        let spec = ClientCacheSpec::default();
        let enabled = client.enable_cache(&spec, LINE).await;
        assert!(matches!(enabled, Err(Fault::BadRequest { .. })), "{enabled:?}");
        assert_eq!(client.cache_counts(), None);
        move_directly(&client, &file, Direction::Write, vec![1; 500]).await.unwrap();
        stage.set(3);
        start.world.sleep(Duration::from_ms(50)).await;
        client.enable_cache(&spec, LINE).await.unwrap();
        assert_eq!(read(&client, &file, ByteRange::new(0, 500)).await.unwrap(), [1; 500]);
    };
    let other = |start: Start, stage: Rc<Cell<u32>>| async move {
        until_stage(&start, &stage, 1).await;
        let file = record_of(&start).await;
        let bare = Bare::registered(&start, &file, LINE / 2).await;
        stage.set(2);
        until_stage(&start, &stage, 3).await;
        start.world.disconnect(bare.server);
    };
    beside(&cluster, refused, other);
}

/// A read that waits does not ask again for each client that leaves.
#[test]
fn departures_do_not_multiply_requests() {
    let cluster = Cluster::new(Shape { clients: 2, servers: 1, ..Shape::default() });
    make_file(&cluster, 4 * LINE);
    let reader = |start: Start, stage: Rc<Cell<u32>>| async move {
        let (client, file) = cached_until_second_stage(&start, &stage).await;
        let requests = async || client.status().await.remove(0).unwrap().requests;
        let before = requests().await;
        let reading = async {
            assert_eq!(read(&client, &file, line(0)).await.unwrap(), [7; LINE as usize]);
        };
        let counting = async {
            until_stage(&start, &stage, 3).await;
            let asked = requests().await - before;
            assert!(asked < 6, "{asked} requests");
            stage.set(4);
        };
        join(reading, counting).await;
    };
    let reader_at = support::address(cluster.shape.node_of(0));
    let owner = |start: Start, stage: Rc<Cell<u32>>| {
        let reader_at = reader_at.clone();
        async move {
            until_stage(&start, &stage, 1).await;
            let file = record_of(&start).await;
            let bare = Bare::registered(&start, &file, LINE).await;
            bare.own().await;
            stage.set(2);
            let command = bare.next().await;
            let Some(Message::CacheCommand(CacheCommand::WriteBack { number, .. })) = command
            else {
                panic!("the server must have the line written back: {command:?}");
            };
            for _ in 0..50 {
                let peer = start.world.connect(&reader_at).await.unwrap();
                start.world.sleep(Duration::from_us(50)).await;
                start.world.disconnect(peer);
            }
            start.world.sleep(Duration::from_ms(5)).await;
            stage.set(3);
            until_stage(&start, &stage, 4).await;
            let answer = CacheAnswer { number, was_there: true };
            bare.send(&Message::CacheAnswer(answer), Some(vec![7; LINE as usize].into())).await;
            // Its connection must last until the answer is there.
            start.world.sleep(Duration::from_ms(50)).await;
        }
    };
    beside(&cluster, reader, owner);
}

/// A client that gets lines but is asked for none has to confirm them now and then, so that the
/// server can forget which it may still have.
#[test]
fn a_client_that_only_gets_lines_confirms_them() {
    const LINES: u64 = 4000;
    let cooperation = Cooperation::CentrallyCoordinated;
    let shape = Shape { clients: 2, servers: 1, cache_blocks: 2, ..Shape::default() };
    let cluster = Cluster::new(shape);
    make_file(&cluster, LINES * LINE);
    let reader = |start: Start, stage: Rc<Cell<u32>>| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        let spec = ClientCacheSpec { lines: 5, cooperation, ..ClientCacheSpec::default() };
        client.enable_cache(&spec, LINE).await.unwrap();
        stage.set(1);
        until_stage(&start, &stage, 2).await;
        for number in 0..LINES {
            read(&client, &file, line(number)).await.unwrap();
        }
        until_stage(&start, &stage, 3).await;
    };
    let other = |start: Start, stage: Rc<Cell<u32>>| async move {
        until_stage(&start, &stage, 1).await;
        let file = record_of(&start).await;
        let bare = Bare::cooperating(&start, &file, LINE, (cooperation, 8)).await;
        stage.set(2);
        let mut stored = 0;
        loop {
            match bare.next().await {
                Some(Message::CacheCommand(CacheCommand::Store { .. })) => stored += 1,
                Some(Message::CacheCommand(CacheCommand::Confirm { .. })) => break,
                other => panic!("{other:?} after {stored} lines"),
            }
        }
        assert!((1000..1100).contains(&stored), "{stored}");
        stage.set(3);
    };
    beside(&cluster, reader, other);
}

/// A file that is in caches can grow. No cache keeps its last line, which was shorter.
#[test]
fn a_file_in_caches_grows() {
    let cooperations = [
        Cooperation::Base,
        Cooperation::GreedyForwarding,
        Cooperation::CentrallyCoordinated,
        Cooperation::GloballyManaged,
        Cooperation::NChance,
    ];
    for cooperation in cooperations {
        for base in [back(10), ClientCacheSpec { lines: 10, ..ClientCacheSpec::default() }] {
            let spec = ClientCacheSpec { cooperation, ..base };
            let cluster =
                Cluster::new(Shape { clients: 2, servers: 2, cache_blocks: 2, ..Shape::default() });
            make_file(&cluster, 100);
            cluster.run(0..2, |start| async move {
                let group = start.join(1).await.unwrap();
                let client = group.client().clone();
                let mut file = client.open("f").await.unwrap();
                client.enable_cache(&spec, LINE).await.unwrap();
                let me = start.rank.0 as u8;
                for (turn, bytes) in (1_u8..).zip([130, 192, 200, 500]) {
                    let (before, is_first) = (file.bytes, turn % 2 == me);
                    group.barrier().await.unwrap();
                    // Both have the last line, or one owns it.
                    read(&client, &file, ByteRange::new(0, before)).await.unwrap();
                    group.barrier().await.unwrap();
                    if is_first {
                        write(&client, &file, ByteRange::new(90, before), turn).await.unwrap();
                    }
                    group.barrier().await.unwrap();
                    if !is_first {
                        client.grow(&mut file, bytes).await.unwrap();
                        write(&client, &file, ByteRange::new(before, bytes), turn).await.unwrap();
                    }
                    group.barrier().await.unwrap();
                    let old = read(&client, &file, ByteRange::new(0, before)).await.unwrap();
                    expect_equal(&old[90..], &vec![turn; old.len() - 90], "the old bytes");
                    client.refresh(&mut file).await.unwrap();
                    let all = read(&client, &file, ByteRange::new(0, bytes)).await.unwrap();
                    let expected = vec![turn; all.len() - 90];
                    expect_equal(&all[90..], &expected, &cooperation.to_string());
                }
                let cut = client.set_size(&mut file, 10).await;
                assert!(matches!(cut, Err(Fault::BadRequest { .. })), "{cut:?}");
                group.barrier().await.unwrap();
            });
        }
    }
}
