//! Proves: with caches at clients, of every cooperation, write policy and organisation, a read
//! returns what was written last, or something that was written meanwhile. That holds when clients
//! are killed. Cooperation uses the copies of other clients. Servers refuse what would make caches
//! wrong, and survive bad messages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use filesystem::{CacheCounts, Client, Fault, NewFile};
use futures_util::future::{Either, select};
use policy::{
    Access, Buffering, ClientCacheSpec, Cooperation, Direction, Organisation, Pattern, Pool,
    Prefetch, Protection, WriteMiss, WritePolicy,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use support::{
    Cluster, Kill, Numbers, Shape, Start, create, expect_equal, for_each_seed, image, read_back,
    transfer, write_image,
};
use units::{ByteRange, ClientId, Duration, Instant};
use wire::{CacheAnswer, CacheRequest, FileRecord, LineName, Made, Message, RequestId, SentLine};
use world::payload::Bytes;
use world::{Clock, Incoming, Memory, Network, Payloads};
use world_simulated::{Disruption, FaultPlan, PlannedFault, SimulatedWorld};

type World = SimulatedWorld<Bytes>;

pub(crate) const COOPERATIONS: [Cooperation; 5] = [
    Cooperation::Base,
    Cooperation::GreedyForwarding,
    Cooperation::CentrallyCoordinated,
    Cooperation::GloballyManaged,
    Cooperation::NChance,
];

/// Writes and reads of a file, in the order in which they began and ended.
#[derive(Default)]
struct History {
    now: Cell<u64>,
    /// Begin and end of each write, and its bytes of the file. Write n writes bytes of value n.
    writes: RefCell<Vec<(u64, Option<u64>, ByteRange)>>,
    /// Client whose own bytes are not checked, since it is killed.
    killed: Cell<Option<u64>>,
}

/// Bytes of each client's own places, one behind the other, in tests with such places.
const PLACE_BYTES: u64 = 16;

/// Number of clients in tests with own places.
const PLACES: u64 = 4;

impl History {
    fn tick(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }

    fn begin_write(&self, range: ByteRange) -> u8 {
        let begun = self.tick();
        let mut writes = self.writes.borrow_mut();
        writes.push((begun, None, range));
        u8::try_from(writes.len()).unwrap()
    }

    fn end_write(&self, number: u8) {
        let ended = self.tick();
        self.writes.borrow_mut()[usize::from(number) - 1].1 = Some(ended);
    }

    /// Panics unless each byte of a read that began at `begun` and ends now is of a write that no
    /// other one had replaced before the read began.
    fn check(&self, begun: u64, range: ByteRange, bytes: &[u8], who: &str) {
        let ended = self.tick();
        let writes = self.writes.borrow();
        for (at, value) in (range.start..range.end).zip(bytes) {
            if self.killed.get() == Some(at / PLACE_BYTES % PLACES) {
                continue;
            }
            let covers =
                |write: &&(u64, Option<u64>, ByteRange)| write.2.start <= at && at < write.2.end;
            let written = match value {
                0 => (0, Some(0), range),
                value => writes[usize::from(*value) - 1],
            };
            assert!(
                *value == 0 || covers(&&written),
                "{who} read a byte that was not written there"
            );
            assert!(written.0 < ended, "{who} read what was not written yet");
            let newer = writes.iter().filter(covers).position(|other| {
                written.1.is_some_and(|end| end < other.0) && other.1.is_some_and(|end| end < begun)
            });
            assert!(newer.is_none(), "{who} read {value} at {at}, which had been replaced");
        }
    }
}

/// The program of one client: random reads and writes.
struct Player {
    start: Start,
    spec: ClientCacheSpec,
    history: Rc<History>,
    steps: u64,
    bytes: u64,
    ready: Rc<Cell<u32>>,
    habits: Habits,
}

/// Habits of a player.
#[derive(Clone, Copy, Default)]
struct Habits {
    /// It gives up some of its requests.
    gives_up: bool,
    /// It writes in its own places only.
    writes_own_places: bool,
}

impl Player {
    async fn play(self) -> Result<(Client<World>, FileRecord, CacheCounts), Fault> {
        let Self { start, spec, ready, .. } = &self;
        let mut numbers = Numbers::new(start.shape.seed * 100 + u64::from(start.rank.0));
        let client = start.connect().await?;
        let file = client.open("f").await?;
        client.enable_cache(spec, start.shape.block_bytes).await?;
        ready.set(ready.get() + 1);
        self.make_steps(&client, &file, &mut numbers).await?;
        client.flush_cached(&file, false).await?;
        let counts = client.cache_counts().unwrap();
        Ok((client, file, counts))
    }

    async fn make_steps(
        &self,
        client: &Client<World>,
        file: &FileRecord,
        numbers: &mut Numbers,
    ) -> Result<(), Fault> {
        let Self { start, history, bytes, .. } = self;
        let who = start.rank.0;
        for _ in 0..self.steps {
            let at = numbers.below(*bytes);
            let range = ByteRange::new(at, (at + 1 + numbers.below(150)).min(*bytes));
            if numbers.below(3) == 0 {
                let range = self.place_of(range);
                let number = history.begin_write(range);
                let memory = start.world.thaw(vec![number; range.length() as usize].into());
                let write = client.write_cached(file, range, &memory, 0);
                if self.perhaps_not(numbers, write).await?.is_some() {
                    history.end_write(number);
                }
            } else {
                let begun = history.tick();
                let memory = start.world.thaw(vec![0xee; range.length() as usize].into());
                let read = client.read_cached(file, range, &memory, 0);
                if self.perhaps_not(numbers, read).await?.is_some() {
                    let got = memory.freeze().to_vec();
                    history.check(begun, range, &got, &format!("client {who}"));
                }
            }
            if numbers.below(16) == 0 {
                let flush = client.flush_cached(file, false);
                self.perhaps_not(numbers, flush).await?;
            }
        }
        Ok(())
    }

    /// Carries a request out, or gives it up and returns `None`.
    async fn perhaps_not(
        &self,
        numbers: &mut Numbers,
        request: impl Future<Output = Result<(), Fault>>,
    ) -> Result<Option<()>, Fault> {
        if !self.habits.gives_up || numbers.below(4) > 0 {
            return request.await.map(Some);
        }
        let given_up = self.start.world.sleep(Duration::from_us(numbers.below(400)));
        match select(pin!(request), pin!(given_up)).await {
            Either::Left((ended, _)) => ended.map(Some),
            Either::Right(_) => Ok(None),
        }
    }

    /// Returns where to write instead of `range`.
    fn place_of(&self, range: ByteRange) -> ByteRange {
        if !self.habits.writes_own_places {
            return range;
        }
        let turn = PLACE_BYTES * PLACES;
        let start = range.start / turn * turn + u64::from(self.start.rank.0) * PLACE_BYTES;
        ByteRange::new(start, start + PLACE_BYTES)
    }
}

pub(crate) fn some_spec(seed: u64) -> ClientCacheSpec {
    let mut numbers = Numbers::new(seed);
    let spec = ClientCacheSpec {
        lines: numbers.pick(&[2, 4, 8, 16]),
        line_bytes: numbers.pick(&[0, 64, 32, 16]),
        organisation: Organisation::FullyAssociative,
        write: numbers.pick(&[WritePolicy::Through, WritePolicy::Back]),
        write_miss: numbers.pick(&[WriteMiss::Allocate, WriteMiss::Around]),
        cooperation: COOPERATIONS[(seed % 5) as usize],
        global_percent: 50,
        chances: 2,
    };
    let organisation = numbers.pick(&[Organisation::DirectMapped, spec.organisation]);
    ClientCacheSpec { organisation, ..spec }
}

pub(crate) fn some_shape(seed: u64) -> Shape {
    let mut numbers = Numbers::new(seed + 1_000_000);
    Shape {
        servers: 1 + numbers.below(3) as u32,
        clients: 2 + numbers.below(3) as u32,
        cache_blocks: 1 + numbers.below(6),
        seed,
        ..Shape::default()
    }
}

/// Makes a file of zeros.
pub(crate) fn make_file(cluster: &Cluster, bytes: u64) {
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let new = NewFile {
            name: "f".to_owned(),
            bytes,
            stripe: start.shape.stripe(),
            pool: Pool::all(start.shape.servers),
            // The servers' statistics then tell the number of blocks that were read from disks.
            buffering: Buffering { prefetch: Some(Prefetch::Nothing), ..Buffering::default() },
            protection: Protection::None,
            made: Made::default(),
        };
        let file = client.create_as(new).await.unwrap();
        client.close(&file).await.unwrap();
    });
}

#[test]
fn reads_return_what_was_written_last() {
    const BYTES: u64 = 1000;
    let used = RefCell::new([0_u64; 4]);
    for_each_seed("client_caches", "reads_return_what", 400, |seed| {
        let (spec, shape) = (some_spec(seed), some_shape(seed));
        let cluster = Cluster::new(shape.clone());
        make_file(&cluster, BYTES);
        let history = Rc::new(History::default());
        let steps = 200 / u64::from(shape.clients);
        let played = cluster.run(0..shape.clients, |start| {
            let (history, ready) = (Rc::clone(&history), Rc::default());
            let habits = Habits::default();
            Player { start, spec, history, steps, bytes: BYTES, ready, habits }.play()
        });
        for (_, _, counts) in played.iter().map(|it| it.as_ref().unwrap()) {
            let mut used = used.borrow_mut();
            let counts = [counts.hits, counts.from_servers, counts.sent, counts.invalidated];
            used.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        drop(played);
        // Without any cache, the same is on the servers.
        let begun = history.tick();
        let bytes = without_caches(&cluster, 0, BYTES);
        history.check(begun, ByteRange::new(0, BYTES), &bytes, "the last reader");
    });
    let [hits, _, sent, invalidated] = used.into_inner();
    if support::only_seed().is_none() {
        assert!(hits > 1000 && sent > 1000 && invalidated > 1000, "{hits} {sent} {invalidated}");
    }
}

#[test]
fn a_killed_client_leaves_the_others_coherent() {
    const BYTES: u64 = 600;
    for_each_seed("client_caches", "a_killed_client", 200, |seed| {
        // What a killed client had not written back is lost, so all write through.
        let spec = ClientCacheSpec { write: WritePolicy::Through, ..some_spec(seed) };
        let shape = Shape { clients: 4, ..some_shape(seed) };
        let cluster = Cluster::new(shape);
        make_file(&cluster, BYTES);
        let history = Rc::new(History::default());
        let ready = Rc::new(Cell::new(0));
        let programs = cluster.programs(&[0, 1, 2, 3], |start| {
            let (history, ready) = (Rc::clone(&history), Rc::clone(&ready));
            let habits = Habits::default();
            Player { start, spec, history, steps: 50, bytes: BYTES, ready, habits }.play()
        });
        let kill = kill_one(&cluster, seed, &ready);
        for (client, played) in cluster.run_on(programs, Some(kill)).into_iter().enumerate() {
            if client as u64 != seed % 4 {
                played.unwrap().unwrap();
            }
        }
    });
}

/// Plans the death of one of four clients.
fn kill_one(cluster: &Cluster, seed: u64, ready: &Rc<Cell<u32>>) -> Kill {
    Kill {
        node: cluster.shape.node_of((seed % 4) as u32),
        after: Duration::from_us(500 * (seed % 37)),
        ready: Rc::clone(ready),
        ready_min: 4,
        at: Rc::new(Cell::new(Instant::default())),
    }
}

/// Returns the whole file as the servers have it, read by a client without a cache.
pub(crate) fn without_caches(cluster: &Cluster, client: u32, bytes: u64) -> Vec<u8> {
    cluster.run_alone(client, |start| async move {
        let group = start.join(9).await.unwrap();
        let file = group.client().open("f").await.unwrap();
        let all = "ra".parse::<Pattern>().unwrap().access(1, 1, bytes).unwrap();
        let read = transfer(Direction::Read, &file, &all, Strategy::DiskDirected);
        read_back(&group, &read).await.unwrap()
    })
}

/// A killed client takes with it what it had not written back, but nothing of the others, though it
/// owned lines with bytes of theirs.
#[test]
fn a_killed_owner_takes_only_its_own_bytes_with_it() {
    const BYTES: u64 = 640;
    for_each_seed("client_caches", "a_killed_owner", 200, |seed| {
        let spec = ClientCacheSpec { write: WritePolicy::Back, ..some_spec(seed) };
        let cluster = Cluster::new(Shape { clients: 4, ..some_shape(seed) });
        make_file(&cluster, BYTES);
        let history = Rc::new(History::default());
        history.killed.set(Some(seed % 4));
        let ready = Rc::new(Cell::new(0));
        let programs = cluster.programs(&[0, 1, 2, 3], |start| {
            let (history, ready) = (Rc::clone(&history), Rc::clone(&ready));
            let habits = Habits { writes_own_places: true, ..Habits::default() };
            Player { start, spec, history, steps: 50, bytes: BYTES, ready, habits }.play()
        });
        let kill = kill_one(&cluster, seed, &ready);
        let ended = cluster.run_on(programs, Some(kill));
        for (client, played) in ended.iter().enumerate() {
            if client as u64 != seed % 4 {
                assert!(matches!(played, Some(Ok(_))), "client {client}");
            }
        }
        drop(ended);
        let begun = history.tick();
        let survivor = ((seed + 1) % 4) as u32;
        let bytes = without_caches(&cluster, survivor, BYTES);
        history.check(begun, ByteRange::new(0, BYTES), &bytes, "the last reader");
    });
}

/// Requests that are given up at any time leave nothing behind that others read, or wait for.
#[test]
fn given_up_requests_leave_the_caches_coherent() {
    const BYTES: u64 = 1000;
    for_each_seed("client_caches", "given_up_requests", 300, |seed| {
        let (spec, shape) = (some_spec(seed), some_shape(seed));
        let cluster = Cluster::new(shape.clone());
        make_file(&cluster, BYTES);
        let history = Rc::new(History::default());
        let steps = 200 / u64::from(shape.clients);
        let played = cluster.run(0..shape.clients, |start| {
            let (history, ready) = (Rc::clone(&history), Rc::default());
            let habits = Habits { gives_up: true, ..Habits::default() };
            Player { start, spec, history, steps, bytes: BYTES, ready, habits }.play()
        });
        assert!(played.iter().all(Result::is_ok), "a request failed");
        drop(played);
        let begun = history.tick();
        let bytes = without_caches(&cluster, 0, BYTES);
        history.check(begun, ByteRange::new(0, BYTES), &bytes, "the last reader");
    });
}

/// Faults of a disk leave the caches as they were, but for the bytes that are lost: when the disk
/// works again, all bytes that are written anew are read.
#[test]
fn a_disk_that_recovers_leaves_the_caches_coherent() {
    const BYTES: u64 = 1000;
    for_each_seed("client_caches", "a_disk_that_recovers", 200, |seed| {
        let (spec, shape) = (some_spec(seed), some_shape(seed));
        let cluster = Cluster::new(shape.clone());
        make_file(&cluster, BYTES);
        let recovered = Instant::START + Duration::from_ms(60);
        let fault = |at, fails| PlannedFault {
            at,
            what: Disruption::DiskFails { node: 0, disk: 0, fails },
        };
        let faults =
            vec![fault(Instant::START + Duration::from_ms(20), true), fault(recovered, false)];
        cluster.machine.plan(&FaultPlan { seed, faults, ..FaultPlan::default() }, |_| {});
        let history = Rc::new(History::default());
        cluster.run(0..shape.clients, |start| {
            let history = Rc::clone(&history);
            async move {
                let mut numbers = Numbers::new(seed * 100 + u64::from(start.rank.0));
                let group = start.join(1).await.unwrap();
                let (client, world) = (group.client().clone(), start.world.clone());
                let file = client.open("f").await.unwrap();
                client.enable_cache(&spec, start.shape.block_bytes).await.unwrap();
                while world.now() < recovered {
                    let range = ByteRange::at(numbers.below(BYTES - 100), 1 + numbers.below(100));
                    let memory = world.memory(range.length());
                    // Any may fail; none may hang.
                    let _ = match numbers.below(3) {
                        0 => client.write_cached(&file, range, &memory, 0).await,
                        _ => client.read_cached(&file, range, &memory, 0).await,
                    };
                    world.sleep(Duration::from_us(numbers.below(1500))).await;
                }
                // All faults so far are reported, whichever request they were of.
                while client.flush_cached(&file, false).await.is_err() {}
                group.barrier().await.unwrap();
                let all = ByteRange::new(0, BYTES);
                if start.rank == ClientId(0) {
                    let number = history.begin_write(all);
                    let memory = || world.thaw(vec![number; BYTES as usize].into());
                    while client.write_cached(&file, all, &memory(), 0).await.is_err() {}
                    history.end_write(number);
                }
                group.barrier().await.unwrap();
                while client.flush_cached(&file, false).await.is_err() {}
                group.barrier().await.unwrap();
                let habits = Habits::default();
                let (ready, steps) = (Rc::default(), 40);
                let player = Player { start, spec, history, steps, bytes: BYTES, ready, habits };
                player.make_steps(&client, &file, &mut numbers).await.unwrap();
                client.flush_cached(&file, false).await.unwrap();
                group.barrier().await.unwrap();
            }
        });
        let begun = history.tick();
        let bytes = without_caches(&cluster, 0, BYTES);
        history.check(begun, ByteRange::new(0, BYTES), &bytes, "the last reader");
    });
}

/// Two clients that write one line in turns never lose bytes of each other, whoever owns it.
#[test]
fn owners_of_a_line_lose_nothing() {
    for cooperation in COOPERATIONS {
        let spec = ClientCacheSpec {
            lines: 10,
            cooperation,
            write: WritePolicy::Back,
            write_miss: WriteMiss::Allocate,
            ..ClientCacheSpec::default()
        };
        let cluster = Cluster::new(Shape { clients: 4, servers: 1, ..Shape::default() });
        make_file(&cluster, 64);
        let lines = cluster.run(0..4, |start| async move {
            let group = start.join(1).await.unwrap();
            let client = group.client().clone();
            let file = client.open("f").await.unwrap();
            client.enable_cache(&spec, 64).await.unwrap();
            let rank = u64::from(start.rank.0);
            for turn in 1..=20_u8 {
                // Each client has 16 bytes of the line.
                let memory = start.world.thaw(vec![turn; 16].into());
                let own = ByteRange::at(rank * 16, 16);
                client.write_cached(&file, own, &memory, 0).await.unwrap();
            }
            group.barrier().await.unwrap();
            let memory = start.world.memory(64);
            client.read_cached(&file, ByteRange::new(0, 64), &memory, 0).await.unwrap();
            // The last owner takes its bytes with it when it leaves.
            group.barrier().await.unwrap();
            memory.freeze().to_vec()
        });
        for line in lines {
            expect_equal(&line, &[20; 64], &cooperation.to_string());
        }
    }
}

/// Client 0 reads a file that fits its cache but not the server's; then client 1 reads it.
fn counts_of_two_readers(cooperation: Cooperation) -> (CacheCounts, u64) {
    let spec = ClientCacheSpec { lines: 20, cooperation, ..ClientCacheSpec::default() };
    let shape = Shape { clients: 2, servers: 1, cache_blocks: 4, ..Shape::default() };
    let cluster = Cluster::new(shape);
    make_file(&cluster, 64 * 16);
    let counts = cluster.run(0..2, |start| async move {
        let group = start.join(1).await.unwrap();
        let client = group.client().clone();
        let file = client.open("f").await.unwrap();
        client.enable_cache(&spec, 64).await.unwrap();
        for turn in 0..2 {
            group.barrier().await.unwrap();
            if start.rank == ClientId(turn) {
                for block in 0..16 {
                    let memory = start.world.memory(64);
                    let range = ByteRange::at(block * 64, 64);
                    client.read_cached(&file, range, &memory, 0).await.unwrap();
                }
            }
        }
        group.barrier().await.unwrap();
        let buffers = client.buffers(&file).await.unwrap();
        let disk_reads = buffers.iter().map(|it| it.misses + it.prefetched).sum::<u64>();
        (client.cache_counts().unwrap(), disk_reads)
    });
    (counts[1].0, counts[1].1)
}

#[test]
fn cooperation_uses_the_copies_of_other_clients() {
    let (base, reads) = counts_of_two_readers(Cooperation::Base);
    assert_eq!((base.from_clients, base.from_servers), (0, 16));
    assert!(reads >= 30, "{reads}");
    for cooperation in [Cooperation::GreedyForwarding, Cooperation::NChance] {
        let (greedy, reads) = counts_of_two_readers(cooperation);
        assert!(greedy.from_clients >= 12 && reads <= 20, "{cooperation} {greedy:?} {reads}");
    }
    let (coordinated, reads) = counts_of_two_readers(Cooperation::CentrallyCoordinated);
    assert!(coordinated.from_clients + coordinated.hits >= 12 && reads <= 18, "{coordinated:?}");
    let (managed, reads) = counts_of_two_readers(Cooperation::GloballyManaged);
    assert!(managed.from_clients == 16 && reads <= 17, "{managed:?} {reads}");
}

/// Caching as a strategy of collectives goes through the caches.
#[test]
fn the_caching_strategy_uses_the_caches() {
    const BYTES: u64 = 1500;
    for cooperation in COOPERATIONS {
        for write in [WritePolicy::Through, WritePolicy::Back] {
            let spec = ClientCacheSpec { lines: 10, cooperation, write, ..Default::default() };
            let cluster = Cluster::new(Shape::default());
            let expected = image(3, BYTES);
            let got = cluster.run(0..4, |start| {
                let expected = expected.clone();
                async move {
                    let group = start.join(0).await.unwrap();
                    let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
                    group.client().enable_cache(&spec, 64).await.unwrap();
                    let access = |name: &str| -> Access {
                        name.parse::<Pattern>().unwrap().access(4, 1, BYTES).unwrap()
                    };
                    let written = access("wc");
                    let write = transfer(Direction::Write, &file, &written, Strategy::Caching);
                    write_image(&group, &write, &expected).await.unwrap();
                    let all = access("ra");
                    let read = transfer(Direction::Read, &file, &all, Strategy::Caching);
                    let bytes = read_back(&group, &read).await.unwrap();
                    // Other strategies may read, but not write, what is in caches.
                    let read = transfer(Direction::Read, &file, &all, Strategy::DiskDirected);
                    let directed = read_back(&group, &read).await.unwrap();
                    expect_equal(&directed, &bytes, "a directed read");
                    let write = transfer(Direction::Write, &file, &written, Strategy::DiskDirected);
                    let refused = write_image(&group, &write, &expected).await;
                    assert!(matches!(refused, Err(Fault::BadRequest { .. })), "{refused:?}");
                    bytes
                }
            });
            for bytes in got {
                expect_equal(&bytes, &expected, &format!("{cooperation} {write}"));
            }
        }
    }
}

#[test]
fn impossible_caches_are_refused() {
    let cluster = Cluster::new(Shape { clients: 2, ..Shape::default() });
    make_file(&cluster, 640);
    cluster.run(0..2, |start| async move {
        let group = start.join(1).await.unwrap();
        let client = group.client();
        let file = client.open("f").await.unwrap();
        let memory = start.world.memory(64);
        let range = ByteRange::at(0, 64);
        let none = client.read_cached(&file, range, &memory, 0).await;
        assert!(matches!(none, Err(Fault::BadRequest { .. })), "{none:?}");
        let spec = ClientCacheSpec::default();
        let empty = client.enable_cache(&ClientCacheSpec { lines: 0, ..spec }, 64).await;
        assert!(matches!(empty, Err(Fault::BadRequest { .. })), "{empty:?}");
        if start.rank == ClientId(0) {
            client.enable_cache(&spec, 64).await.unwrap();
            let again = client.enable_cache(&spec, 64).await;
            assert!(matches!(again, Err(Fault::BadRequest { .. })), "{again:?}");
            let beyond = client.read_cached(&file, ByteRange::at(640, 1), &memory, 0).await;
            assert!(matches!(beyond, Err(Fault::PastEnd { .. })), "{beyond:?}");
        }
        group.barrier().await.unwrap();
        if start.rank == ClientId(1) {
            let other = ClientCacheSpec { cooperation: Cooperation::NChance, ..spec };
            let refused = client.enable_cache(&other, 64).await;
            assert!(matches!(refused, Err(Fault::BadRequest { .. })), "{refused:?}");
        }
        group.barrier().await.unwrap();
    });
}

/// Requests about a line that no file has, before and after a registration, and bad registrations.
fn bad_requests(line: LineName) -> Vec<CacheRequest> {
    let mut requests = vec![
        CacheRequest::Read { line, dropped: vec![line; 300] },
        CacheRequest::Own { line, fetches: true, dropped: vec![line; 300] },
        CacheRequest::Write { line, offset: 0, keeps: true, dropped: vec![line; 300] },
        CacheRequest::Read { line, dropped: vec![line; 3] },
        CacheRequest::Write { line, offset: u64::MAX, keeps: true, dropped: Vec::new() },
        CacheRequest::Own { line, fetches: true, dropped: Vec::new() },
        CacheRequest::WriteBack { line, keeps: true },
        CacheRequest::Evict { line, chances: Some(0) },
    ];
    let registration = wire::CacheRegistration {
        line_bytes: 64,
        cooperation: Cooperation::Base,
        chances: 2,
        global_lines: u32::MAX,
        address: "nowhere".to_owned(),
        ticket: 0,
    };
    let known = requests.clone();
    requests.push(CacheRequest::Settle { line });
    requests.push(CacheRequest::Register(registration.clone()));
    requests.extend(known);
    requests
        .push(CacheRequest::Register(wire::CacheRegistration { line_bytes: 0, ..registration }));
    let here = LineName { line: 3, ..line };
    requests.push(CacheRequest::Write { line: here, offset: 60, keeps: true, dropped: Vec::new() });
    requests.push(CacheRequest::Write { line: here, offset: 0, keeps: true, dropped: Vec::new() });
    requests.push(CacheRequest::Withdraw);
    requests.push(CacheRequest::Read { line: here, dropped: Vec::new() });
    requests
}

/// Requests that make no sense are answered, and unasked answers and lines end the connection. A
/// client with a cache works on meanwhile.
#[test]
fn bad_messages_harm_nobody() {
    let cluster = Cluster::new(Shape { clients: 2, servers: 1, ..Shape::default() });
    make_file(&cluster, 640);
    let ended = Rc::new(Cell::new(false));
    let mut programs = cluster.programs(&[0], |start| {
        let ended = Rc::clone(&ended);
        async move {
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            client.enable_cache(&ClientCacheSpec::default(), 64).await.unwrap();
            while !ended.get() {
                let memory = start.world.thaw(vec![1; 64].into());
                client.write_cached(&file, ByteRange::at(64, 64), &memory, 0).await.unwrap();
                client
                    .read_cached(&file, ByteRange::at(0, 640), &start.world.memory(640), 0)
                    .await
                    .unwrap();
            }
        }
    });
    let server = cluster.servers()[0].clone();
    let victim = support::address(cluster.shape.node_of(0));
    programs.extend(cluster.programs(&[1], |start| {
        let (ended, server, victim) = (Rc::clone(&ended), server.clone(), victim.clone());
        async move {
            let world = start.world.clone();
            let line = LineName { file: units::FileId(1), line: u64::MAX };
            let peer = world.connect(&server).await.unwrap();
            let (version, key) = (wire::PROTOCOL_VERSION, wire::ClientKey(4));
            let hello = Message::Hello { version, key };
            let send = |message: &Message| {
                let message = world::Message::with_body(wire::encode(message), vec![7; 8].into());
                world.send(peer, message)
            };
            send(&hello).await.unwrap();
            let requests = bad_requests(line);
            let mut unanswered: BTreeSet<u64> = (0..requests.len() as u64).collect();
            for (id, request) in (0..).map(RequestId).zip(requests) {
                let request = request.into();
                send(&Message::Request { id, request }).await.unwrap();
            }
            let mut refused = 0;
            while !unanswered.is_empty() {
                match world.receive().await {
                    Incoming::Message { header, .. } => {
                        if let Ok(Message::Reply { id, result }) = wire::decode(&header) {
                            assert!(unanswered.remove(&id.0), "{id:?} was answered twice");
                            refused += u32::from(result.is_err());
                        }
                    }
                    Incoming::Departed { cause, .. } => panic!("the server hung up: {cause}"),
                }
            }
            assert!(refused > 15, "{refused}");
            send(&Message::CacheAnswer(CacheAnswer { number: 1 << 60, was_there: true }))
                .await
                .unwrap();
            assert!(hangs_up(&world).await, "nobody asked for the answer");
            let peer = world.connect(&victim).await.unwrap();
            let forged =
                SentLine::Requested { ticket: 1, id: RequestId(1), line, is_last_copy: true };
            let forged = wire::encode(&Message::SentLine(forged));
            let forged = world::Message::with_body(forged, vec![9; 64].into());
            world.send(peer, forged).await.unwrap();
            assert!(hangs_up(&world).await, "nobody asked for the line");
            ended.set(true);
        }
    }));
    cluster.run_on(programs, None);
}

/// Tells if the other end of a connection hangs up before it sends anything.
async fn hangs_up(world: &World) -> bool {
    let timeout = world.sleep(Duration::from_ms(1_000));
    match select(pin!(world.receive()), pin!(timeout)).await {
        Either::Left((Incoming::Departed { .. }, _)) => true,
        Either::Left((Incoming::Message { .. }, _)) | Either::Right(_) => false,
    }
}
