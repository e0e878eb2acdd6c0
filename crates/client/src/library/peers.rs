//! Collectives in which members exchange data with one another: for the strategies that are not
//! directed by the servers of a rendezvous.
//!
//! *Invariants:*
//! - Members connect to one another at their first such call.
//! - Such calls of a group run one after the other, in the order in which they were made.

use super::staged::Staged;
use crate::instance::{Instance, Member};
use crate::session::connect_from;
use filesystem::collective::{Strategy, Transfer};
use filesystem::{Fault, Group, Membership};
use futures_util::future::select;
use interface::UserError;
use policy::{Access, Direction, DiskOrder, OwnPart};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use tokio::sync::Mutex;
use units::ClientId;
use wire::{FileRecord, MEETING_BYTES_MAX};
use world::{Address, Clock, Network};
use world_real::{RealMemory, RealWorld};

/// The members of a group as they know one another.
pub(super) struct Peers {
    instance: Instance,
    /// As in the options of the connection.
    host: Option<String>,
    /// Number by which the sockets of the members are named.
    number: u64,
    joined: RefCell<Option<Rc<Group<RealWorld>>>>,
    /// Held by the call that runs; others wait in their order.
    turn: Mutex<()>,
}

/// One such call.
pub(super) struct PeerCall {
    pub(super) strategy: Strategy,
    pub(super) direction: Direction,
    pub(super) order: DiskOrder,
    pub(super) outstanding_per_disk: u32,
    pub(super) node_group_size: u32,
    pub(super) sync: bool,
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

impl Peers {
    /// None of them is connected yet.
    pub(super) fn new(instance: Instance, host: Option<String>, number: u64) -> Self {
        Self { instance, host, number, joined: RefCell::default(), turn: Mutex::new(()) }
    }

    /// Transfers this member's part, together with all members. The call has a number among those
    /// of the group.
    pub(super) async fn transfer(
        &self,
        membership: &Membership<RealWorld>,
        number: u64,
        file: &FileRecord,
        call: PeerCall,
        part: Result<OwnPart, Fault>,
        memory: &RealMemory,
    ) -> Result<u64, Fault> {
        let _turn = self.turn.lock().await;
        let parts = exchange_parts(membership, number, &call, &part).await?;
        let group = self.group(membership, number).await?;
        let own = membership.rank();
        // All members know the file as it is after the last has made it longer.
        let mut record = group.client().open(&file.name).await?;
        group.client().refresh(&mut record).await?;
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
        let is_staged = direction == Direction::Read && strategy == Strategy::TwoPhase;
        let staged = is_staged.then(|| Staged::new(group.client().world(), memory));
        let target = staged.as_ref().map_or(memory, Staged::memory);
        let shared = group.share(target.clone()).await?;
        let mut moved = Ok(());
        if strategy == Strategy::TwoPhase {
            moved = group.share_among_members(&shared).await;
        }
        if moved.is_ok() {
            moved = group.transfer(&transfer, &shared).await;
        }
        let unshared = pin!(group.unshare(shared));
        if moved.is_ok() {
            unshared.await;
        } else {
            // A server that has stopped does not say that it is done with the memory, which then
            // stays in the list of regions.
            select(unshared, pin!(group.client().world().sleep(membership.timeout()))).await;
        }
        if let (Some(staged), Ok(())) = (&staged, &moved) {
            staged.deliver(&transfer.access, own);
        }
        let closed = group.client().close(&transfer.file).await;
        // When both failed, the transfer says why.
        moved.and(closed).map(|()| bytes)
    }

    /// The group, which its members join now if they have not.
    async fn group(
        &self,
        membership: &Membership<RealWorld>,
        number: u64,
    ) -> Result<Rc<Group<RealWorld>>, Fault> {
        if let Some(joined) = &*self.joined.borrow() {
            return Ok(Rc::clone(joined));
        }
        let joined = Rc::new(self.join(membership, number).await?);
        *self.joined.borrow_mut() = Some(Rc::clone(&joined));
        Ok(joined)
    }

    async fn join(
        &self,
        membership: &Membership<RealWorld>,
        number: u64,
    ) -> Result<Group<RealWorld>, Fault> {
        let failed = |error: UserError| Fault::TransferFailed { cause: error.cause };
        let servers = self.instance.read().map_err(failed)?.servers;
        let ClientId(rank) = membership.rank();
        let member = Member { group: self.number, rank, host: self.host.as_deref() };
        let world = member.listen(&self.instance, &servers).map_err(failed)?;
        let own = world.address().0.into_bytes();
        let met = membership.gather(&format!("call {number} addresses"), own).await?;
        let addresses: Rc<[Address]> = met
            .into_iter()
            .map(|address| Address(String::from_utf8_lossy(&address).into()))
            .collect();
        let client = connect_from(world, &servers).await?;
        Group::join(client, self.number, membership.rank(), addresses, membership.timeout()).await
    }
}

/// The part of every member, by rank; or why one of them cannot take part, or is in another call.
async fn exchange_parts(
    membership: &Membership<RealWorld>,
    number: u64,
    call: &PeerCall,
    own: &Result<OwnPart, Fault>,
) -> Result<Vec<OwnPart>, Fault> {
    let bytes = wire::encode_record(own);
    let head = wire::encode_record(&(bytes.len() as u64, call.description()));
    let heads = membership.gather(&format!("call {number} lengths"), head).await?;
    let decoded = heads.iter().map(|head| wire::decode_record::<(u64, String)>(head));
    let heads = decoded.collect::<Result<Vec<_>, _>>();
    let heads = heads.map_err(|error| Fault::BadRequest { cause: error.to_string() })?;
    check_same(&heads)?;
    let most = heads.iter().map(|(length, _)| *length).max().unwrap_or(0);
    let rounds = most.div_ceil(MEETING_BYTES_MAX as u64);
    let mut whole = vec![Vec::new(); membership.size() as usize];
    for round in 0..rounds as usize {
        let start = (round * MEETING_BYTES_MAX).min(bytes.len());
        let end = (start + MEETING_BYTES_MAX).min(bytes.len());
        let some = bytes[start..end].to_vec();
        let met = membership.gather(&format!("call {number} parts {round}"), some).await?;
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
    //! Proves: calls that would wait for one another unequally are told apart.
    use super::*;

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
