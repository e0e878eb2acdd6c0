//! Requests of single members of a group: its counter and its range locks.
//!
//! Invariants:
//! - A request is carried out for a registered member only.
//! - Locks and queued requests of a member go when it leaves the group or disconnects.
//! - The counter and the locks of a group go with its last member.

use super::locks::Outcome;
use super::refusal::bad;
use super::requests::timeout_of;
use crate::server::state::Server;
use futures_util::future::{Either, select};
use policy::{LockName, LockedRange};
use std::pin::pin;
use units::{ByteRange, PeerId};
use wire::{CounterChange, CounterRequest, Fault, LockRequest, Reply, UnlockRequest};
use world::World;

impl<W: World> Server<W> {
    /// Returns the counter of a group, and changes it.
    pub(crate) fn count(&self, from: PeerId, request: CounterRequest) -> Result<Reply, Fault> {
        let CounterRequest { group, rank, change } = request;
        self.groups().for_member(from, (group, rank), |group| {
            let before = group.counter;
            let overflow = |add| Fault::CounterOverflow { value: before, add };
            group.counter = match change {
                CounterChange::Get => before,
                CounterChange::Set(value) => value,
                CounterChange::Add(add) => before.checked_add(add).ok_or_else(|| overflow(add))?,
            };
            Ok(Reply::Counter { before })
        })
    }

    /// Requests a lock for a member, and waits until it is held or the time-out has passed.
    pub(crate) async fn lock(&self, from: PeerId, request: LockRequest) -> Result<Reply, Fault> {
        let LockRequest { group, rank, number, kind, start, end, timeout_ms } = request;
        if start >= end {
            return bad(format!("there are no bytes from {start} to {end} to lock"));
        }
        let name = LockName { owner: rank, number };
        let lock = LockedRange { name, range: ByteRange::new(start, end), kind };
        let member = (group, rank);
        let requested = self.groups().for_member(from, member, |group| group.locks.request(lock));
        let Some(turn) = requested? else { return Ok(Reply::Done) };
        let _wait = self.clients().bounded_wait(from);
        let decided = pin!(turn.ended());
        let limit = pin!(self.world().sleep(timeout_of(timeout_ms)));
        match select(decided, limit).await {
            Either::Left((Outcome::Granted, _)) => Ok(Reply::Done),
            Either::Left((Outcome::Withdrawn, _)) => Err(Fault::Cancelled),
            Either::Right(_) => self.groups().for_member(from, member, |group| {
                let held = group.locks.give_up(name).ok_or(Fault::Cancelled)?;
                let (holder, ByteRange { start, end }) = (held.name.owner, held.range);
                Err(Fault::LockTimedOut { holder, start, end, waited_ms: timeout_ms })
            }),
        }
    }

    /// Releases a lock of a member, or withdraws its request for it.
    pub(crate) fn unlock(&self, from: PeerId, request: UnlockRequest) -> Result<Reply, Fault> {
        let UnlockRequest { group, rank, number } = request;
        let name = LockName { owner: rank, number };
        self.groups().for_member(from, (group, rank), |group| match group.locks.release(name) {
            true => Ok(Reply::Done),
            false => bad(format!("rank {} has no lock {number}", rank.0)),
        })
    }
}
