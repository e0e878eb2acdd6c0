//! The machine of one rank of a program: a simulated node, and the file system on it.

use super::mailbox::Mailbox;
use crate::scenario::Scenario;
use filesystem::collective::{Part, Strategy};
use filesystem::{BufferPool, Client, Fault, Group, NewFile, PeerCall, PeerMesh, Peers};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use policy::{Access, Direction, DiskOrder, OwnPart, Pool};
use program::{OpenedFile, Rank, Stream, Transfer, meet};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use trace::{Collective, Operation};
use units::{ByteRange, ClientId, Duration, Instant, KIB, MIB};
use wire::{CollectiveCall, FileRecord, Made};
use world::payload::Kind;
use world::{Address, Clock, Processor, Scope};
use world_simulated::{Engine, SimulatedWorld, Slice, Track, What};

/// Timeout of members that wait for one another: never, as the simulation would deadlock first.
const TIMEOUT: Duration = Duration::from_ms(1 << 40);

/// Bytes up to which a client moves contiguous data through a buffer that servers reach.
const POOLED_BYTES_MAX: u64 = 64 * KIB;

/// Bytes that are written at once to a file that is brought into the caches.
const FILL_BYTES: u64 = 4 * MIB;

/// One rank of a program on a simulated node.
pub(super) struct SimulatedRank<P: Kind> {
    pub(super) number: u32,
    pub(super) engine: Engine,
    pub(super) world: SimulatedWorld<P>,
    pub(super) client: Client<SimulatedWorld<P>>,
    pub(super) pool: BufferPool<SimulatedWorld<P>>,
    /// Mailboxes of all ranks.
    pub(super) mailboxes: Rc<[Mailbox]>,
    pub(super) scenario: Rc<Scenario>,
    /// Names of files in the simulation, by those that the program gave.
    pub(super) names: Rc<BTreeMap<String, String>>,
    /// Messages on their way.
    pub(super) travelling: Rc<Scope<SimulatedWorld<P>, Infallible>>,
}

/// File that a rank has opened.
pub(super) struct SimulatedFile<P: Kind> {
    opened: OpenedFile,
    known: Rc<RefCell<FileRecord>>,
    member: Rc<Group<SimulatedWorld<P>>>,
    /// For strategies in which members exchange data.
    peers: Rc<Peers<SimulatedWorld<P>>>,
}

impl<P: Kind> SimulatedRank<P> {
    /// Sends a message to node `to`: the processor of the sender copies it, the network carries it.
    async fn post(
        world: SimulatedWorld<P>,
        travelling: Rc<Scope<SimulatedWorld<P>, Infallible>>,
        target: Mailbox,
        to: u32,
        (from, stream, bytes): (u32, Stream, u64),
    ) {
        world.send_as_program(to, bytes).await;
        let carrying = world.clone();
        travelling.spawn(async move {
            carrying.carry_as_program(to, bytes).await;
            target.deliver(from, stream, bytes);
            Ok(())
        });
    }

    /// Node of a rank: ranks follow the servers.
    fn node_of(&self, rank: u32) -> u32 {
        self.scenario.servers + rank
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

    /// Name of a file in the simulation, for whatever name the program gave.
    fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }

    fn new_file(&self, name: &str, bytes: u64) -> NewFile {
        NewFile {
            name: name.to_owned(),
            bytes,
            stripe: self.scenario.stripe(),
            pool: Pool::all(self.scenario.servers),
            buffering: self.scenario.buffering(),
            made: Made::default(),
        }
    }

    /// True if the program's transfers go through caches at its ranks.
    fn uses_caches(&self) -> bool {
        self.scenario.uses_client_caches()
    }

    /// Begins to use the rank's cache, if the scenario gives it one.
    pub(super) async fn enable_cache(&self) -> Result<(), Fault> {
        match self.uses_caches() {
            true => {
                let Scenario { client_cache, block_bytes, .. } = &*self.scenario;
                self.client.enable_cache(client_cache, *block_bytes).await
            }
            false => Ok(()),
        }
    }

    /// Gives the servers what only the rank's cache has of a file.
    async fn write_cache_back(&self, file: &SimulatedFile<P>) -> Result<(), Fault> {
        let record = file.known.borrow().clone();
        match self.uses_caches() {
            true => self.client.write_cache_back(&record).await,
            false => Ok(()),
        }
    }

    /// Makes a file that the program expects to exist.
    pub(super) async fn make_file(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let record = self.client.create_as(self.new_file(self.name(name), bytes)).await?;
        self.client.close(&record).await
    }

    /// Writes a whole file, which brings it into the caches.
    pub(super) async fn fill_file(&self, name: &str, bytes: u64) -> Result<(), Fault> {
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

impl<P: Kind> Rank for SimulatedRank<P> {
    type File = SimulatedFile<P>;
    type Error = Fault;
    type Call = LocalBoxFuture<'static, Result<(), Fault>>;

    fn now(&self) -> Instant {
        self.world.now()
    }

    async fn compute(&self, time: Duration) {
        self.world.compute_as_program(time).await;
    }

    async fn block(&self, time: Duration) {
        self.world.sleep(time).await;
    }

    fn send(&self, to: u32, stream: Stream, bytes: u64) -> Self::Call {
        let (world, travelling) = (self.world.clone(), Rc::clone(&self.travelling));
        let target = self.mailboxes[to as usize].clone();
        let (node, message) = (self.node_of(to), (self.number, stream, bytes));
        async move {
            Self::post(world, travelling, target, node, message).await;
            Ok(())
        }
        .boxed_local()
    }

    fn receive(&self, from: u32, stream: Stream) -> Self::Call {
        let world = self.world.clone();
        let receiving = self.mailboxes[self.number as usize].receive(from, stream);
        async move {
            let bytes = receiving.await;
            world.receive_as_program(bytes).await;
            Ok(())
        }
        .boxed_local()
    }

    async fn open(&self, opened: OpenedFile) -> Result<SimulatedFile<P>, Fault> {
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
        let (known, member) = (Rc::new(RefCell::new(record)), Rc::new(member));
        Ok(SimulatedFile { opened, known, member, peers: Rc::new(Peers::new(0)) })
    }

    async fn close(&self, file: SimulatedFile<P>) -> Result<(), Fault> {
        // Nobody waits for others: all data is given to the servers.
        self.write_cache_back(&file).await?;
        file.member.leave();
        let record = file.known.borrow().clone();
        self.client.close(&record).await
    }

    fn transfer(&self, file: &SimulatedFile<P>, transfer: Transfer) -> Self::Call {
        let Transfer { direction, is_collective, part } = transfer;
        let (client, known) = (self.client.clone(), Rc::clone(&file.known));
        let (costs, hand_over) = (self.scenario.machine.costs, self.scenario.machine.call);
        if !is_collective {
            let (pool, is_cached) = (self.pool.clone(), self.uses_caches());
            return async move {
                client.world().compute(hand_over).await;
                move_alone(client, pool, known, (direction, is_cached), part).await
            }
            .boxed_local();
        }
        let (member, peers) = (Rc::clone(&file.member), Rc::clone(&file.peers));
        let (number, turn) = (member.begin_call(), peers.take_turn());
        let call = PeerCall {
            strategy: self.scenario.strategy,
            direction,
            order: self.scenario.order,
            outstanding_per_disk: self.scenario.machine.outstanding_per_disk,
            node_group_size: self.scenario.node_group_size,
            sync: false,
        };
        let group = file.opened.number;
        let nodes = file.opened.members.iter().map(|rank| self.node_of(*rank));
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

    async fn sync(&self, file: &SimulatedFile<P>) -> Result<(), Fault> {
        self.write_cache_back(file).await?;
        meet(self, &file.opened, Collective::AllReduce, 8).await?;
        if file.opened.place == 0 {
            let record = file.known.borrow().clone();
            self.client.flush(&record, true).await?;
        }
        meet(self, &file.opened, Collective::AllReduce, 8).await
    }

    async fn set_size(
        &self,
        file: &SimulatedFile<P>,
        bytes: u64,
        only_grows: bool,
    ) -> Result<(), Fault> {
        meet(self, &file.opened, Collective::AllReduce, 8).await?;
        if file.opened.place == 0 {
            let mut record = file.known.borrow().clone();
            match only_grows {
                true => self.client.grow(&mut record, bytes).await?,
                false => self.client.set_size(&mut record, bytes).await?,
            }
            *file.known.borrow_mut() = record;
        }
        meet(self, &file.opened, Collective::AllReduce, 8).await?;
        if file.opened.place != 0 {
            let mut record = file.known.borrow().clone();
            self.client.catch_up(&mut record).await?;
            *file.known.borrow_mut() = record;
        }
        Ok(())
    }

    async fn get_size(&self, file: &SimulatedFile<P>) -> Result<(), Fault> {
        self.world.compute(self.scenario.machine.call).await;
        let mut record = file.known.borrow().clone();
        self.client.refresh(&mut record).await?;
        *file.known.borrow_mut() = record;
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), Fault> {
        match self.client.remove(self.name(name)).await {
            Err(Fault::NoSuchFile { .. }) => Ok(()),
            other => other,
        }
    }

    fn note(&self, operation: &Operation, from: Instant, until: Instant) {
        let (track, what) = (Track::Rank(self.number), What::Call { name: operation.name() });
        self.engine.record(|| Slice { track, from, until, what, phases: &[] });
    }
}
