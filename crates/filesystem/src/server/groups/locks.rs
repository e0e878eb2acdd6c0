//! Range locks of one group: the table of locks, and the requests that wait for theirs.
//!
//! Invariant: a request waits as long as its lock is queued in the table.

use crate::signal::Signal;
use policy::{LockLimits, LockName, LockRefusal, LockTable, LockedRange};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::ClientId;
use wire::Fault;

/// Maximum number of locks of one group, held and queued.
const LOCKS_PER_GROUP_MAX: usize = 1 << 16;

/// Maximum number of locks of one member, held and queued: as many as it may have requests.
const LOCKS_PER_MEMBER_MAX: usize = 4096;

/// Locks of one group, and the requests that wait for theirs.
pub(super) struct GroupLocks {
    table: LockTable,
    waiting: BTreeMap<LockName, Rc<Turn>>,
}

/// A request that waits for its lock.
#[derive(Default)]
pub(super) struct Turn {
    outcome: Cell<Option<Outcome>>,
    /// Notified when the outcome is there.
    changed: Signal,
}

/// End of a wait.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// The lock is held.
    Granted,
    /// The member has withdrawn the request.
    Withdrawn,
}

impl Turn {
    /// Waits for the end of the wait.
    pub(super) async fn ended(&self) -> Outcome {
        self.changed.until(|| self.outcome.get()).await
    }

    fn end(&self, outcome: Outcome) {
        self.outcome.set(Some(outcome));
        self.changed.notify();
    }
}

impl Default for GroupLocks {
    fn default() -> Self {
        let (of_all_max, of_member_max) = (LOCKS_PER_GROUP_MAX, LOCKS_PER_MEMBER_MAX);
        let table = LockTable::new(LockLimits { of_all_max, of_member_max });
        Self { table, waiting: BTreeMap::new() }
    }
}

impl GroupLocks {
    /// Requests a lock. Returns the turn to wait for, unless the lock is held at once.
    pub(super) fn request(&mut self, lock: LockedRange) -> Result<Option<Rc<Turn>>, Fault> {
        let requested = self.table.request(lock);
        let is_held = requested
            .map_err(|refusal| Fault::BadRequest { cause: describe(refusal, lock.name) })?;
        if is_held {
            return Ok(None);
        }
        let turn = Rc::new(Turn::default());
        self.waiting.insert(lock.name, Rc::clone(&turn));
        Ok(Some(turn))
    }

    /// Releases a lock or withdraws the request for it. Returns false if there is neither.
    pub(super) fn release(&mut self, name: LockName) -> bool {
        let Some(granted) = self.table.release(name) else { return false };
        self.end_wait(name, Outcome::Withdrawn);
        self.grant(granted);
        true
    }

    /// Releases and withdraws all locks of a member that leaves.
    pub(super) fn release_all(&mut self, member: ClientId) {
        let granted = self.table.release_all(member);
        let name = |number| LockName { owner: member, number };
        let own = self.waiting.range(name(0)..=name(u64::MAX));
        let own: Vec<LockName> = own.map(|(name, _)| *name).collect();
        own.into_iter().for_each(|name| self.end_wait(name, Outcome::Withdrawn));
        self.grant(granted);
    }

    /// Withdraws a request that has waited for too long. Returns the held lock that it waited for.
    pub(super) fn give_up(&mut self, name: LockName) -> Option<LockedRange> {
        let holder = self.table.holder_before(name);
        self.release(name);
        holder
    }

    fn grant(&mut self, granted: Vec<LockName>) {
        granted.into_iter().for_each(|name| self.end_wait(name, Outcome::Granted));
    }

    fn end_wait(&mut self, name: LockName, outcome: Outcome) {
        if let Some(turn) = self.waiting.remove(&name) {
            turn.end(outcome);
        }
    }
}

/// Returns the cause of a refusal.
fn describe(refusal: LockRefusal, name: LockName) -> String {
    let LockName { owner, number } = name;
    match refusal {
        LockRefusal::Empty => "there are no bytes to lock".to_owned(),
        LockRefusal::NumberInUse => format!("rank {} has a lock {number} already", owner.0),
        LockRefusal::TooMany => format!(
            "the members of the group have {LOCKS_PER_GROUP_MAX} locks already; release some first"
        ),
        LockRefusal::TooManyOfMember => {
            format!("rank {} has {LOCKS_PER_MEMBER_MAX} locks already; release some first", owner.0)
        }
    }
}
