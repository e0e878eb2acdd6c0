//! Proves: gathered writes are as visible as others. A read that begins after a write has returned
//! gets its bytes or later ones, whoever wrote them and by whatever call, in whatever order clients
//! flush. Sizes, collective calls and syncs count gathered writes too. A client that is killed
//! loses only what it had gathered; one that stops delays others no longer than its time-out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{Raw, Reaction, record};
use crate::sizes::at;
use crate::{sizes, support};

use filesystem::collective::Part;
use filesystem::{BufferPool, Client, Costs, Fault, Group, SmallCalls};
use policy::{Access, Direction, DiskOrder, OwnPart, Pool};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use support::{Cluster, Kill, Numbers, Shape, Start, for_each_seed};
use units::{ClientId, Duration, Instant};
use wire::{CollectiveCall, FileRecord, FileRequest, Reply, WriteGathered};
use world::payload::Bytes;
use world::{Clock, Memory, Payloads};
use world_simulated::{Disruption, FaultPlan, PlannedFault, SimulatedWorld};

type World = SimulatedWorld<Bytes>;
type TestClient = Client<World>;

const TIMEOUT: Duration = Duration::from_ms(1_000);

/// A machine whose servers give leases.
fn some_shape(seed: u64, clients: u32) -> Shape {
    Shape { clients, client_caches: false, ..sizes::some_shape(seed) }
}

/// A client with an open file.
struct Writer {
    client: TestClient,
    record: Rc<RefCell<FileRecord>>,
    small: SmallCalls<World>,
    /// Number of reads from kept pages.
    kept_reads: Cell<u64>,
    pool: BufferPool<World>,
}

impl Writer {
    async fn new(start: &Start, name: &str) -> Self {
        let timeout = (TIMEOUT, TIMEOUT);
        let world = start.world.clone();
        let client = Client::connect_watched(world, &start.servers, Costs::FREE, timeout);
        let client = client.await.unwrap();
        let record = Rc::new(RefCell::new(client.open(name).await.unwrap()));
        let small = SmallCalls::new(&client, Rc::clone(&record));
        let pool = BufferPool::new(&client, 1 << 16).await.unwrap();
        Self { client, record, small, pool, kept_reads: Cell::new(0) }
    }

    fn record(&self) -> FileRecord {
        self.record.borrow().clone()
    }

    /// The record, with a size that reaches `end`.
    async fn reaching(&self, end: u64) -> FileRecord {
        let mut record = self.record();
        if record.bytes < end {
            self.client.grow(&mut record, end).await.unwrap();
            *self.record.borrow_mut() = record.clone();
        }
        record
    }

    /// Writes as a small call does. Returns true if the write was gathered.
    async fn write(&self, offset: u64, bytes: &[u8]) -> Result<bool, Fault> {
        let payload: Bytes = bytes.to_vec().into();
        match self.small.write(offset, &payload).await? {
            true => Ok(true),
            false => self.write_directly(offset, bytes).await.map(|()| false),
        }
    }

    async fn write_directly(&self, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let record = self.reaching(offset + bytes.len() as u64).await;
        let buffer = self.pool.take(bytes.len() as u64).unwrap();
        buffer.fill(&bytes.to_vec().into());
        buffer.transfer(Direction::Write, &record, offset).await
    }

    /// Writes by a request that the servers direct.
    async fn write_part(&self, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let length = bytes.len() as u64;
        let file = self.reaching(offset + length).await;
        let access = Access::Parts(vec![OwnPart::contiguous(offset, length)]);
        let (direction, client, order) = (Direction::Write, ClientId(0), DiskOrder::Sorted);
        let part = Part { direction, file, access, client, order, sync: false };
        let memory = self.client.world().thaw(bytes.to_vec().into());
        self.client.move_part(&part, &memory).await
    }

    /// Reads what the file has of a range.
    async fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let mut record = self.record();
        if record.bytes < offset + length {
            self.client.refresh(&mut record).await.unwrap();
            *self.record.borrow_mut() = record.clone();
        }
        if let Some(bytes) = self.small.read(offset, length).await.unwrap() {
            self.kept_reads.set(self.kept_reads.get() + 1);
            return bytes.to_vec();
        }
        let length = length.min(record.bytes.saturating_sub(offset));
        if length == 0 {
            return Vec::new();
        }
        let buffer = self.pool.take(length).unwrap();
        buffer.transfer(Direction::Read, &record, offset).await.unwrap();
        buffer.payload().to_vec()
    }
}

/// One write or read of one byte.
#[derive(Clone, Copy, Debug)]
struct Event {
    begun: Instant,
    ended: Instant,
    /// Number of the write, or of the write whose byte was read.
    value: u8,
}

/// Writes and reads of each byte of a file.
struct History {
    writes: Vec<Vec<Event>>,
    reads: Vec<Vec<Event>>,
    sizes: Vec<(Instant, u64)>,
}

impl History {
    fn new(bytes: usize) -> Self {
        // A byte is zero before its first write.
        let zero = Event { begun: Instant::START, ended: Instant::START, value: 0 };
        Self { writes: vec![vec![zero]; bytes], reads: vec![Vec::new(); bytes], sizes: Vec::new() }
    }

    fn wrote(&mut self, offset: u64, length: u64, access: Event) {
        for byte in offset..offset + length {
            self.writes[byte as usize].push(access);
        }
        self.sizes.push((access.ended, offset + length));
    }

    fn read(&mut self, offset: u64, values: &[u8], begun: Instant, ended: Instant) {
        for (byte, value) in (offset as usize..).zip(values) {
            self.reads[byte].push(Event { begun, ended, value: *value });
        }
    }

    /// Panics unless the size is that of all writes that have ended before `begun`.
    fn check_size(&self, size: u64, begun: Instant) {
        let ended = self.sizes.iter().filter(|(ended, _)| *ended < begun);
        let least = ended.map(|(_, end)| *end).max().unwrap_or(0);
        assert!(size >= least, "a file with {least} bytes seemed to have {size}");
    }

    /// Panics if a read got a value that was never written, was not written yet, or was replaced
    /// before the read, or before an earlier read of a later value.
    fn check(&self) {
        for (byte, (writes, reads)) in self.writes.iter().zip(&self.reads).enumerate() {
            for read in reads {
                let source = writes.iter().find(|write| write.value == read.value);
                let source = source.unwrap_or_else(|| panic!("byte {byte}: {read:?} of no write"));
                assert!(source.begun <= read.ended, "byte {byte}: {read:?} came before {source:?}");
                // Evidence that a later write took place before the read.
                let seen = reads.iter().filter(|other| other.ended < read.begun);
                let seen = seen.filter_map(|it| writes.iter().find(|one| one.value == it.value));
                let done = writes.iter().filter(|write| write.ended < read.begun);
                for later in done.chain(seen) {
                    assert!(
                        later.begun <= source.ended,
                        "byte {byte}: {read:?} got {source:?} although {later:?} came after it"
                    );
                }
            }
        }
    }
}

/// State that the clients of one run share.
#[derive(Clone)]
struct Shared {
    history: Rc<RefCell<History>>,
    /// Number of the last write.
    last: Rc<Cell<u8>>,
    counts: Rc<Counts>,
}

/// Number of calls of each kind.
#[derive(Default)]
struct Counts {
    gathered: Cell<u64>,
    direct: Cell<u64>,
    from_pages: Cell<u64>,
}

fn count(number: &Cell<u64>, more: u64) {
    number.set(number.get() + more);
}

/// Bytes of the file that clients write and read.
const BYTES: u64 = 300;

impl Shared {
    /// Makes one call of a client: mostly small writes, and reads as the program likes.
    async fn call(&self, writer: &Writer, start: &Start, numbers: &mut Numbers, reads: u64) {
        let offset = numbers.below(BYTES);
        let length = 1 + numbers.below((BYTES - offset).min(40));
        let begun = start.now();
        match numbers.below(12 + reads) {
            0 => {
                let mut record = writer.record();
                writer.client.refresh(&mut record).await.unwrap();
                self.history.borrow().check_size(record.bytes, begun);
            }
            1 => {
                let sync = numbers.below(2) == 0;
                writer.client.flush(&writer.record(), sync).await.unwrap();
            }
            2 if numbers.below(8) == 0 => {
                writer.client.settle_writes(writer.record().file, true).await.unwrap();
            }
            kind if kind >= 11 => {
                let got = writer.read(offset, length).await;
                self.history.borrow_mut().read(offset, &got, begun, start.now());
            }
            _ if self.last.get() >= 250 => {}
            kind => {
                self.last.set(self.last.get() + 1);
                let value = self.last.get();
                let bytes = vec![value; length as usize];
                let was_gathered = match kind {
                    3 => writer.write_directly(offset, &bytes).await.map(|()| false),
                    4 => writer.write_part(offset, &bytes).await.map(|()| false),
                    _ => writer.write(offset, &bytes).await,
                };
                let counts = &self.counts;
                count(if was_gathered.unwrap() { &counts.gathered } else { &counts.direct }, 1);
                let access = Event { begun, ended: start.now(), value };
                self.history.borrow_mut().wrote(offset, length, access);
            }
        }
    }

    /// The program of one client.
    async fn run(&self, start: &Start, seed: u64) {
        let writer = Writer::new(start, "f").await;
        let mut numbers = Numbers::new(seed * 10 + u64::from(start.rank.0));
        // Programs that mostly write, and some that also read much.
        let reads = numbers.pick(&[1, 4, 40]);
        for _ in 0..80 {
            if numbers.below(3) == 0 {
                start.world.sleep(Duration::from_us(numbers.below(900))).await;
            }
            self.call(&writer, start, &mut numbers, reads).await;
        }
        count(&self.counts.from_pages, writer.kept_reads.get());
        // What it has gathered is lost with it.
        let begun = start.now();
        let got = writer.read(0, BYTES).await;
        self.history.borrow_mut().read(0, &got, begun, start.now());
        writer.client.settle_writes(writer.record().file, true).await.unwrap();
    }
}

/// Clients that write and read the same few bytes by all kinds of calls.
#[test]
fn gathered_writes_are_as_visible_as_others() {
    const CLIENTS: u32 = 3;
    let counts = Rc::new(Counts::default());
    let all = Rc::clone(&counts);
    for_each_seed("gathering", "gathered_writes_are_as_visible_as_others", 150, move |seed| {
        let cluster = Cluster::new(some_shape(seed, CLIENTS + 1));
        cluster.run_alone(CLIENTS, |start| async move {
            let client = start.connect().await.unwrap();
            client.create("f", 0, start.shape.stripe()).await.unwrap();
        });
        let history = Rc::new(RefCell::new(History::new(BYTES as usize)));
        let shared = Shared { history, last: Rc::default(), counts: Rc::clone(&all) };
        cluster.run(0..CLIENTS, |start| {
            let shared = shared.clone();
            async move { shared.run(&start, seed).await }
        });
        let (got, begun) = cluster.run_alone(CLIENTS, |start| async move {
            let writer = Writer::new(&start, "f").await;
            let begun = start.now();
            (writer.read(0, BYTES).await, begun)
        });
        let mut history = shared.history.borrow_mut();
        history.read(0, &got, begun, cluster.engine.now());
        history.check();
    });
    if support::only_seed().is_none() {
        let [gathered, direct, pages] =
            [&counts.gathered, &counts.direct, &counts.from_pages].map(Cell::get);
        assert!(gathered > direct / 10, "the test must gather: {gathered} writes, not {direct}");
        assert!(pages > gathered / 10, "the test must read from pages: {pages} reads");
    }
}

/// Leases a file for a client, by as many writes as it takes, to its first byte.
async fn lease(writer: &Writer) {
    for _ in 0..8 {
        if writer.write(0, &[0]).await.unwrap() {
            return;
        }
    }
    panic!("a client alone gets a lease");
}

fn plain_shape() -> Shape {
    Shape { client_caches: false, clients: 3, ..Shape::default() }
}

fn with_file(cluster: &Cluster, bytes: u64) {
    cluster.run_alone(2, move |start| async move {
        let client = start.connect().await.unwrap();
        client.create("f", bytes, start.shape.stripe()).await.unwrap();
    });
}

/// More bytes, and more writes, than a client gathers at a time.
#[test]
fn more_is_written_than_is_gathered_at_a_time() {
    for (pieces, length) in [(3_000, 1_000), (40_000, 3)] {
        let cluster = Cluster::new(Shape { block_bytes: 1 << 20, ..plain_shape() });
        with_file(&cluster, 0);
        let expected: Vec<u8> = (0..pieces * length).map(|byte| (byte % 251) as u8).collect();
        let got = cluster.run_alone(0, |start| {
            let expected = expected.clone();
            async move {
                let writer = Writer::new(&start, "f").await;
                lease(&writer).await;
                for (offset, piece) in (0..).step_by(length).zip(expected.chunks(length)) {
                    assert!(writer.write(offset, piece).await.unwrap(), "it has the lease");
                }
                let mut all = Vec::new();
                while all.len() < expected.len() {
                    all.extend(writer.read(all.len() as u64, 1 << 16).await);
                }
                all
            }
        });
        support::expect_equal(&got, &expected, "what many small writes have written");
    }
}

/// A lease is returned also while gathered writes of others take all the room for them: whoever
/// opens the file waits for it.
#[test]
fn a_lease_is_returned_without_room() {
    let shape = Shape { servers: 1, buffer_bytes: 0, cache_blocks: 0, ..plain_shape() };
    let cluster = Cluster::new(shape);
    with_file(&cluster, 64 * 8);
    let slow = Disruption::DiskIsSlow { node: 0, disk: 0, times: 1000 };
    let faults = vec![PlannedFault { at: Instant::START + Duration::from_ms(20), what: slow }];
    cluster.machine.plan(&FaultPlan { faults, ..FaultPlan::default() }, |_| {});
    let returned = cluster.run(0..2, |start| async move {
        if start.rank == ClientId(0) {
            let writer = Writer::new(&start, "f").await;
            lease(&writer).await;
            assert!(writer.write(0, &[1; 64 * 8]).await.unwrap());
            at(&start, 25).await;
            let _ = writer.client.settle_writes(writer.record().file, true).await;
            return None;
        }
        let raw = Raw::greeted(&start).await;
        let file = record(1, 64 * 8, start.shape.stripe());
        let file = FileRecord { pool: Pool::all(1), ..file };
        raw.ask(FileRequest::Open(file.clone()), None).await;
        at(&start, 30).await;
        let (number, now) = (file.file, start.world.now().as_ns());
        let lease = FileRequest::Lease { file: number, clock: start.world.clock(), since: now };
        raw.ask(lease, None).await;
        let nothing = WriteGathered {
            file: number,
            since: now,
            writes: Vec::new(),
            until: now,
            returns: true,
        };
        let returned = raw.ask(FileRequest::WriteGathered(Box::new(nothing)), None).await;
        // The writes of the other client are not carried out yet.
        assert!(start.world.now() < Instant::START + Duration::from_ms(100));
        Some(returned)
    });
    let returned = returned[1].as_ref().unwrap();
    assert!(matches!(returned, Reaction::Answers(Ok(Reply::Done))), "{returned:?}");
}

/// A server does not remember the order of more writes than its limit: it has the client flush that
/// it remembers them for.
#[test]
fn the_order_of_writes_takes_bounded_memory() {
    let cluster = Cluster::new(Shape { servers: 1, block_bytes: 1 << 20, ..plain_shape() });
    with_file(&cluster, 0);
    let turn = Rc::new(Cell::new(0));
    cluster.run(0..2, |start| {
        let turn = Rc::clone(&turn);
        async move {
            let until = async |number: u32| {
                while turn.get() < number {
                    start.world.sleep(Duration::from_us(100)).await;
                }
            };
            let writer = Writer::new(&start, "f").await;
            lease(&writer).await;
            turn.set(turn.get() + 1);
            until(2).await;
            if start.rank.0 == 0 {
                // Nothing flushes it but the server.
                assert!(writer.write(100, &[1]).await.unwrap());
                turn.set(3);
                until(4).await;
                assert!(writer.small.is_quiet(), "the server had it flushed");
                assert!(writer.write(101, &[1]).await.unwrap(), "it keeps its lease");
                turn.set(5);
                // A client that ends loses what it has gathered.
                until(6).await;
                return;
            }
            until(3).await;
            for number in 0..200_000u64 {
                assert!(writer.write(100 + number, &[2]).await.unwrap());
            }
            assert!(start.now() < Instant::START + Duration::from_ms(400), "nothing is old yet");
            turn.set(4);
            until(5).await;
            assert_eq!(writer.read(100, 2).await, [2, 1]);
            turn.set(6);
        }
    });
}

/// A collective read gets what members, and clients that are no members, have gathered.
#[test]
fn collective_calls_see_gathered_writes() {
    let cluster = Cluster::new(plain_shape());
    with_file(&cluster, 600);
    let is_written = Rc::new(Cell::new(0));
    let got = cluster.run(0..3, |start| {
        let is_written = Rc::clone(&is_written);
        async move {
            let writer = Writer::new(&start, "f").await;
            lease(&writer).await;
            let rank = start.rank.0;
            let offset = u64::from(rank) * 100 + 50;
            assert!(writer.write(offset, &[rank as u8 + 1; 90]).await.unwrap());
            is_written.set(is_written.get() + 1);
            while is_written.get() < 3 {
                start.world.sleep(Duration::from_us(100)).await;
            }
            if rank == 2 {
                // No member; it need not do anything for others to see its write.
                start.world.sleep(Duration::from_ms(200)).await;
                return Vec::new();
            }
            let member = Group::register(writer.client.clone(), 7, (ClientId(rank), 2), TIMEOUT);
            let member = member.await.unwrap();
            let memory = start.world.memory(600);
            let direction = Direction::Read;
            let file = writer.record();
            let call = CollectiveCall {
                direction,
                file: file.file,
                order: DiskOrder::Sorted,
                sync: false,
            };
            let part = Ok(OwnPart::contiguous(0, 600));
            let number = member.begin_call();
            member.transfer(number, &file, call, part, &memory).await.unwrap();
            memory.freeze().to_vec()
        }
    });
    let mut expected = vec![0; 600];
    for rank in 0..3usize {
        expected[rank * 100 + 50..rank * 100 + 140].fill(rank as u8 + 1);
    }
    assert_eq!(got[0], expected);
    assert_eq!(got[1], expected);
}

/// A sync by any client covers what others have gathered: it survives the crash of all servers.
#[test]
fn a_sync_covers_what_others_have_gathered() {
    let cluster = Cluster::new(plain_shape());
    with_file(&cluster, 0);
    let is_written = Rc::new(Cell::new(false));
    cluster.run(0..2, |start| {
        let is_written = Rc::clone(&is_written);
        async move {
            let writer = Writer::new(&start, "f").await;
            if start.rank.0 == 0 {
                lease(&writer).await;
                assert!(writer.write(10, &[7; 200]).await.unwrap());
                is_written.set(true);
                start.world.sleep(Duration::from_ms(100)).await;
                return;
            }
            while !is_written.get() {
                start.world.sleep(Duration::from_us(100)).await;
            }
            writer.client.flush(&writer.record(), true).await.unwrap();
            let now = start.now();
            assert!(now < Instant::START + Duration::from_ms(400), "nothing waits until {now:?}");
        }
    });
    let Cluster { shape, engine, machine, .. } = &cluster;
    let _restarted: Vec<_> = (0..shape.servers)
        .map(|server| {
            machine.kill(server);
            machine.restart(server);
            support::start_server(machine, shape, server)
        })
        .collect();
    let _ = engine;
    let got = cluster.run_alone(2, |start| async move {
        let writer = Writer::new(&start, "f").await;
        writer.read(0, 300).await
    });
    assert_eq!(got, [vec![0; 10], vec![7; 200]].concat());
}

/// A lease is returned when it is not used, and gathered writes are sent when they are old.
#[test]
fn gathered_writes_are_sent_in_time() {
    let cluster = Cluster::new(plain_shape());
    with_file(&cluster, 0);
    let writes = cluster.run_alone(0, |start| async move {
        let writer = Writer::new(&start, "f").await;
        lease(&writer).await;
        writer.write(0, &[1; 50]).await.unwrap();
        start.world.sleep(Duration::from_ms(1_200)).await;
        // The client is killed without another call.
        start.world.clone()
    });
    let _ = writes;
    cluster.machine.kill(cluster.shape.node_of(0));
    let got = cluster.run_alone(2, |start| async move {
        let writer = Writer::new(&start, "f").await;
        let begun = start.now();
        let got = writer.read(0, 100).await;
        assert!(start.now().since(begun) < Duration::from_ms(100), "nobody has a lease any more");
        got
    });
    assert_eq!(got, [1; 50]);
}

/// A reader waits for a client with a lease that is killed or stopped, but not for ever; what the
/// client had gathered is lost, and all else is there.
#[test]
fn a_client_that_is_gone_holds_nobody_up() {
    for stops in [false, true] {
        let cluster = Cluster::new(plain_shape());
        with_file(&cluster, 0);
        let ready = Rc::new(Cell::new(0));
        let node = cluster.shape.node_of(0);
        let kill = Kill {
            node,
            after: Duration::from_us(50),
            ready: Rc::clone(&ready),
            ready_min: 1,
            at: Rc::default(),
        };
        let programs = cluster.programs(&[0, 1], |start| {
            let ready = Rc::clone(&ready);
            let machine = Rc::clone(&cluster.machine);
            async move {
                let writer = Writer::new(&start, "f").await;
                if start.rank.0 == 0 {
                    lease(&writer).await;
                    writer.write(0, &[1; 100]).await.unwrap();
                    writer.client.settle(writer.record().file, false).await;
                    writer.write(50, &[2; 100]).await.unwrap();
                    ready.set(1);
                    start.world.sleep(Duration::from_ms(3_600_000)).await;
                    return Vec::new();
                }
                while ready.get() == 0 {
                    start.world.sleep(Duration::from_us(10)).await;
                }
                if stops {
                    machine.stop(node);
                } else {
                    start.world.sleep(Duration::from_us(100)).await;
                }
                let begun = start.now();
                let got = writer.read(0, 200).await;
                let waited = start.now().since(begun);
                assert!(waited < TIMEOUT * 4, "a read waited {waited}");
                got
            }
        });
        let kill = if stops { Kill { after: Duration::from_ms(20_000), ..kill } } else { kill };
        let got = cluster.run_on(programs, Some(kill)).remove(1);
        assert_eq!(got.unwrap(), [1; 100], "what was flushed is there (stops: {stops})");
    }
}

/// Two clients that each write at one server only, more than a server remembers: their flushes do
/// not wait for one another.
#[test]
fn clients_at_different_servers_do_not_wait_for_one_another() {
    const BLOCK: u64 = 1 << 20;
    let cluster = Cluster::new(Shape { block_bytes: BLOCK, ..plain_shape() });
    with_file(&cluster, 2 * BLOCK);
    let ready = Rc::new(Cell::new(0));
    cluster.run(0..2, |start| {
        let ready = Rc::clone(&ready);
        async move {
            let writer = Writer::new(&start, "f").await;
            lease(&writer).await;
            ready.set(ready.get() + 1);
            while ready.get() < 2 {
                start.world.sleep(Duration::from_us(100)).await;
            }
            let own = u64::from(start.rank.0) * BLOCK + 100;
            for number in 0..300_000 {
                assert!(writer.write(own + number * 2, &[7]).await.unwrap());
            }
            writer.client.settle_writes(writer.record().file, false).await.unwrap();
        }
    });
}

/// Clients that write, read and cut a file at the same time: every call ends, and all agree on the
/// file in the end.
#[test]
fn a_file_that_is_cut_hangs_nobody() {
    for_each_seed("gathering", "a_file_that_is_cut_hangs_nobody", 150, |seed| {
        let cluster = Cluster::new(some_shape(seed, 4));
        cluster.run_alone(3, |start| async move {
            let client = start.connect().await.unwrap();
            client.create("f", 0, start.shape.stripe()).await.unwrap();
        });
        cluster.run(0..3, |start| async move {
            let writer = Writer::new(&start, "f").await;
            let mut numbers = Numbers::new(seed * 10 + u64::from(start.rank.0));
            for _ in 0..60 {
                start.world.sleep(Duration::from_us(numbers.below(600))).await;
                let offset = numbers.below(BYTES);
                match numbers.below(12) {
                    0 => {
                        let mut record = writer.record();
                        writer.client.set_size(&mut record, offset).await.unwrap();
                        *writer.record.borrow_mut() = record;
                    }
                    1 => drop(writer.client.stat("f").await.unwrap()),
                    2 | 3 => {
                        let mut record = writer.record();
                        writer.client.refresh(&mut record).await.unwrap();
                        let length = record.bytes.saturating_sub(offset).min(30);
                        *writer.record.borrow_mut() = record;
                        // The file may have become shorter meanwhile.
                        let _ = writer.small.read(offset, length).await;
                    }
                    _ => match writer.write(offset, &[3; 20]).await {
                        Ok(_) | Err(Fault::PastEnd { .. }) => {}
                        Err(fault) => panic!("{fault}"),
                    },
                }
            }
            let file = writer.record().file;
            writer.client.settle_writes(file, true).await.unwrap();
        });
        let sizes = cluster.run(0..3, |start| async move {
            let client = start.connect().await.unwrap();
            client.open("f").await.unwrap().bytes
        });
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
    });
}

/// A client whose connection to a server has ended reads from no page of it any more.
#[test]
fn kept_pages_go_with_the_connection() {
    let cluster = Cluster::new(Shape { servers: 1, ..plain_shape() });
    with_file(&cluster, 600);
    let turn = Rc::new(Cell::new(0));
    let (machine, reader) = (Rc::clone(&cluster.machine), cluster.shape.node_of(0));
    cluster.run(0..2, |start| {
        let (turn, machine) = (Rc::clone(&turn), Rc::clone(&machine));
        async move {
            let until = async |number: u32| {
                while turn.get() < number {
                    start.world.sleep(Duration::from_us(100)).await;
                }
            };
            let writer = Writer::new(&start, "f").await;
            if start.rank.0 == 0 {
                while writer.kept_reads.get() < 2 {
                    assert_eq!(writer.read(100, 8).await, [0; 8]);
                }
                turn.set(1);
                until(2).await;
                let read = writer.small.read(100, 8).await;
                assert!(!matches!(read, Ok(Some(_))), "the server could not recall the page");
                return;
            }
            until(1).await;
            machine.disconnect(reader, 0);
            start.world.sleep(Duration::from_ms(10)).await;
            writer.write_directly(100, &[9; 8]).await.unwrap();
            turn.set(2);
        }
    });
}
