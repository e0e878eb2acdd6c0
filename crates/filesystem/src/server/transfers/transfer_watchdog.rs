//! Transfer watchdog: finds transfers between a server and its clients that stall while others wait
//! for their memory.
//!
//! Invariant: a transfer is listed exactly as long as it is active, however it ends.

use crate::signal::Signal;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use units::{DiskId, Duration, PeerId};
use world::Clock;

/// Base stall timeout of tasks that wait for buffer memory, in milliseconds; to it comes the time
/// of all active bytes at `SLOW_BYTES_PER_MS`. Halved after each abort that did not help: clients
/// of a suspended job stall one after the other.
const STALL_TIMEOUT_MS: u64 = 20_000;

/// Maximum number of halvings of the stall timeout.
const HALVINGS_MAX: u32 = 3;

/// Speed of a slow network, in bytes per millisecond.
const SLOW_BYTES_PER_MS: u64 = 4_000;

/// Active transfers. One that stalls while others wait for its memory is aborted, or its client is
/// disconnected, which frees everything that the server holds for it.
pub(crate) struct TransferWatchdog {
    is_watched: bool,
    /// Active transfers, by the order of their beginnings.
    active: RefCell<BTreeMap<u64, WatchedTransfer>>,
    next: Cell<u64>,
    /// Number of bytes of all active transfers.
    bytes: Cell<u64>,
    /// Number of stalls with a disconnected client since the last successful transfer.
    stalls: Cell<u32>,
    /// Clients to disconnect.
    to_disconnect: RefCell<Vec<PeerId>>,
    /// Notified when transfers were aborted.
    aborted: Signal,
}

struct WatchedTransfer {
    client: PeerId,
    /// Disk whose memory the transfer uses.
    disk: DiskId,
    bytes: u64,
    /// True when it can be aborted alone.
    is_retryable: bool,
    /// True when it, or its client, was aborted.
    is_aborted: bool,
}

/// Reason why a task has waited too long for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stall {
    /// Transfers of clients had stalled, and are aborted.
    Clients,
    /// No client: a disk or a lock.
    Other,
}

/// Entry of an active transfer. Removed when dropped.
struct Entry<'a> {
    watchdog: &'a TransferWatchdog,
    number: u64,
}

impl TransferWatchdog {
    /// Makes a watchdog without transfers. It aborts none if `is_watched` is false.
    pub(crate) fn new(is_watched: bool) -> Self {
        Self {
            is_watched,
            active: RefCell::default(),
            next: Cell::default(),
            bytes: Cell::default(),
            stalls: Cell::default(),
            to_disconnect: RefCell::default(),
            aborted: Signal::default(),
        }
    }

    /// Runs a transfer of `bytes` bytes between memory of this server, which others may need, and
    /// `client`. If it stalls, the client is disconnected.
    pub(crate) async fn watch<R, E>(
        &self,
        (client, disk): (PeerId, DiskId),
        bytes: u64,
        transfer: impl Future<Output = Result<R, E>>,
    ) -> Result<R, E> {
        if !self.is_watched {
            return transfer.await;
        }
        let _entry = self.enter((client, disk), bytes, false);
        self.note(transfer.await)
    }

    /// Runs a transfer that is aborted alone if it stalls: `None`. The client can ask again.
    pub(crate) async fn watch_retryable<R, E>(
        &self,
        (client, disk): (PeerId, DiskId),
        bytes: u64,
        transfer: impl Future<Output = Result<R, E>>,
    ) -> Option<Result<R, E>> {
        if !self.is_watched {
            return Some(transfer.await);
        }
        let entry = self.enter((client, disk), bytes, true);
        let is_aborted = || entry.is_aborted().then_some(());
        match select(pin!(transfer), pin!(self.aborted.until(is_aborted))).await {
            Either::Left((moved, _)) => Some(self.note(moved)),
            Either::Right(_) => None,
        }
    }

    fn enter(&self, (client, disk): (PeerId, DiskId), bytes: u64, is_retryable: bool) -> Entry<'_> {
        let number = self.next.replace(self.next.get() + 1);
        let transfer = WatchedTransfer { client, disk, bytes, is_retryable, is_aborted: false };
        self.active.borrow_mut().insert(number, transfer);
        self.bytes.update(|sum| sum + bytes);
        Entry { watchdog: self, number }
    }

    fn note<R, E>(&self, moved: Result<R, E>) -> Result<R, E> {
        if moved.is_ok() {
            self.stalls.set(0);
        }
        moved
    }

    /// Waits for memory, of one disk or any. After the stall timeout it aborts the transfers that
    /// have been active there all the time, and fails.
    pub(crate) async fn wait<T>(
        &self,
        clock: &impl Clock,
        disk: Option<DiskId>,
        memory: impl Future<Output = T>,
    ) -> Result<T, Stall> {
        if !self.is_watched {
            return Ok(memory.await);
        }
        let began = self.next.get();
        let timeout_ms = STALL_TIMEOUT_MS >> self.stalls.get().min(HALVINGS_MAX);
        let timeout = Duration::from_ms(timeout_ms + self.bytes.get() / SLOW_BYTES_PER_MS);
        match select(pin!(memory), pin!(clock.sleep(timeout))).await {
            Either::Left((memory, _)) => Ok(memory),
            Either::Right(_) => Err(self.abort_older_than(disk, began)),
        }
    }

    /// Aborts the transfers there that began before `moment`.
    fn abort_older_than(&self, disk: Option<DiskId>, moment: u64) -> Stall {
        let mut active = self.active.borrow_mut();
        let mut stall = Stall::Other;
        let (mut aborts, mut disconnects) = (false, false);
        let before = active.range_mut(..moment).map(|(_, transfer)| transfer);
        for transfer in before.filter(|it| disk.is_none_or(|disk| it.disk == disk)) {
            stall = Stall::Clients;
            if std::mem::replace(&mut transfer.is_aborted, true) {
                continue;
            }
            aborts = true;
            if transfer.is_retryable {
                continue;
            }
            disconnects = true;
            let mut to_disconnect = self.to_disconnect.borrow_mut();
            if !to_disconnect.contains(&transfer.client) {
                to_disconnect.push(transfer.client);
            }
        }
        drop(active);
        if disconnects {
            self.stalls.update(|times| times + 1);
        }
        if aborts {
            self.aborted.notify();
        }
        stall
    }

    /// Has a client disconnected that keeps others waiting.
    pub(crate) fn disconnect(&self, client: PeerId) {
        self.to_disconnect.borrow_mut().push(client);
        self.aborted.notify();
    }

    /// Waits for the next client to disconnect.
    pub(crate) async fn next_to_disconnect(&self) -> PeerId {
        self.aborted.until(|| self.to_disconnect.borrow_mut().pop()).await
    }
}

impl Entry<'_> {
    fn is_aborted(&self) -> bool {
        let active = self.watchdog.active.borrow();
        active.get(&self.number).is_some_and(|transfer| transfer.is_aborted)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let ended = self.watchdog.active.borrow_mut().remove(&self.number);
        let bytes = ended.map_or(0, |transfer| transfer.bytes);
        self.watchdog.bytes.update(|sum| sum - bytes);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Proves: a task that waits too long disconnects the clients whose transfers were active all
    //! the time, and no others.
    use super::*;
    use futures_util::FutureExt;
    use std::future::pending;
    use std::rc::Rc;
    use std::task::Poll;
    use units::{Instant, Timestamp};

    const DISK: DiskId = DiskId(1);

    /// Result of a transfer.
    type Moved = Result<(), ()>;

    /// A clock on which any time passes at once when the flag is set, and no time otherwise.
    #[derive(Default)]
    pub(crate) struct Hand(pub(crate) Rc<Cell<bool>>);

    impl Clock for Hand {
        fn now(&self) -> Instant {
            Instant::START
        }

        fn clock(&self) -> u64 {
            0
        }

        fn timestamp(&self) -> Timestamp {
            Timestamp::default()
        }

        fn sleep_until(&self, _: Instant) -> impl Future<Output = ()> + 'static {
            let has_passed = Rc::clone(&self.0);
            std::future::poll_fn(move |_| match has_passed.take() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
        }
    }

    #[test]
    fn stalled_clients_are_disconnected_after_the_timeout() {
        let (watchdog, clock) = (TransferWatchdog::new(true), Hand::default());
        let stop = |client| Box::pin(watchdog.watch((PeerId(client), DISK), 1, pending::<Moved>()));
        let mut stopped = [stop(1), stop(2), stop(1)];
        assert!(stopped.iter_mut().all(|moving| moving.now_or_never().is_none()));
        watchdog
            .watch((PeerId(3), DISK), 1, async { Moved::Ok(()) })
            .now_or_never()
            .expect("the transfer is done")
            .unwrap();
        let mut waiting = Box::pin(watchdog.wait(&clock, Some(DISK), pending::<()>()));
        assert!((&mut waiting).now_or_never().is_none());
        let mut later = stop(4);
        assert!((&mut later).now_or_never().is_none());
        assert!(watchdog.next_to_disconnect().now_or_never().is_none());
        clock.0.set(true);
        assert_eq!(waiting.now_or_never(), Some(Err(Stall::Clients)));
        let disconnected = [(); 3].map(|()| watchdog.next_to_disconnect().now_or_never());
        assert_eq!(disconnected, [Some(PeerId(2)), Some(PeerId(1)), None]);
        clock.0.set(true);
        let waiting = watchdog.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Stall::Clients)));
        assert_eq!(watchdog.stalls.get(), 2, "only the later transfer counts as a new stall");
        assert_eq!(watchdog.next_to_disconnect().now_or_never(), Some(PeerId(4)));
        drop(stopped);
        clock.0.set(true);
        let waiting = watchdog.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Stall::Clients)), "the later transfer is still watched");
        drop(later);
        clock.0.set(true);
        let waiting = watchdog.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Stall::Other)));
        assert_eq!(watchdog.wait(&clock, Some(DISK), async { 7 }).now_or_never(), Some(Ok(7)));
        assert_eq!(watchdog.bytes.get(), 0);
    }

    #[test]
    fn stalled_retryable_transfer_is_aborted_alone() {
        let (watchdog, clock) = (TransferWatchdog::new(true), Hand::default());
        let mut pull = Box::pin(watchdog.watch_retryable((PeerId(1), DISK), 1, pending::<Moved>()));
        assert!((&mut pull).now_or_never().is_none());
        clock.0.set(true);
        let waiting = watchdog.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Stall::Clients)));
        assert_eq!(pull.now_or_never(), Some(None));
        assert!(
            watchdog.next_to_disconnect().now_or_never().is_none(),
            "its client stays connected"
        );
        let quick = watchdog.watch_retryable((PeerId(1), DISK), 1, async { Moved::Ok(()) });
        assert_eq!(quick.now_or_never(), Some(Some(Ok(()))));
    }

    #[test]
    fn unwatched_transfers_are_never_aborted() {
        let (watchdog, clock) = (TransferWatchdog::new(false), Hand::default());
        clock.0.set(true);
        let mut moving = Box::pin(watchdog.watch((PeerId(1), DISK), 1, pending::<Moved>()));
        assert!((&mut moving).now_or_never().is_none());
        assert!(watchdog.wait(&clock, Some(DISK), pending::<()>()).now_or_never().is_none());
    }
}
