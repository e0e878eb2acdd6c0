//! Counter and range locks of a group, for one member. No other member takes part in a request.

use super::group::{GROUP_SERVER, Group};
use crate::client::faults::unexpected;
use crate::client::state::Client;
use policy::LockKind;
use std::cell::Cell;
use std::rc::Rc;
use units::{ByteRange, ClientId};
use wire::{CounterChange, CounterRequest, Fault, GroupRequest, LockRequest, Reply, UnlockRequest};
use world::World;

/// Lock of a byte range, held by one member of a group. Dropping it releases it, without waiting.
pub struct RangeLock<W: World> {
    client: Client<W>,
    group: u64,
    rank: ClientId,
    number: u64,
    /// True while the server may have the lock or a request for it.
    may_be_known: bool,
    /// True after the member has left the group, which has released the lock.
    has_left: Rc<Cell<bool>>,
}

impl<W: World> Group<W> {
    /// Adds to the counter of the group, which begins at 0. Returns the value before.
    ///
    /// # Errors
    /// [`Fault::CounterOverflow`] when the sum does not fit 64 bits. The counter stays as it is.
    pub async fn counter_fetch_add(&self, add: u64) -> Result<u64, Fault> {
        self.count(CounterChange::Add(add)).await
    }

    /// Sets the counter of the group.
    ///
    /// # Errors
    /// Faults of the server.
    pub async fn counter_set(&self, value: u64) -> Result<(), Fault> {
        self.count(CounterChange::Set(value)).await.map(|_| ())
    }

    /// Returns the counter of the group.
    ///
    /// # Errors
    /// Faults of the server.
    pub async fn counter_get(&self) -> Result<u64, Fault> {
        self.count(CounterChange::Get).await
    }

    async fn count(&self, change: CounterChange) -> Result<u64, Fault> {
        let request = CounterRequest { group: self.group, rank: self.rank, change };
        match self.client.call(GROUP_SERVER, GroupRequest::Counter(request)).await? {
            Reply::Counter { before } => Ok(before),
            other => Err(unexpected(&other)),
        }
    }

    /// Locks a range of bytes. Waits until no other member holds a lock that conflicts: one of an
    /// overlapping range, where one of the two is exclusive. Conflicting requests are granted in
    /// the order of their arrival. Locks of one member do not conflict with one another. Dropping
    /// the future withdraws the request.
    ///
    /// # Errors
    /// [`Fault::LockTimedOut`] names the member that holds a conflicting lock after the timeout of
    /// the group. [`Fault::BadRequest`] for an empty range, and for more locks than the server
    /// keeps.
    pub async fn lock_range(
        &self,
        range: ByteRange,
        kind: LockKind,
    ) -> Result<RangeLock<W>, Fault> {
        let number = self.next_lock.replace(self.next_lock.get() + 1);
        let mut lock = RangeLock {
            client: self.client.clone(),
            group: self.group,
            rank: self.rank,
            number,
            may_be_known: true,
            has_left: Rc::clone(&self.has_left),
        };
        let (group, rank, timeout_ms) = (self.group, self.rank, self.timeout.as_ms());
        let ByteRange { start, end } = range;
        let request = LockRequest { group, rank, number, kind, start, end, timeout_ms };
        match self.client.call(GROUP_SERVER, GroupRequest::Lock(request)).await {
            Ok(Reply::Done) => Ok(lock),
            Ok(other) => Err(unexpected(&other)),
            Err(fault) => {
                lock.may_be_known = false;
                Err(fault)
            }
        }
    }
}

impl<W: World> RangeLock<W> {
    /// Releases the lock, and waits until the server has done so. Returns at once when the member
    /// has left its group.
    ///
    /// # Errors
    /// Faults of the server.
    pub async fn unlock(mut self) -> Result<(), Fault> {
        if self.has_left.get() {
            return Ok(());
        }
        let answer = self.client.call(GROUP_SERVER, self.request()).await;
        self.may_be_known = false;
        match answer? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    fn request(&self) -> GroupRequest {
        let (group, rank, number) = (self.group, self.rank, self.number);
        GroupRequest::Unlock(UnlockRequest { group, rank, number })
    }
}

impl<W: World> Drop for RangeLock<W> {
    fn drop(&mut self) {
        if self.may_be_known && !self.has_left.get() {
            self.client.notify_servers(std::iter::once(GROUP_SERVER), self.request());
        }
    }
}
