//! What is being moved between a server and its clients, in memory that others may be waiting for.
//!
//! Invariant: a movement is known as long as it goes on, however it ends.

use crate::signal::Signal;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use units::{Duration, PeerId};
use world::Clock;

/// For how long whoever waits for memory puts up with a movement, besides what a slow network or
/// disk needs for all that is held; half as long each time that it was in vain, as the clients of a
/// job that is stopped come one after the other …
const PATIENCE_MS: u64 = 20_000;

/// … but not more than so many times.
const HALVINGS_MAX: u32 = 3;

/// What a slow network or disk does, in bytes a millisecond.
const SLOW_BYTES_PER_MS: u64 = 4_000;

/// The movements under way. A client that has stopped in the middle of one is let go when it keeps
/// others waiting: its connection ends, and with it all that is held for it.
pub(crate) struct Movements {
    is_watched: bool,
    /// Of each one under way, by the order of their beginnings, the client.
    under_way: RefCell<BTreeMap<u64, PeerId>>,
    next: Cell<u64>,
    /// How often clients were let go since something was moved.
    standstills: Cell<u32>,
    /// Clients to be let go.
    stopped: RefCell<Vec<PeerId>>,
    has_stopped: Signal,
}

/// Why whoever waits for memory has waited for so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standstill {
    /// Clients had stopped, and are let go.
    OfClients,
    /// No client is the reason: a disk is, or a lock.
    OfOthers,
}

/// A movement's entry.
struct Entry<'a> {
    movements: &'a Movements,
    number: u64,
}

impl Movements {
    /// None are under way. Clients are let go only if they are watched.
    pub(crate) fn new(is_watched: bool) -> Self {
        Self {
            is_watched,
            under_way: RefCell::default(),
            next: Cell::default(),
            standstills: Cell::default(),
            stopped: RefCell::default(),
            has_stopped: Signal::default(),
        }
    }

    /// Moves something between memory of this server, which others may need, and `client`.
    pub(crate) async fn moving<R, E>(
        &self,
        client: PeerId,
        transfer: impl Future<Output = Result<R, E>>,
    ) -> Result<R, E> {
        if !self.is_watched {
            return transfer.await;
        }
        let entry = Entry { movements: self, number: self.next.get() };
        self.next.set(entry.number + 1);
        self.under_way.borrow_mut().insert(entry.number, client);
        let moved = transfer.await;
        if moved.is_ok() {
            self.standstills.set(0);
        }
        moved
    }

    /// Waits for memory, of which `held` bytes are held by others. Gives up when that has taken too
    /// long; clients with which something has been moving all the time are let go then.
    pub(crate) async fn wait<T>(
        &self,
        clock: &impl Clock,
        held: u64,
        memory: impl Future<Output = T>,
    ) -> Result<T, Standstill> {
        if !self.is_watched {
            return Ok(memory.await);
        }
        let began = self.next.get();
        let patience_ms = PATIENCE_MS >> self.standstills.get().min(HALVINGS_MAX);
        let patience = Duration::from_ms(patience_ms + held / SLOW_BYTES_PER_MS);
        match select(pin!(memory), pin!(clock.sleep(patience))).await {
            Either::Left((memory, _)) => Ok(memory),
            Either::Right(_) => Err(self.let_go(began)),
        }
    }

    /// Lets the clients go with which something is moving since before `moment`.
    fn let_go(&self, moment: u64) -> Standstill {
        let under_way = self.under_way.borrow();
        let mut stopped: Vec<PeerId> = under_way.range(..moment).map(|(_, peer)| *peer).collect();
        stopped.sort_unstable();
        stopped.dedup();
        if stopped.is_empty() {
            return Standstill::OfOthers;
        }
        self.standstills.set(self.standstills.get() + 1);
        self.stopped.borrow_mut().extend(stopped);
        self.has_stopped.notify();
        Standstill::OfClients
    }

    /// The next client to be let go.
    pub(crate) async fn next_stopped(&self) -> PeerId {
        self.has_stopped.until(|| self.stopped.borrow_mut().pop()).await
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.movements.under_way.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Proves: who waits for too long lets those go who moved all the time, and nobody else.
    use super::*;
    use futures_util::FutureExt;
    use std::future::pending;
    use std::rc::Rc;
    use std::task::Poll;
    use units::Instant;

    /// What comes of a movement.
    type Moved = Result<(), ()>;

    /// A clock by which any time passes once when told to, and none else.
    #[derive(Default)]
    pub(crate) struct Hand(pub(crate) Rc<Cell<bool>>);

    impl Clock for Hand {
        fn now(&self) -> Instant {
            Instant::START
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
    fn who_moves_all_the_time_is_let_go() {
        let (movements, clock) = (Movements::new(true), Hand::default());
        let stop = |client| Box::pin(movements.moving(PeerId(client), pending::<Moved>()));
        let mut stopped = [stop(1), stop(2), stop(1)];
        assert!(stopped.iter_mut().all(|moving| moving.now_or_never().is_none()));
        movements
            .moving(PeerId(3), async { Moved::Ok(()) })
            .now_or_never()
            .expect("it goes on")
            .unwrap();
        let mut waiting = Box::pin(movements.wait(&clock, 0, pending::<()>()));
        assert!((&mut waiting).now_or_never().is_none());
        let mut later = stop(4);
        assert!((&mut later).now_or_never().is_none());
        assert!(movements.next_stopped().now_or_never().is_none());
        clock.0.set(true);
        assert_eq!(waiting.now_or_never(), Some(Err(Standstill::OfClients)));
        let let_go = [(); 3].map(|()| movements.next_stopped().now_or_never());
        assert_eq!(let_go, [Some(PeerId(2)), Some(PeerId(1)), None]);
        drop(stopped);
        clock.0.set(true);
        let waiting = movements.wait(&clock, 0, pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Standstill::OfClients)), "the later one has moved since");
        drop(later);
        clock.0.set(true);
        let waiting = movements.wait(&clock, 0, pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Standstill::OfOthers)));
        assert_eq!(movements.wait(&clock, 0, async { 7 }).now_or_never(), Some(Ok(7)));
    }

    #[test]
    fn nobody_is_let_go_where_nobody_is_watched() {
        let (movements, clock) = (Movements::new(false), Hand::default());
        clock.0.set(true);
        let mut moving = Box::pin(movements.moving(PeerId(1), pending::<Moved>()));
        assert!((&mut moving).now_or_never().is_none());
        assert!(movements.wait(&clock, 0, pending::<()>()).now_or_never().is_none());
    }
}
