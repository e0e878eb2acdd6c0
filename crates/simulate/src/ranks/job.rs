//! A rank of a job: it opens files and joins calls as the interposer of MPI does.

use super::file_calls::{KnownFile, delete, new_file};
use super::node::{Call, Mailboxes, Node};
use super::stage::Stage;
use crate::scenario::Scenario;
use filesystem::collective::{Part, Strategy};
use filesystem::{
    BufferPool, Client, Fault, Group, NewFile, PeerCall, PeerMesh, Peers, SmallCalls,
};
use futures_util::FutureExt;
use policy::{Access, Direction, DiskOrder, OwnPart};
use program::{OpenedFile, Program, Rank, Stream, Transfer, meet};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use trace::{Collective, Operation};
use units::{ByteRange, ClientId, Duration, Instant, KIB, MIB};
use wire::{CollectiveCall, FileRecord};
use world::payload::Kind;
use world::{Address, Clock, Processor};
use world_simulated::{Engine, SimulatedWorld, Slice, Track, What};

/// Timeout of members that wait for one another: never, as the simulation would deadlock first.
const TIMEOUT: Duration = Duration::from_ms(1 << 40);

/// Bytes up to which a client moves contiguous data through a buffer that servers reach.
const POOLED_BYTES_MAX: u64 = 64 * KIB;

/// Largest read from pages that a rank keeps, in bytes, as in the library.
const KEPT_READ_BYTES_MAX: u64 = 256 * KIB;

/// Largest number of pieces of a small part, as in the library.
const PIECES_MAX: usize = 256;

/// Bytes that are written at once to a file that is brought into the caches.
const FILL_BYTES: u64 = 4 * MIB;

/// Bytes of the buffers that servers of small requests reach, as in the library.
const POOL_BYTES: u64 = 64 * MIB;

/// One rank of a job.
pub(crate) struct JobRank<P: Kind> {
    node: Node<P>,
    engine: Engine,
    pub(crate) client: Client<SimulatedWorld<P>>,
    pool: BufferPool<SimulatedWorld<P>>,
    scenario: Rc<Scenario>,
    /// True once the program has used a file: a library connects then.
    is_connected: Cell<bool>,
    /// True if the rank uses a processor while it waits for messages.
    polls: bool,
    /// Names of files in the simulation, by those that the program gave.
    names: Rc<BTreeMap<String, String>>,
}

/// File that a rank has opened.
pub(crate) struct JobFile<P: Kind> {
    opened: OpenedFile,
    record: Rc<RefCell<FileRecord>>,
    small: Rc<SmallCalls<SimulatedWorld<P>>>,
    member: Rc<Group<SimulatedWorld<P>>>,
    /// For strategies in which members exchange data.
    peers: Rc<Peers<SimulatedWorld<P>>>,
}

impl<P: Kind> JobRank<P> {
    /// Connects the ranks of a program, and makes the files that they expect.
    pub(crate) fn start_all(
        stage: &Stage<P>,
        scenario: &Scenario,
        program: &Arc<Program>,
    ) -> impl Future<Output = Result<Vec<Self>, Fault>> + use<P> {
        let (scenario, names) = (Rc::new(scenario.clone()), Rc::new(program.names("file")));
        let (servers, mailboxes) = (stage.server_addresses(), Mailboxes::of(program.ranks()));
        let (engine, program) = (stage.engine.clone(), Arc::clone(program));
        let ranks_poll = program.ranks_poll();
        let worlds = (0..program.ranks()).map(|number| stage.rank_world(number));
        let worlds: Vec<SimulatedWorld<P>> = worlds.collect();
        async move {
            let mut ranks = Vec::new();
            for (number, world) in (0..).zip(worlds) {
                let costs = scenario.machine.costs;
                let client = Client::connect(world.clone(), &servers, costs).await?;
                ranks.push(Self {
                    node: Node::new((number, scenario.servers), world, mailboxes.clone()),
                    engine: engine.clone(),
                    pool: BufferPool::new(&client, POOL_BYTES).await?,
                    client,
                    scenario: Rc::clone(&scenario),
                    is_connected: Cell::new(false),
                    polls: ranks_poll,
                    names: Rc::clone(&names),
                });
            }
            for rank in &ranks {
                rank.enable_cache().await?;
            }
            if let Some(rank) = ranks.first() {
                rank.make_files(&program).await?;
            }
            Ok(ranks)
        }
    }

    /// Makes the files that the program expects to exist.
    async fn make_files(&self, program: &Program) -> Result<(), Fault> {
        for (name, bytes) in program.existing_files() {
            let record = self.client.create_as(self.new_file(self.name(&name), bytes)).await?;
            self.client.close(&record).await?;
            if program.has_warm_files() {
                self.fill_file(&name, bytes).await?;
            }
        }
        Ok(())
    }

    /// Takes the time of connecting to the servers, once.
    async fn connect(&self) {
        if !self.is_connected.replace(true) {
            self.node.world.compute(self.scenario.machine.connect).await;
        }
    }

    /// Opens the file, and makes it if it is to be made.
    async fn open_here(&self, file: &OpenedFile) -> Result<FileRecord, Fault> {
        let name = self.name(&file.name);
        if file.place == 0 && file.creates {
            match self.client.create_as(self.new_file(name, 0)).await {
                Err(Fault::FileExists { .. }) => {}
                other => return other,
            }
        }
        let mut record = self.client.open(name).await?;
        // Before the others open it, so that all see it empty.
        if file.place == 0 && file.is_fresh && record.bytes > 0 {
            self.client.set_size(&mut record, 0).await?;
        }
        Ok(record)
    }

    /// Parameters of a collective call.
    fn peer_call(&self, direction: Direction) -> PeerCall {
        let Scenario { strategy, order, node_group_size, .. } = &*self.scenario;
        PeerCall {
            strategy: *strategy,
            direction,
            order: *order,
            outstanding_per_disk: self.scenario.machine.outstanding_per_disk,
            node_group_size: *node_group_size,
            sync: false,
        }
    }

    /// Name of a file in the simulation, for whatever name the program gave.
    fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }

    fn new_file(&self, name: &str, bytes: u64) -> NewFile {
        new_file(&self.scenario, name, bytes)
    }

    /// True if the program's transfers go through caches at its ranks.
    fn uses_caches(&self) -> bool {
        self.scenario.uses_client_caches()
    }

    /// Begins to use the rank's cache, if the scenario gives it one.
    async fn enable_cache(&self) -> Result<(), Fault> {
        match self.uses_caches() {
            true => {
                let Scenario { client_cache, block_bytes, .. } = &*self.scenario;
                self.client.enable_cache(client_cache, *block_bytes).await
            }
            false => Ok(()),
        }
    }

    /// Gives the servers what only the rank's cache has of a file.
    async fn write_cache_back(&self, file: &JobFile<P>) -> Result<(), Fault> {
        let record = file.record.borrow().clone();
        match self.uses_caches() {
            true => self.client.write_cache_back(&record).await,
            false => Ok(()),
        }
    }

    fn known<'a>(&'a self, file: &'a JobFile<P>) -> KnownFile<'a, P> {
        KnownFile { client: &self.client, opened: &file.opened, record: &file.record }
    }

    /// Writes a whole file, which brings it into the caches.
    async fn fill_file(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let record = self.client.open(self.name(name)).await?;
        let known = Rc::new(RefCell::new(record.clone()));
        for range in ByteRange::at(0, bytes).windows(FILL_BYTES) {
            let (client, pool, known) = (self.client.clone(), self.pool.clone(), Rc::clone(&known));
            let part = OwnPart::contiguous(range.start, range.length());
            move_alone(client, pool, known, (Direction::Write, false), part).await?;
        }
        self.client.flush(&record, false).await?;
        self.client.close(&record).await
    }
}

/// Makes the file long enough for a write, or learns that it is long enough for a read.
async fn reach<P: Kind>(
    client: &Client<SimulatedWorld<P>>,
    known: &RefCell<FileRecord>,
    direction: Direction,
    end: u64,
) -> Result<FileRecord, Fault> {
    let mut record = known.borrow().clone();
    if record.bytes < end {
        match direction {
            Direction::Read => client.refresh(&mut record).await?,
            Direction::Write => client.grow(&mut record, end).await?,
        }
        let mut known = known.borrow_mut();
        if known.size() < record.size() {
            *known = record.clone();
        }
    }
    if record.bytes < end {
        return Err(Fault::PastEnd { file: record.name, bytes: record.bytes });
    }
    Ok(record)
}

/// True for the part of a blocking call that the client library makes without its I/O thread: some
/// bytes of one block.
fn is_small(part: &OwnPart, file: &FileRecord) -> bool {
    let Some(extent) = part.file_extent() else { return false };
    let blocks = file.stripe.blocks_in(extent);
    extent.length() <= POOLED_BYTES_MAX
        && part.bytes() == extent.length()
        && blocks.end - blocks.start == 1
        && extent.end <= file.bytes
}

/// Makes a small call without a message, if that is possible: gathers a write, or reads from pages
/// that the rank keeps.
async fn is_small_call<P: Kind>(
    small: &SmallCalls<SimulatedWorld<P>>,
    direction: Direction,
    part: &OwnPart,
) -> Result<bool, Fault> {
    let bytes_max = match direction {
        Direction::Write => POOLED_BYTES_MAX,
        Direction::Read => KEPT_READ_BYTES_MAX,
    };
    if part.bytes() > bytes_max {
        return Ok(false);
    }
    let access = Access::Parts(vec![part.clone()]);
    let chunks: Vec<_> = access.chunks(ClientId(0)).take(PIECES_MAX + 1).collect();
    let mut all_made = chunks.len() <= PIECES_MAX;
    for chunk in chunks {
        all_made = all_made
            && match direction {
                Direction::Write => {
                    small.write(chunk.file_offset, &small.payload(chunk.length)).await?
                }
                Direction::Read => small.read(chunk.file_offset, chunk.length).await?.is_some(),
            };
    }
    Ok(all_made)
}

/// Moves the part of a rank by itself; through its cache if `is_cached`.
async fn move_alone<P: Kind>(
    client: Client<SimulatedWorld<P>>,
    pool: BufferPool<SimulatedWorld<P>>,
    known: Rc<RefCell<FileRecord>>,
    (direction, is_cached): (Direction, bool),
    part: OwnPart,
) -> Result<(), Fault> {
    let Some(extent) = part.file_extent() else { return Ok(()) };
    let file = reach(&client, &known, direction, extent.end).await?;
    let is_contiguous = part.bytes() == extent.length();
    if is_contiguous && !is_cached && extent.length() <= POOLED_BYTES_MAX {
        let buffer = pool.wait_for(extent.length()).await;
        return buffer.transfer(direction, &file, extent.start).await;
    }
    let memory = world::Payloads::memory(client.world(), part.memory_bytes());
    let access = Access::Parts(vec![part]);
    if is_cached {
        for chunk in access.chunks(ClientId(0)) {
            let (range, at) = (ByteRange::at(chunk.file_offset, chunk.length), chunk.memory_offset);
            match direction {
                Direction::Read => client.read_cached(&file, range, &memory, at).await?,
                Direction::Write => client.write_cached(&file, range, &memory, at).await?,
            }
        }
        return Ok(());
    }
    let order = DiskOrder::Sorted;
    let part = Part { direction, file, access, client: ClientId(0), order, sync: false };
    match direction {
        Direction::Write if is_contiguous => client.move_part(&part, &memory).await,
        _ => client.transfer_part(&part, &memory).await,
    }
}

impl<P: Kind> Rank for JobRank<P> {
    type File = JobFile<P>;
    type Error = Fault;
    type Call = Call;

    fn now(&self) -> Instant {
        self.node.world.now()
    }

    async fn compute(&self, time: Duration) {
        self.node.compute(time).await;
    }

    async fn block(&self, time: Duration) {
        self.node.block(time).await;
    }

    fn send(&self, to: u32, stream: Stream, bytes: u64) -> Call {
        self.node.send(to, stream, bytes)
    }

    fn receive(&self, from: u32, stream: Stream) -> Call {
        self.node.receive(from, stream)
    }

    async fn wait_for_messages<T>(&self, messages: impl Future<Output = T>) -> T {
        let _polling = self.polls.then(|| self.node.world.poll_as_program());
        messages.await
    }

    async fn open(&self, opened: OpenedFile) -> Result<JobFile<P>, Fault> {
        self.connect().await;
        // As the interposer of MPI does: a communicator of its own, rank 0 first, and a group.
        meet(self, &opened, Collective::AllReduce, 8).await?;
        let first = match opened.place {
            0 => Some(self.open_here(&opened).await?),
            _ => None,
        };
        meet(self, &opened, Collective::Broadcast, 24).await?;
        let record = match first {
            Some(record) => record,
            None => self.open_here(&opened).await?,
        };
        meet(self, &opened, Collective::AllGather, 16).await?;
        let place = (ClientId(opened.place), opened.members.len() as u32);
        let (client, number) = (self.client.clone(), opened.number);
        let member = Group::register(client, number, place, TIMEOUT).await?;
        member.all_gather(Vec::new()).await?;
        let (record, member) = (Rc::new(RefCell::new(record)), Rc::new(member));
        let small = Rc::new(SmallCalls::new(&self.client, Rc::clone(&record)));
        Ok(JobFile { opened, record, small, member, peers: Rc::new(Peers::new(0)) })
    }

    async fn close(&self, file: JobFile<P>) -> Result<(), Fault> {
        // Nobody waits for others: all data is given to the servers.
        self.write_cache_back(&file).await?;
        file.member.leave();
        let record = file.record.borrow().clone();
        self.client.close(&record).await
    }

    fn transfer(&self, file: &JobFile<P>, transfer: Transfer) -> Call {
        let Transfer { direction, is_collective, is_blocking, part, .. } = transfer;
        let (client, known) = (self.client.clone(), Rc::clone(&file.record));
        let (costs, hand_over) = (self.scenario.machine.costs, self.scenario.machine.call);
        if !is_collective {
            let (pool, is_cached) = (self.pool.clone(), self.uses_caches());
            let is_made_by_caller = is_blocking && is_small(&part, &known.borrow());
            let makes_small_calls = !is_cached && self.scenario.machine.caches_ends();
            let small = (is_blocking && makes_small_calls).then(|| Rc::clone(&file.small));
            return async move {
                if let Some(small) = small
                    && is_small_call(&small, direction, &part).await?
                {
                    return Ok(());
                }
                if !is_made_by_caller {
                    client.world().compute(hand_over).await;
                }
                move_alone(client, pool, known, (direction, is_cached), part).await
            }
            .boxed_local();
        }
        let (member, peers) = (Rc::clone(&file.member), Rc::clone(&file.peers));
        let (number, turn) = (member.begin_call(), peers.take_turn());
        let call = self.peer_call(direction);
        let group = file.opened.number;
        let nodes = file.opened.members.iter().map(|rank| self.node.of(*rank));
        let addresses: Rc<[Address]> = nodes.map(|node| Address(format!("node:{node}"))).collect();
        async move {
            client.world().compute(hand_over).await;
            let end = part.file_extent().map_or(0, |extent| extent.end);
            let (record, part) = match reach(&client, &known, direction, end).await {
                Ok(record) => (record, Ok(part)),
                Err(fault) => (known.borrow().clone(), Err(fault)),
            };
            let bytes = part.as_ref().map_or(0, OwnPart::memory_bytes);
            let memory = world::Payloads::memory(client.world(), bytes);
            if call.strategy == Strategy::DiskDirected {
                let PeerCall { order, sync, .. } = call;
                let call = CollectiveCall { direction, file: record.file, order, sync };
                let moved = member.transfer(number, &record, call, part, &memory).await;
                client.world().compute(costs.collective).await;
                return moved.map(|_| ());
            }
            let join = async || {
                PeerMesh::join(client.clone(), group, member.rank(), addresses, TIMEOUT).await
            };
            let place = (&*member, number, turn);
            let moved = peers.transfer(place, &record, call, part, &memory, join).await;
            moved.map(|_| ())
        }
        .boxed_local()
    }

    async fn sync(&self, file: &JobFile<P>) -> Result<(), Fault> {
        self.write_cache_back(file).await?;
        self.known(file).sync(self).await
    }

    async fn set_size(&self, file: &JobFile<P>, bytes: u64, only_grows: bool) -> Result<(), Fault> {
        self.known(file).set_size(self, bytes, only_grows).await
    }

    async fn get_size(&self, file: &JobFile<P>) -> Result<(), Fault> {
        self.node.world.compute(self.scenario.machine.call).await;
        self.known(file).get_size().await
    }

    async fn delete(&self, name: &str) -> Result<(), Fault> {
        self.connect().await;
        delete(&self.client, self.name(name)).await
    }

    fn note(&self, operation: &Operation, from: Instant, until: Instant) {
        let (track, what) = (Track::Rank(self.node.rank), What::Call { name: operation.name() });
        self.engine.record(|| Slice { track, from, until, what, phases: &[] });
    }
}
