//! Collectives in which members exchange data with one another: for the strategies that are not
//! directed by the servers.
//!
//! Invariants:
//! - Members connect to one another at their first such call.
//! - Such calls of a group run one after the other, in the order in which they were made.

use super::group::Group;
use super::peer_mesh::PeerMesh;
use crate::client::state::Client;
use crate::collective::{Strategy, Transfer};
use crate::signal::Signal;
use futures_util::future::{Either, pending, select};
use policy::{Access, Direction, DiskOrder, OwnPart};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use units::Run;
use wire::{Fault, FileRecord, GATHER_BYTES_MAX};
use world::{Memory, World};

/// The members of a group as they know one another.
pub struct Peers<W: World> {
    joined: RefCell<Option<Rc<PeerMesh<W>>>>,
    turns: Rc<Turns>,
    staged_bytes_max: u64,
}

/// One such call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerCall {
    /// Any strategy; disk-directed ones need no peers.
    pub strategy: Strategy,
    /// Read or write.
    pub direction: Direction,
    /// Order in which disks are used.
    pub order: DiskOrder,
    /// Requests that a member has under way at one disk.
    pub outstanding_per_disk: u32,
    /// Members that make requests at the same time (node grouping); 0 for the default.
    pub node_group_size: u32,
    /// True when written data must be on stable storage at the end.
    pub sync: bool,
}

impl PeerCall {
    /// Describes what must be the same at every member, so that all of them wait for the others
    /// equally often.
    fn description(&self) -> String {
        let verb = match self.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let groups = match (self.strategy, self.node_group_size) {
            (Strategy::NodeGrouping, 0) => " in groups of the default size".to_owned(),
            (Strategy::NodeGrouping, size) => format!(" in groups of {size}"),
            _ => String::new(),
        };
        format!("a {verb} by {}{groups}", self.strategy)
    }
}

impl<W: World> Peers<W> {
    /// None of them is connected yet. Members put the data of a read into memory of the node that
    /// is copied to the caller's in the end, up to `staged_bytes_max` bytes; more go there at once.
    pub fn new(staged_bytes_max: u64) -> Self {
        Self { joined: RefCell::default(), turns: Rc::default(), staged_bytes_max }
    }

    /// Takes the turn of a call that begins now. Members take turns in the order of their calls.
    pub fn take_turn(&self) -> PeerTurn {
        let turns = Rc::clone(&self.turns);
        let number = turns.asked.replace(turns.asked.get() + 1);
        turns.calls.borrow_mut().insert(number);
        PeerTurn { turns, number }
    }

    /// Transfers this member's part, together with all members; returns its bytes. The call has a
    /// number among those of the group. `join` joins the members at the first call.
    ///
    /// # Errors
    /// Every member gets the same fault.
    pub async fn transfer(
        &self,
        (group, number, turn): (&Group<W>, u64, PeerTurn),
        file: &FileRecord,
        call: PeerCall,
        part: Result<OwnPart, Fault>,
        memory: &W::Memory,
        join: impl AsyncFnOnce() -> Result<PeerMesh<W>, Fault>,
    ) -> Result<u64, Fault> {
        turn.comes().await;
        let exchanged = pin!(exchange_parts(group, number, &call, &part));
        // A member that has met a failure of the group does not come.
        let parts = match select(exchanged, pin!(self.until_broken())).await {
            Either::Left((parts, _)) => parts?,
            Either::Right((fault, _)) => return Err(fault),
        };
        let mesh = self.mesh(join).await?;
        let own = group.rank();
        // All members know the file as it is after the last has made it longer.
        let record = match open_as_it_is(mesh.client(), file).await {
            Ok(record) => record,
            // The others wait for this member in the next step.
            Err(fault) => return Err(mesh.share_fault(fault).await),
        };
        let PeerCall { strategy, direction, order, outstanding_per_disk, node_group_size, sync } =
            call;
        let access = Access::of_parts(parts);
        let bytes = access.count_bytes(own, units::ByteRange::new(0, policy::BYTES_MAX));
        let transfer = Transfer {
            direction,
            file: record,
            access,
            strategy,
            order,
            outstanding_per_disk,
            node_group_size,
            sync,
        };
        let is_staged = direction == Direction::Read
            && strategy == Strategy::TwoPhase
            && (1..=self.staged_bytes_max).contains(&memory.length());
        let staged = is_staged.then(|| mesh.client().world().memory(memory.length()));
        let shared = mesh.share(staged.as_ref().unwrap_or(memory).clone()).await?;
        let mut moved = Ok(());
        if strategy == Strategy::TwoPhase {
            moved = mesh.share_among_members(&shared).await;
        }
        if moved.is_ok() {
            moved = mesh.transfer(&transfer, &shared).await;
        }
        mesh.unshare(shared).await;
        if let (Some(staged), Ok(())) = (staged, &moved) {
            let pieces = transfer.access.pieces(own, transfer.access.extent_of(own));
            let runs: Vec<Run> = pieces.map(|piece| piece.memory_side()).collect();
            let all = Run::contiguous(0, memory.length());
            let is_packed = matches!(&runs[..], [run] if run.is_contiguous()
                && (run.offset, run.bytes()) == (all.offset, all.length));
            match is_packed {
                true => memory.scatter(&[all], &staged.freeze()),
                false => memory.scatter(&runs, &staged.gather(&runs)),
            }
        }
        let closed = mesh.client().close(&transfer.file).await;
        // When both failed, the transfer says why.
        moved.and(closed).map(|()| bytes)
    }

    /// Waits for the failure of the group, if the members have joined one another.
    async fn until_broken(&self) -> Fault {
        let joined = self.joined.borrow().clone();
        match joined {
            Some(mesh) => mesh.until_broken().await,
            None => pending().await,
        }
    }

    /// The mesh, which the members join now if they have not.
    async fn mesh(
        &self,
        join: impl AsyncFnOnce() -> Result<PeerMesh<W>, Fault>,
    ) -> Result<Rc<PeerMesh<W>>, Fault> {
        if let Some(joined) = &*self.joined.borrow() {
            return Ok(Rc::clone(joined));
        }
        let joined = Rc::new(join().await?);
        *self.joined.borrow_mut() = Some(Rc::clone(&joined));
        Ok(joined)
    }
}

/// Turns of calls, in the order in which they asked.
#[derive(Default)]
struct Turns {
    asked: Cell<u64>,
    /// Calls that wait or have their turn; the first has it.
    calls: RefCell<BTreeSet<u64>>,
    changed: Signal,
}

/// The turn of a call. Dropping it ends it, or gives it up.
pub struct PeerTurn {
    turns: Rc<Turns>,
    number: u64,
}

impl PeerTurn {
    /// Waits until the calls before have ended.
    async fn comes(&self) {
        let is_first = || (self.turns.calls.borrow().first() == Some(&self.number)).then_some(());
        self.turns.changed.until(is_first).await;
    }
}

impl Drop for PeerTurn {
    fn drop(&mut self) {
        self.turns.calls.borrow_mut().remove(&self.number);
        self.turns.changed.notify();
    }
}

/// Opens a file, and learns its size of the servers.
async fn open_as_it_is<W: World>(
    client: &Client<W>,
    file: &FileRecord,
) -> Result<FileRecord, Fault> {
    let mut record = match file.stripe.inode() {
        None => client.open(&file.name).await?,
        // An ordinary file is not in the catalogue. It keeps its number while this member has it
        // open.
        Some(_) => client.open_record(file.clone()).await?,
    };
    client.refresh(&mut record).await?;
    Ok(record)
}

/// The part of every member, by rank; or why one of them cannot take part, or is in another call.
async fn exchange_parts<W: World>(
    group: &Group<W>,
    number: u64,
    call: &PeerCall,
    own: &Result<OwnPart, Fault>,
) -> Result<Vec<OwnPart>, Fault> {
    let bytes = wire::encode_record(own);
    let head = wire::encode_record(&(bytes.len() as u64, call.description()));
    let heads = group.all_gather_as(&format!("call {number} lengths"), head).await?;
    let decoded = heads.iter().map(|head| wire::decode_record::<(u64, String)>(head));
    let heads = decoded.collect::<Result<Vec<_>, _>>();
    let heads = heads.map_err(|error| Fault::BadRequest { cause: error.to_string() })?;
    check_same(&heads)?;
    let most = heads.iter().map(|(length, _)| *length).max().unwrap_or(0);
    let rounds = most.div_ceil(GATHER_BYTES_MAX as u64);
    let mut whole = vec![Vec::new(); group.size() as usize];
    for round in 0..rounds as usize {
        let start = (round * GATHER_BYTES_MAX).min(bytes.len());
        let end = (start + GATHER_BYTES_MAX).min(bytes.len());
        let some = bytes[start..end].to_vec();
        let met = group.all_gather_as(&format!("call {number} parts {round}"), some).await?;
        whole.iter_mut().zip(met).for_each(|(all, some)| all.extend(some));
    }
    let decode = |bytes: Vec<u8>| {
        let decoded = wire::decode_record::<Result<OwnPart, Fault>>(&bytes);
        decoded.unwrap_or_else(|error| Err(Fault::BadRequest { cause: error.to_string() }))
    };
    whole.into_iter().map(decode).collect()
}

/// Refuses calls that differ. Every member finds the same two.
fn check_same(calls: &[(u64, String)]) -> Result<(), Fault> {
    let Some((_, first)) = calls.first() else { return Ok(()) };
    let other = calls.iter().enumerate().find(|(_, (_, call))| call != first);
    other.map_or(Ok(()), |(rank, (_, call))| {
        Err(Fault::CallsDiffer { cause: format!("rank 0 is in {first}, rank {rank} in {call}") })
    })
}

#[cfg(test)]
mod tests {
    //! Proves: calls that would wait for one another unequally are told apart; turns are taken in
    //! the order in which they were asked for, and one that is given up keeps nobody waiting.
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn turns_are_taken_in_order() {
        let peers = Peers::<world_simulated::SimulatedWorld<world::payload::Phantom>>::new(0);
        let (first, second, third) = (peers.take_turn(), peers.take_turn(), peers.take_turn());
        assert!(third.comes().now_or_never().is_none());
        assert!(first.comes().now_or_never().is_some(), "nobody is before it");
        drop(second);
        assert!(third.comes().now_or_never().is_none(), "the first has not ended");
        drop(first);
        assert!(third.comes().now_or_never().is_some());
    }

    fn call(strategy: Strategy, node_group_size: u32) -> PeerCall {
        let (direction, order) = (Direction::Read, DiskOrder::Sorted);
        PeerCall {
            strategy,
            direction,
            order,
            outstanding_per_disk: 1,
            node_group_size,
            sync: false,
        }
    }

    #[test]
    fn calls_that_differ_are_refused_with_two_of_them() {
        let of = |calls: &[PeerCall]| {
            let heads = calls.iter().enumerate();
            let heads = heads.map(|(length, call)| (length as u64, call.description()));
            check_same(&heads.collect::<Vec<_>>())
        };
        let grouping = |size| call(Strategy::NodeGrouping, size);
        assert_eq!(of(&[grouping(2), grouping(2), grouping(2)]), Ok(()));
        assert_eq!(of(&[call(Strategy::Caching, 0), call(Strategy::Caching, 5)]), Ok(()));
        let cause = "rank 0 is in a read by node-grouping in groups of 2, rank 2 in a read by \
                     node-grouping in groups of the default size"
            .to_owned();
        let differ = of(&[grouping(2), grouping(2), grouping(0), grouping(3)]);
        assert_eq!(differ, Err(Fault::CallsDiffer { cause }));
        assert!(of(&[call(Strategy::Caching, 0), call(Strategy::GlobalBarrier, 0)]).is_err());
        let write = PeerCall { direction: Direction::Write, ..grouping(2) };
        assert!(of(&[grouping(2), write]).is_err());
    }
}
