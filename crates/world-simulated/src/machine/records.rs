//! The small durable records of a node.
//!
//! Changes are instantaneous unless faults are planned; then each takes a set time, and a power
//! failure leaves the first few of those under way.

use crate::random::next_random;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use units::{Duration, SplitMix64};
use world::{RecordChange, RecordTable};

/// The records of one node.
#[derive(Default)]
pub(super) struct NodeRecords {
    tables: RefCell<[BTreeMap<u64, Vec<u8>>; RecordTable::ALL.len()]>,
    /// Set only where faults are planned.
    delayed: OnceCell<Box<DelayedChanges>>,
}

/// Changes of records that take time. All take equally long, so they take effect in the order in
/// which they began.
struct DelayedChanges {
    /// Time that each change takes.
    takes: Duration,
    random: Cell<u64>,
    begun: Cell<u64>,
    waiting: RefCell<VecDeque<(u64, RecordTable, Vec<RecordChange>)>>,
}

/// A change that has begun and takes time.
pub(super) struct BegunChange {
    number: u64,
    /// Time until it is to be [ended](NodeRecords::end_change).
    pub(super) takes: Duration,
}

impl NodeRecords {
    /// Returns all records of a table, ascending by key.
    pub(super) fn all(&self, table: RecordTable) -> Vec<(u64, Vec<u8>)> {
        let tables = self.tables.borrow();
        tables[table as usize].iter().map(|(&key, value)| (key, value.clone())).collect()
    }

    /// Makes each change take `takes` from now on; `seed` decides the effect of a power failure.
    pub(super) fn delay_changes(&self, takes: Duration, seed: u64) {
        let delayed = || DelayedChanges {
            takes,
            random: Cell::new(SplitMix64::mix(seed)),
            begun: Cell::new(0),
            waiting: RefCell::default(),
        };
        self.delayed.get_or_init(|| Box::new(delayed()));
    }

    /// Makes changes now, or begins them where changes take time.
    pub(super) fn begin_change(
        &self,
        table: RecordTable,
        changes: Vec<RecordChange>,
    ) -> Option<BegunChange> {
        let Some(delayed) = self.delayed.get() else {
            self.apply(table, changes);
            return None;
        };
        let number = delayed.begun.get();
        delayed.begun.set(number + 1);
        delayed.waiting.borrow_mut().push_back((number, table, changes));
        Some(BegunChange { number, takes: delayed.takes })
    }

    /// Makes a change that began earlier, after those that began before it.
    pub(super) fn end_change(&self, change: &BegunChange) {
        let Some(delayed) = self.delayed.get() else { return };
        let mut waiting = delayed.waiting.borrow_mut();
        while waiting.front().is_some_and(|(other, ..)| *other <= change.number)
            && let Some((_, table, changes)) = waiting.pop_front()
        {
            self.apply(table, changes);
        }
    }

    /// Makes the first few of the changes under way, as the seed decides, and drops the others.
    pub(super) fn lose_power(&self) {
        let Some(delayed) = self.delayed.get() else { return };
        let waiting = delayed.waiting.take();
        let made = next_random(&delayed.random) as usize % (waiting.len() + 1);
        for (_, table, changes) in waiting.into_iter().take(made) {
            self.apply(table, changes);
        }
    }

    /// Loses all records of a table.
    pub(super) fn lose(&self, table: RecordTable) {
        self.tables.borrow_mut()[table as usize].clear();
    }

    /// Makes changes, all in this instant.
    fn apply(&self, table: RecordTable, changes: Vec<RecordChange>) {
        let records = &mut self.tables.borrow_mut()[table as usize];
        for RecordChange { key, value } in changes {
            match value {
                Some(value) => records.insert(key, value),
                None => records.remove(&key),
            };
        }
    }
}
