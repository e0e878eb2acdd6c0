//! What a server does for longer than a block takes: collectives, and the parts of single clients.
//!
//! Invariant: an entry, and the bytes counted for a buffer, go with whoever works on them, however
//! that ends.

use crate::server::Server;
use crate::signal::Signal;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::collections::btree_map::Entry;
use std::pin::pin;
use units::{Duration, FileId, PeerId};
use wire::Fault;
use world::{Clock, World};

/// A transfer under way.
pub(crate) struct Underway {
    pub(crate) file: FileId,
    /// Why it must end, once it must.
    pub(crate) verdict: Option<Fault>,
}

/// A transfer's entry among those under way, as long as it is.
pub(crate) struct Running<'a, W: World> {
    server: &'a Server<W>,
    key: (PeerId, u64),
}

impl<'a, W: World> Running<'a, W> {
    /// Enters the transfer `key`: who asked for it, and its number.
    pub(crate) fn new(
        server: &'a Server<W>,
        key: (PeerId, u64),
        file: FileId,
    ) -> Result<Self, Fault> {
        match server.collectives.borrow_mut().entry(key) {
            Entry::Occupied(_) => {
                let cause = format!("collective {} is already under way", key.1);
                Err(Fault::BadRequest { cause })
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Underway { file, verdict: None });
                Ok(Self { server, key })
            }
        }
    }

    /// Why it must end, once it must.
    pub(crate) fn verdict(&self) -> Option<Fault> {
        self.server.collectives.borrow().get(&self.key)?.verdict.clone()
    }
}

impl<W: World> Drop for Running<'_, W> {
    fn drop(&mut self) {
        self.server.collectives.borrow_mut().remove(&self.key);
        self.server.departures.notify();
    }
}

/// The bytes that transfers hold in buffers, of which a server has so many. Whoever wants more
/// than there are free waits, in the order of coming. The limit bends: there is room for as many
/// buffers as one transfer uses, however long they are; and what is held for long by those whose
/// client or disk has stopped is written off, up to twice the limit, so that the others go on. When
/// all stand still again, clients with which something has been moving since are let go.
pub(crate) struct Buffers {
    bytes_max: u64,
    /// Buffers of a transfer.
    count_min: u64,
    held: Cell<u64>,
    /// So much of it is held by who does not go on, as it seems …
    written_off: Cell<u64>,
    /// … which are the buffers with smaller numbers than this.
    written_off_until: Cell<u64>,
    /// The next number when all stood still for the last time …
    stood_until: Cell<u64>,
    /// … and the time before: clients with which something is moving since then are let go.
    given_up_until: Cell<u64>,
    let_go: RefCell<Vec<PeerId>>,
    given_up: Signal,
    waiting: RefCell<VecDeque<u64>>,
    next: Cell<u64>,
    freed: Signal,
}

/// When no buffer has become free for so long, and for what a slow disk needs for all of them, they
/// are held by who does not go on.
const STANDSTILL: Duration = Duration::from_ms(10_000);

/// What a slow disk does, in bytes a millisecond.
const SLOW_BYTES_PER_MS: u64 = 4_000;

/// The bytes of a buffer, as long as it is held.
pub(crate) struct Held<'a> {
    buffers: &'a Buffers,
    number: u64,
    bytes: u64,
}

/// A place among those who wait.
struct Turn<'a> {
    buffers: &'a Buffers,
    number: u64,
}

impl Buffers {
    pub(crate) fn new(bytes_max: u64, count_min: u64) -> Self {
        Self {
            bytes_max,
            count_min,
            held: Cell::default(),
            written_off: Cell::default(),
            written_off_until: Cell::default(),
            stood_until: Cell::default(),
            given_up_until: Cell::default(),
            let_go: RefCell::default(),
            given_up: Signal::default(),
            waiting: RefCell::default(),
            next: Cell::default(),
            freed: Signal::default(),
        }
    }

    /// Bytes that are held now.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.get()
    }

    /// Waits until there is room for a buffer of `bytes` bytes. Whoever holds one must need no
    /// other to be done with it.
    pub(crate) async fn take(&self, world: &impl Clock, bytes: u64) -> Held<'_> {
        if !(self.waiting.borrow().is_empty() && self.has_room(bytes)) {
            self.wait(world, bytes).await;
        }
        self.held.set(self.held.get() + bytes);
        Held { buffers: self, number: self.next_number(), bytes }
    }

    fn next_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    async fn wait(&self, world: &impl Clock, bytes: u64) {
        let turn = Turn { buffers: self, number: self.next_number() };
        self.waiting.borrow_mut().push_back(turn.number);
        let is_first = || self.waiting.borrow().front() == Some(&turn.number);
        self.freed.until(|| is_first().then_some(())).await;
        while !self.has_room(bytes) {
            let held = self.held.get();
            let freed = pin!(self.freed.until(|| (self.held.get() != held).then_some(())));
            let length = STANDSTILL + Duration::from_ms(held / SLOW_BYTES_PER_MS);
            let standstill = pin!(world.sleep(length));
            if let Either::Right(_) = select(freed, standstill).await {
                // Who moves nothing since the last time has stopped.
                self.given_up_until.set(self.stood_until.replace(self.next.get()));
                self.given_up.notify();
                // Where a disk has stopped it does not help to let clients go, nor to hold more.
                if self.written_off.get() <= self.limit(bytes) {
                    self.written_off.set(held);
                    self.written_off_until.set(self.next.get());
                }
            }
        }
    }

    /// The next client to be let go, because it keeps others from going on.
    pub(crate) async fn next_to_let_go(&self) -> PeerId {
        self.given_up.until(|| self.let_go.borrow_mut().pop()).await
    }

    fn has_room(&self, bytes: u64) -> bool {
        let held = self.held.get() - self.written_off.get();
        held.saturating_add(bytes) <= self.limit(bytes)
    }

    /// The most that is held when buffers have `bytes` bytes.
    fn limit(&self, bytes: u64) -> u64 {
        self.bytes_max.max(bytes.saturating_mul(self.count_min))
    }
}

impl Held<'_> {
    /// Moves something between this buffer and `client`, which is let go if that takes so long that
    /// all stand still twice meanwhile. (What came before, a disk or a lock, is not its doing.)
    pub(crate) async fn moving<R>(&self, client: PeerId, transfer: impl Future<Output = R>) -> R {
        let Buffers { bytes_max, given_up_until, let_go, given_up, .. } = self.buffers;
        if *bytes_max == u64::MAX {
            return transfer.await;
        }
        let began = self.buffers.next_number();
        let is_given_up = || (began < given_up_until.get()).then_some(());
        let told = pin!(given_up.until(is_given_up));
        match select(pin!(transfer), told).await {
            Either::Left((done, _)) => done,
            Either::Right(((), transfer)) => {
                if !let_go.borrow().contains(&client) {
                    let_go.borrow_mut().push(client);
                }
                given_up.notify();
                transfer.await
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.buffers.waiting.borrow_mut().retain(|number| *number != self.number);
        self.buffers.freed.notify();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Buffers { held, written_off, written_off_until, freed, .. } = self.buffers;
        held.set(held.get() - self.bytes);
        if self.number < written_off_until.get() {
            written_off.set(written_off.get() - self.bytes);
        }
        freed.notify();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: no more is held than there is, in the order of coming; there is room for one
    //! transfer; who gives up waiting does not keep others from their turn, nor does who never
    //! frees what it holds.
    use super::*;
    use futures_util::FutureExt;
    use std::rc::Rc;
    use std::task::Poll;
    use units::Instant;

    /// A clock by which any time has passed, or none.
    #[derive(Default)]
    struct Hand(Rc<Cell<bool>>);

    impl Clock for Hand {
        fn now(&self) -> Instant {
            Instant::START
        }

        fn sleep_until(&self, _: Instant) -> impl Future<Output = ()> + 'static {
            let has_passed = Rc::clone(&self.0);
            std::future::poll_fn(move |_| match has_passed.get() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
        }
    }

    #[test]
    fn buffers_are_given_in_turn() {
        let (buffers, clock) = (Buffers::new(10, 1), Hand::default());
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
    fn there_is_room_for_one_transfer() {
        let (buffers, clock) = (Buffers::new(10, 3), Hand::default());
        let held: Vec<_> =
            (0..3).map(|_| buffers.take(&clock, 8).now_or_never().unwrap()).collect();
        assert!(buffers.take(&clock, 8).now_or_never().is_none());
        drop(held);
    }

    #[test]
    fn who_stands_still_is_written_off() {
        let (buffers, clock) = (Buffers::new(10, 1), Hand::default());
        let stopped = buffers.take(&clock, 10).now_or_never().unwrap();
        let mut next = Box::pin(buffers.take(&clock, 10));
        assert!((&mut next).now_or_never().is_none());
        clock.0.set(true);
        let next = next.now_or_never().unwrap();
        clock.0.set(false);
        assert_eq!(buffers.held_bytes(), 20);
        assert!(buffers.take(&clock, 1).now_or_never().is_none(), "the rest is limited as ever");
        drop(next);
        let next = buffers.take(&clock, 10).now_or_never().unwrap();
        drop(stopped);
        assert!(buffers.take(&clock, 1).now_or_never().is_none());
        drop(next);
        assert_eq!((buffers.held_bytes(), buffers.written_off.get()), (0, 0));
    }

    #[test]
    fn who_stands_still_is_let_go_when_others_do_too() {
        let (buffers, clock) = (Buffers::new(10, 1), Hand::default());
        let take = || Box::pin(buffers.take(&clock, 10));
        let mut stopped = Vec::new();
        for client in [PeerId(1), PeerId(2)] {
            let held = take().now_or_never().unwrap_or_else(|| {
                let mut waiting = take();
                assert!((&mut waiting).now_or_never().is_none());
                clock.0.set(true);
                let held = waiting.now_or_never().unwrap();
                clock.0.set(false);
                held
            });
            let mut moving = Box::pin(async move {
                held.moving(client, std::future::pending::<()>()).await;
            });
            assert!((&mut moving).now_or_never().is_none());
            stopped.push(moving);
        }
        assert!(buffers.next_to_let_go().now_or_never().is_none(), "one is written off");
        let mut waiting = take();
        assert!((&mut waiting).now_or_never().is_none());
        clock.0.set(true);
        let third = waiting.now_or_never().unwrap();
        clock.0.set(false);
        for moving in &mut stopped {
            assert!(moving.now_or_never().is_none());
        }
        assert_eq!(buffers.next_to_let_go().now_or_never(), Some(PeerId(1)));
        assert!(buffers.next_to_let_go().now_or_never().is_none(), "the other is written off");
        drop(stopped.remove(0));
        assert_eq!(buffers.held_bytes(), 20);
        // Whatever kept the third one until now was not the client that it turns to.
        let mut moving = Box::pin(third.moving(PeerId(3), std::future::pending::<()>()));
        assert!((&mut moving).now_or_never().is_none());
        assert!(buffers.next_to_let_go().now_or_never().is_none());
        drop((stopped, moving));
        drop(third);
        assert_eq!((buffers.held_bytes(), buffers.written_off.get()), (0, 0));
    }
}
