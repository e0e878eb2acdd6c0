//! Locks of byte ranges among the members of a group: which request is granted next.
//!
//! Requests are ordered by their arrival. A request waits for every earlier one that conflicts with
//! it, held or queued, so no later request overtakes it. Requests of different members conflict
//! when they have a byte in common and one of them is exclusive.
//!
//! Invariants:
//! - Held locks do not conflict with one another.
//! - A queued request conflicts with an earlier one, so no request waits without a reason.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{ByteRange, ClientId};

/// Sharing of a locked range.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LockKind {
    /// Other members may hold shared locks of the range.
    Shared = 0,
    /// No other member may hold a lock of the range.
    Exclusive = 1,
}

/// Name of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LockName {
    /// Member that holds the lock or waits for it.
    pub owner: ClientId,
    /// Number among the locks of the member.
    pub number: u64,
}

/// Lock of a range, held or requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockedRange {
    /// Name of the lock.
    pub name: LockName,
    /// Bytes, at least one.
    pub range: ByteRange,
    /// Sharing of the range.
    pub kind: LockKind,
}

impl LockedRange {
    /// Tells if the two locks cannot be held at the same time.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let is_exclusive = LockKind::Exclusive == self.kind || LockKind::Exclusive == other.kind;
        is_exclusive
            && self.name.owner != other.name.owner
            && !self.range.intersect(other.range).is_empty()
    }
}

/// Maximum numbers of locks of a [`LockTable`], held and queued together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockLimits {
    /// Locks of all members.
    pub of_all_max: usize,
    /// Locks of one member.
    pub of_member_max: usize,
}

/// Reason for the refusal of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockRefusal {
    /// The range has no byte.
    Empty,
    /// The member has a lock of this number.
    NumberInUse,
    /// The members have as many locks as the limit permits.
    TooMany,
    /// The member has as many locks as the limit permits.
    TooManyOfMember,
}

/// Locks of one group, held and queued. A request and a release take a time that is proportional to
/// the number of locks.
#[derive(Clone, Debug)]
pub struct LockTable {
    limits: LockLimits,
    /// Locks by their turn, that is, by arrival.
    entries: BTreeMap<u64, Entry>,
    turns: BTreeMap<LockName, u64>,
    next_turn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    lock: LockedRange,
    /// Number of earlier locks that conflict with this one. A held lock has 0.
    waits_for: usize,
}

impl LockTable {
    /// Makes a table without locks.
    pub fn new(limits: LockLimits) -> Self {
        let (entries, turns) = (BTreeMap::new(), BTreeMap::new());
        Self { limits, entries, turns, next_turn: 0 }
    }

    /// Requests a lock. Returns true if it is held at once, and false if it is queued.
    ///
    /// # Errors
    /// The table stays as it is when it refuses a request.
    pub fn request(&mut self, lock: LockedRange) -> Result<bool, LockRefusal> {
        if lock.range.is_empty() {
            return Err(LockRefusal::Empty);
        }
        if self.turns.contains_key(&lock.name) {
            return Err(LockRefusal::NumberInUse);
        }
        if self.entries.len() >= self.limits.of_all_max {
            return Err(LockRefusal::TooMany);
        }
        if self.turns_of(lock.name.owner).count() >= self.limits.of_member_max {
            return Err(LockRefusal::TooManyOfMember);
        }
        let conflicts = |entry: &&Entry| entry.lock.conflicts_with(&lock);
        let waits_for = self.entries.values().filter(conflicts).count();
        let turn = self.next_turn;
        self.next_turn += 1;
        self.entries.insert(turn, Entry { lock, waits_for });
        self.turns.insert(lock.name, turn);
        Ok(waits_for == 0)
    }

    /// Releases a held lock, or withdraws a queued one. Returns the locks that are granted by that,
    /// in the order of their requests, or `None` if there is no lock of this name.
    pub fn release(&mut self, name: LockName) -> Option<Vec<LockName>> {
        let turn = *self.turns.get(&name)?;
        Some(self.remove(&[turn]))
    }

    /// Releases and withdraws all locks of a member. Returns the locks that are granted by that.
    pub fn release_all(&mut self, owner: ClientId) -> Vec<LockName> {
        let mut turns: Vec<u64> = self.turns_of(owner).collect();
        turns.sort_unstable();
        self.remove(&turns)
    }

    /// Returns the held lock that a queued one waits for, directly or behind other queued locks.
    pub fn holder_before(&self, name: LockName) -> Option<LockedRange> {
        let turn = *self.turns.get(&name)?;
        let own = self.entries.get(&turn)?.lock;
        let is_held = |entry: &&Entry| entry.waits_for == 0 && entry.lock.conflicts_with(&own);
        if let Some(direct) = self.entries.range(..turn).map(|(_, entry)| entry).find(is_held) {
            return Some(direct.lock);
        }
        let mut last = own;
        for (_, entry) in self.entries.range(..turn).rev() {
            if entry.lock.conflicts_with(&last) {
                last = entry.lock;
                if entry.waits_for == 0 {
                    return Some(last);
                }
            }
        }
        None
    }

    /// Tells if a lock is held.
    pub fn is_held(&self, name: LockName) -> bool {
        let entry = self.turns.get(&name).and_then(|turn| self.entries.get(turn));
        entry.is_some_and(|entry| entry.waits_for == 0)
    }

    /// Number of locks, held and queued.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    fn turns_of(&self, owner: ClientId) -> impl Iterator<Item = u64> {
        let name = |number| LockName { owner, number };
        self.turns.range(name(0)..=name(u64::MAX)).map(|(_, turn)| *turn)
    }

    /// Removes the locks of these turns. Returns the locks that are granted by that.
    fn remove(&mut self, turns: &[u64]) -> Vec<LockName> {
        let entries = &mut self.entries;
        let removed = turns.iter().filter_map(|turn| Some((*turn, entries.remove(turn)?.lock)));
        let removed: Vec<(u64, LockedRange)> = removed.collect();
        for (_, lock) in &removed {
            self.turns.remove(&lock.name);
        }
        let mut granted = Vec::new();
        for (turn, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.waits_for > 0) {
            let earlier = removed.iter().take_while(|(removed, _)| removed < turn);
            entry.waits_for -= earlier.filter(|(_, lock)| lock.conflicts_with(&entry.lock)).count();
            if entry.waits_for == 0 {
                granted.push(entry.lock.name);
            }
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the table grants what a naive model grants, which has a queue for each byte, in all
    //! short sequences of requests and releases and in long random ones.
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const BYTES: u64 = 3;
    const LIMITS: LockLimits = LockLimits { of_all_max: 1000, of_member_max: 1000 };

    /// A queue of locks for each byte. A lock is held when nothing ahead of it, in any of the
    /// queues of its bytes, prevents that.
    #[derive(Clone, Default)]
    struct Model {
        queues: [Vec<LockedRange>; BYTES as usize],
    }

    impl Model {
        fn request(&mut self, lock: LockedRange) {
            for byte in lock.range.start..lock.range.end {
                self.queues[byte as usize].push(lock);
            }
        }

        fn release(&mut self, is_released: impl Fn(LockName) -> bool) {
            self.queues.iter_mut().for_each(|queue| queue.retain(|lock| !is_released(lock.name)));
        }

        fn all(&self) -> BTreeSet<LockName> {
            self.queues.iter().flatten().map(|lock| lock.name).collect()
        }

        fn held(&self) -> BTreeSet<LockName> {
            let mut held = self.all();
            for queue in &self.queues {
                for (place, lock) in queue.iter().enumerate() {
                    let ahead = queue[..place].iter().filter(|ahead| {
                        let are_shared = [ahead.kind, lock.kind] == [LockKind::Shared; 2];
                        ahead.name.owner != lock.name.owner && !are_shared
                    });
                    if ahead.count() > 0 {
                        held.remove(&lock.name);
                    }
                }
            }
            held
        }
    }

    /// The table and the model side by side.
    #[derive(Clone)]
    struct Both {
        table: LockTable,
        model: Model,
    }

    impl Both {
        fn new() -> Self {
            Self { table: LockTable::new(LIMITS), model: Model::default() }
        }

        fn request(&mut self, lock: LockedRange) {
            let before = self.model.held();
            self.model.request(lock);
            let is_held = self.table.request(lock);
            assert_eq!(is_held, Ok(self.model.held().contains(&lock.name)));
            self.check(&before, &if is_held == Ok(true) { vec![lock.name] } else { vec![] });
        }

        fn release(&mut self, name: LockName) {
            let mut before = self.model.held();
            before.remove(&name);
            self.model.release(|other| other == name);
            let granted = self.table.release(name).expect("the lock is there");
            self.check(&before, &granted);
        }

        fn release_all(&mut self, owner: ClientId) {
            let mut before = self.model.held();
            before.retain(|name| name.owner != owner);
            self.model.release(|other| other.owner == owner);
            let granted = self.table.release_all(owner);
            self.check(&before, &granted);
        }

        /// Compares what is held now with what was held before and what was granted.
        fn check(&self, before: &BTreeSet<LockName>, granted: &[LockName]) {
            let held = self.model.held();
            let new: BTreeSet<LockName> = held.difference(before).copied().collect();
            assert_eq!(granted.iter().copied().collect::<BTreeSet<_>>(), new);
            let turns = granted.iter().map(|name| self.table.turns[name]);
            assert!(turns.is_sorted(), "locks are granted in the order of their requests");
            let all = self.model.all();
            assert_eq!(self.table.count(), all.len());
            for name in all {
                assert_eq!(self.table.is_held(name), held.contains(&name));
                let holder = self.table.holder_before(name);
                assert_eq!(holder.is_none(), held.contains(&name));
                assert!(holder.is_none_or(|holder| held.contains(&holder.name)));
            }
        }
    }

    fn lock(owner: u32, number: u64, (start, end): (u64, u64), kind: LockKind) -> LockedRange {
        let name = LockName { owner: ClientId(owner), number };
        LockedRange { name, range: ByteRange::new(start, end), kind }
    }

    const KINDS: [LockKind; 2] = [LockKind::Shared, LockKind::Exclusive];

    /// Goes through all sequences of `steps` further requests and releases.
    fn explore(both: &Both, steps: u64, count: &mut u64) {
        *count += 1;
        let Some(left) = steps.checked_sub(1) else { return };
        let mut after = |act: &dyn Fn(&mut Both)| {
            let mut next = both.clone();
            act(&mut next);
            explore(&next, left, count);
        };
        for range in [(0, 1), (1, 2), (0, 2)] {
            for kind in KINDS {
                (0..3).for_each(|owner| {
                    after(&|next| next.request(lock(owner, left, range, kind)));
                });
            }
        }
        both.model.all().into_iter().for_each(|name| after(&|next| next.release(name)));
        for owner in (0..3).map(ClientId) {
            after(&|next| next.release_all(owner));
        }
    }

    #[test]
    fn all_short_sequences_are_those_of_the_model() {
        let mut count = 0;
        explore(&Both::new(), 4, &mut count);
        assert!(count > 200_000, "{count}");
    }

    proptest! {
        #[test]
        fn long_sequences_are_those_of_the_model(
            steps in proptest::collection::vec((0_u32..4, 0..BYTES, 1..=BYTES, 0_usize..5), 1..80),
        ) {
            let mut both = Both::new();
            for (number, (owner, start, length, act)) in (0..).zip(steps) {
                let range = (start, (start + length).min(BYTES));
                let known: Vec<LockName> = both.model.all().into_iter().collect();
                match act {
                    0 | 1 => both.request(lock(owner, number, range, KINDS[act])),
                    2 | 3 if !known.is_empty() => {
                        both.release(known[(start + length) as usize * 7 % known.len()]);
                    }
                    _ if number % 9 == 0 => both.release_all(ClientId(owner)),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_queued_lock_is_not_overtaken() {
        let mut table = LockTable::new(LIMITS);
        let (shared, exclusive) = (LockKind::Shared, LockKind::Exclusive);
        let [first, writer, late] =
            [lock(0, 0, (0, 3), shared), lock(1, 0, (0, 3), exclusive), lock(2, 0, (1, 2), shared)];
        assert_eq!(table.request(first), Ok(true));
        assert_eq!(table.request(writer), Ok(false));
        assert_eq!(table.request(late), Ok(false), "it would overtake the writer");
        // The late one waits behind the writer for the first.
        assert_eq!(table.holder_before(late.name), Some(first));
        assert_eq!(table.release(first.name), Some(vec![writer.name]));
        assert_eq!(table.release(writer.name), Some(vec![late.name]));
        assert_eq!(table.release(late.name), Some(vec![]));
        assert_eq!(table.release(late.name), None);
    }

    #[test]
    fn requests_are_refused_at_the_limits() {
        let mut table = LockTable::new(LockLimits { of_all_max: 3, of_member_max: 2 });
        let new = |owner, number| lock(owner, number, (0, 1), LockKind::Exclusive);
        assert_eq!(table.request(lock(0, 0, (1, 1), LockKind::Shared)), Err(LockRefusal::Empty));
        assert_eq!(table.request(new(0, 0)), Ok(true));
        assert_eq!(table.request(new(0, 0)), Err(LockRefusal::NumberInUse));
        assert_eq!(table.request(new(0, u64::MAX)), Ok(true));
        assert_eq!(table.request(new(0, 2)), Err(LockRefusal::TooManyOfMember));
        assert_eq!(table.request(new(1, 0)), Ok(false));
        assert_eq!(table.request(new(2, 0)), Err(LockRefusal::TooMany));
        assert_eq!(table.release_all(ClientId(0)), [new(1, 0).name]);
        assert_eq!(table.count(), 1);
        assert_eq!(table.request(new(2, 0)), Ok(false));
    }
}
