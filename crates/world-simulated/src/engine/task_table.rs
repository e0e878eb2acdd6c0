//! The table of an engine's tasks.
//!
//! Invariants:
//!
//! - A place keeps its generation until its task ends or is cancelled.
//! - Tasks are dropped outside the borrow of the table: destructors may cancel or start tasks.

use super::prefetch::{PrefetchDistance, prefetch, prefetch_future};
use super::waker::{ReadyQueue, TaskKey, TaskWaker};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

/// A task of an engine, in its final place.
pub(super) type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks of one engine, by their index.
#[derive(Default)]
pub(super) struct TaskTable {
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    /// Generation of the youngest task.
    generation: Cell<u32>,
    /// Tasks that are ready to be polled.
    pub(super) ready: Arc<ReadyQueue>,
}

/// A place in the table.
///
/// A task that its own poll cancels is dropped when that poll returns, and its place is free from
/// then on.
struct Slot {
    generation: u32,
    node: u32,
    /// The task while it waits; `None` while it runs, and in a free place.
    waiting: Option<WaitingTask>,
    /// Shared by all wakers of the task; reused when no waker of an earlier task is left.
    header: Arc<TaskWaker>,
}

/// A task, and the waker with which it is polled.
pub(super) struct WaitingTask {
    pub(super) task: BoxedTask,
    pub(super) waker: Waker,
}

impl TaskTable {
    /// Number of places.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Returns the node of the task at a place.
    #[inline]
    pub(super) fn node_of(&self, index: u32) -> Option<u32> {
        self.slots.borrow().get(index as usize).map(|slot| slot.node)
    }

    /// Returns a generation that no task had before (in the last 2^32); never 0.
    fn next_generation(&self) -> u32 {
        let next = self.generation.get().wrapping_add(1).max(1);
        self.generation.set(next);
        next
    }

    /// Adds a task that waits.
    pub(super) fn insert(&self, node: u32, task: BoxedTask) -> TaskKey {
        let generation = self.next_generation();
        let mut slots = self.slots.borrow_mut();
        let reused = self.free.borrow_mut().pop();
        let key = TaskKey { index: reused.unwrap_or(slots.len() as u32), generation };
        let new_header = || Arc::new(TaskWaker { ready: Arc::clone(&self.ready), key });
        match slots.get_mut(key.index as usize) {
            Some(slot) => {
                match Arc::get_mut(&mut slot.header) {
                    Some(unshared) => unshared.key = key,
                    None => slot.header = new_header(),
                }
                let waker = Waker::from(Arc::clone(&slot.header));
                (slot.generation, slot.node) = (generation, node);
                slot.waiting = Some(WaitingTask { task, waker });
            }
            None => {
                let header = new_header();
                let waker = Waker::from(Arc::clone(&header));
                let waiting = Some(WaitingTask { task, waker });
                slots.push(Slot { generation, node, waiting, header });
            }
        }
        key
    }

    /// Takes a waiting task out of its place, to poll it.
    #[inline(always)]
    pub(super) fn take(&self, key: TaskKey) -> Option<WaitingTask> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        slot.waiting.take()
    }

    /// Puts a task back after a poll. Drops it instead if it has ended or was cancelled meanwhile.
    /// Returns true if it waits again.
    #[inline(always)]
    pub(super) fn put_back(&self, key: TaskKey, polled: WaitingTask, has_ended: bool) -> bool {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[key.index as usize];
        if !has_ended && slot.generation == key.generation {
            slot.waiting = Some(polled);
            return true;
        }
        slot.generation = self.next_generation();
        self.free.borrow_mut().push(key.index);
        drop(slots);
        drop(polled);
        false
    }

    /// Cancels a task, if it has not ended.
    pub(super) fn cancel(&self, key: TaskKey) {
        let dropped = {
            // A task may be cancelled while the engine itself is being dropped.
            let Ok(mut slots) = self.slots.try_borrow_mut() else { return };
            let Some(slot) = slots.get_mut(key.index as usize) else { return };
            if slot.generation != key.generation {
                return;
            }
            slot.generation = self.next_generation();
            let waiting = slot.waiting.take();
            if waiting.is_some() {
                self.free.borrow_mut().push(key.index);
            }
            waiting
        };
        drop(dropped);
    }

    /// Drops every task of `node`, except the one that is running.
    pub(super) fn cancel_node(&self, node: u32) {
        let mut dropped = Vec::new();
        for (index, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            if slot.node == node
                && let Some(task) = slot.waiting.take()
            {
                dropped.push(task);
                slot.generation = self.next_generation();
                self.free.borrow_mut().push(index as u32);
            }
        }
        drop(dropped);
    }

    /// Drops every task, including those that destructors start.
    pub(super) fn clear(&self) {
        loop {
            let slots = std::mem::take(&mut *self.slots.borrow_mut());
            self.free.borrow_mut().clear();
            if slots.is_empty() {
                break;
            }
            drop(slots);
        }
    }

    /// Prefetches the data that a poll of a task touches. Returns the node of the task.
    pub(super) fn prefetch(&self, index: u32, distance: PrefetchDistance) -> Option<u32> {
        let slots = self.slots.borrow();
        let slot = slots.get(index as usize)?;
        match (distance, &slot.waiting) {
            (PrefetchDistance::Far, _) => prefetch(slot, usize::MAX),
            (PrefetchDistance::Near, Some(waiting)) => prefetch_future(&*waiting.task),
            (PrefetchDistance::Near, None) => {}
        }
        Some(slot.node)
    }
}
