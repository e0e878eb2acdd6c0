//! Buffers of transfers, limited in bytes for each disk.
//!
//! Invariants:
//! - The bytes of a [`BufferPermit`] count as held exactly as long as it lives.
//! - Requests get permits in the order in which they asked.

use crate::server::transfers::transfer_watchdog::TransferWatchdog;
use crate::signal::Signal;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::DiskId;
use world::Clock;

/// Pool of buffers of one disk, or of answers, limited in bytes. A task that wants more than is
/// free waits for its turn. Exception: there is always room for as many buffers as one transfer
/// uses, however long they are. (A stopped disk keeps only its own buffers. The watchdog
/// disconnects stalled clients.)
pub(crate) struct TransferBufferPool {
    disk: DiskId,
    bytes_max: u64,
    /// Number of buffers of one transfer.
    count_min: u64,
    held: Cell<u64>,
    waiting: RefCell<VecDeque<u64>>,
    next: Cell<u64>,
    freed: Signal,
    watchdog: Rc<TransferWatchdog>,
}

/// Bytes of a buffer. Returned when dropped.
pub(crate) struct BufferPermit<'a> {
    buffers: &'a TransferBufferPool,
    bytes: u64,
}

/// Place in the queue.
struct Ticket<'a> {
    buffers: &'a TransferBufferPool,
    number: u64,
}

impl TransferBufferPool {
    pub(crate) fn new(
        disk: DiskId,
        bytes_max: u64,
        count_min: u64,
        watchdog: Rc<TransferWatchdog>,
    ) -> Self {
        Self {
            disk,
            bytes_max,
            count_min,
            held: Cell::default(),
            waiting: RefCell::default(),
            next: Cell::default(),
            freed: Signal::default(),
            watchdog,
        }
    }

    /// Number of bytes that are held.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.get()
    }

    /// Waits until there is room for a buffer of `bytes` bytes. While a task holds a permit it must
    /// need no other buffer and nothing of another disk.
    pub(crate) async fn take(&self, world: &impl Clock, bytes: u64) -> BufferPermit<'_> {
        if !(self.waiting.borrow().is_empty() && self.has_room(bytes)) {
            self.wait(world, bytes).await;
        }
        self.held.set(self.held.get() + bytes);
        BufferPermit { buffers: self, bytes }
    }

    async fn wait(&self, world: &impl Clock, bytes: u64) {
        let turn = Ticket { buffers: self, number: self.next.replace(self.next.get() + 1) };
        self.waiting.borrow_mut().push_back(turn.number);
        let is_first = || self.waiting.borrow().front() == Some(&turn.number);
        self.freed.until(|| is_first().then_some(())).await;
        while !self.has_room(bytes) {
            let held = self.held.get();
            let freed = self.freed.until(|| (self.held.get() != held).then_some(()));
            // `wait` has already aborted what it could; just retry.
            let _ = self.watchdog.wait(world, Some(self.disk), freed).await;
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        let limit = self.bytes_max.max(bytes.saturating_mul(self.count_min));
        self.held.get().saturating_add(bytes) <= limit
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.buffers.waiting.borrow_mut().retain(|number| *number != self.number);
        self.buffers.freed.notify();
    }
}

impl Drop for BufferPermit<'_> {
    fn drop(&mut self) {
        let TransferBufferPool { held, freed, .. } = self.buffers;
        held.set(held.get() - self.bytes);
        freed.notify();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: held bytes never exceed the limit; permits go in the order of the requests; one
    //! transfer always has room; neither a task that gives up waiting nor a client that stalls
    //! blocks the others.
    use super::*;
    use crate::server::transfers::transfer_watchdog::tests::Hand;
    use futures_util::FutureExt;
    use units::PeerId;

    fn buffers(bytes_max: u64, count_min: u64) -> TransferBufferPool {
        TransferBufferPool::new(
            DiskId(0),
            bytes_max,
            count_min,
            Rc::new(TransferWatchdog::new(true)),
        )
    }

    #[test]
    fn permits_go_in_the_order_of_requests() {
        let (buffers, clock) = (buffers(10, 1), Hand::default());
        let first = buffers.take(&clock, 6).now_or_never().unwrap();
        let second = buffers.take(&clock, 4).now_or_never().unwrap();
        let mut long = Box::pin(buffers.take(&clock, 20));
        let mut short = Box::pin(buffers.take(&clock, 1));
        assert!((&mut long).now_or_never().is_none());
        drop(first);
        assert!((&mut short).now_or_never().is_none(), "it came later");
        assert!((&mut long).now_or_never().is_none());
        drop(long);
        let short = short.now_or_never().unwrap();
        assert_eq!(buffers.held_bytes(), 5);
        drop((short, second));
        let long = buffers.take(&clock, 20).now_or_never().unwrap();
        assert!(buffers.take(&clock, 1).now_or_never().is_none());
        drop(long);
        assert_eq!(buffers.held_bytes(), 0);
    }

    #[test]
    fn one_transfer_always_gets_its_buffers() {
        let (buffers, clock) = (buffers(10, 3), Hand::default());
        let held: Vec<_> =
            (0..3).map(|_| buffers.take(&clock, 8).now_or_never().unwrap()).collect();
        assert!(buffers.take(&clock, 8).now_or_never().is_none());
        drop(held);
    }

    #[test]
    fn stalled_client_that_holds_buffers_is_disconnected() {
        let (buffers, clock) = (buffers(10, 1), Hand::default());
        let stopped = buffers.take(&clock, 10).now_or_never().unwrap();
        let mut moving = Box::pin(buffers.watchdog.watch(
            (PeerId(1), DiskId(0)),
            1,
            std::future::pending::<Result<(), ()>>(),
        ));
        assert!((&mut moving).now_or_never().is_none());
        let mut next = Box::pin(buffers.take(&clock, 10));
        assert!((&mut next).now_or_never().is_none());
        clock.0.set(true);
        assert!((&mut next).now_or_never().is_none());
        assert_eq!(buffers.watchdog.next_to_disconnect().now_or_never(), Some(PeerId(1)));
        drop((moving, stopped));
        let next = next.now_or_never().unwrap();
        assert_eq!(buffers.held_bytes(), 10);
        drop(next);
    }
}
