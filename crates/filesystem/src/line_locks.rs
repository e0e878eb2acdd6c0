//! Turns of tasks that work on the same line of a file.
//!
//! Invariant: tasks get their turns in the order in which they asked for them.

use crate::signal::Signal;
use policy::LineKey;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// Tasks that work on lines, or wait for their turn.
#[derive(Default)]
pub(crate) struct LineLocks {
    queues: RefCell<BTreeMap<LineKey, VecDeque<u64>>>,
    next: Cell<u64>,
    ended: Signal,
}

/// Turn on a line. It ends when dropped.
pub(crate) struct LineTurn<'a> {
    locks: &'a LineLocks,
    key: LineKey,
    number: u64,
}

impl LineLocks {
    /// Waits for a turn. The place in the queue is taken before this returns its future's first
    /// result, when it is first polled.
    pub(crate) async fn turn(&self, key: LineKey) -> LineTurn<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        self.queues.borrow_mut().entry(key).or_default().push_back(number);
        // Also gives up its place if this wait is dropped.
        let turn = LineTurn { locks: self, key, number };
        let is_first =
            || self.queues.borrow().get(&key)?.front().filter(|it| **it == number).copied();
        self.ended.until(is_first).await;
        turn
    }

    /// Tells if a task works on a line.
    pub(crate) fn is_taken(&self, key: LineKey) -> bool {
        self.queues.borrow().contains_key(&key)
    }
}

impl Drop for LineTurn<'_> {
    fn drop(&mut self) {
        let mut queues = self.locks.queues.borrow_mut();
        if let Some(queue) = queues.get_mut(&self.key) {
            queue.retain(|number| *number != self.number);
            if queue.is_empty() {
                queues.remove(&self.key);
            }
        }
        drop(queues);
        self.locks.ended.notify();
    }
}
