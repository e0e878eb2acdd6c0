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
    pub(super) sync: bool,
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
        let parts = exchange_parts(membership, number, &part).await?;
        let group = self.group(membership, number).await?;
        let own = membership.rank();
        // All members know the file as it is after the last has made it longer.
        let mut record = group.client().open(&file.name).await?;
        group.client().refresh(&mut record).await?;
        let PeerCall { strategy, direction, order, outstanding_per_disk, sync } = call;
        let access = Access::of_parts(parts);
        let bytes = access.count_bytes(own, units::ByteRange::new(0, policy::BYTES_MAX));
        let transfer = Transfer {
            direction,
            file: record,
            access,
            strategy,
            order,
            outstanding_per_disk,
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

/// The part of every member, by rank; or why one of them cannot take part.
async fn exchange_parts(
    membership: &Membership<RealWorld>,
    number: u64,
    own: &Result<OwnPart, Fault>,
) -> Result<Vec<OwnPart>, Fault> {
    let bytes = wire::encode_record(own);
    let length = (bytes.len() as u64).to_le_bytes().to_vec();
    let lengths = membership.gather(&format!("call {number} lengths"), length).await?;
    let most =
        lengths.iter().filter_map(|length| Some(u64::from_le_bytes(length[..].try_into().ok()?)));
    let rounds = most.max().unwrap_or(0).div_ceil(MEETING_BYTES_MAX as u64);
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
