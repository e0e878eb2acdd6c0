//! What is being moved between a server and its clients, in memory that others may be waiting for.
//!
//! Invariant: a movement is known as long as it goes on, however it ends.

use crate::signal::Signal;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use units::{DiskId, Duration, PeerId};
use world::Clock;

/// For how long whoever waits for memory puts up with a movement, besides what a slow network needs
/// for all that is moving; half as long each time that it was in vain, as the clients of a job that
/// is stopped come one after the other …
const PATIENCE_MS: u64 = 20_000;

/// … but not more than so many times.
const HALVINGS_MAX: u32 = 3;

/// What a slow network does, in bytes a millisecond.
const SLOW_BYTES_PER_MS: u64 = 4_000;

/// The movements under way. One that stands still while it keeps others waiting is given up, or its
/// client is let go: its connection ends, and with it all that is held for it.
pub(crate) struct Movements {
    is_watched: bool,
    /// Those under way, by the order of their beginnings.
    under_way: RefCell<BTreeMap<u64, Movement>>,
    next: Cell<u64>,
    /// Bytes of all of them.
    bytes: Cell<u64>,
    /// How often clients were let go since something was moved.
    standstills: Cell<u32>,
    /// Clients to be let go.
    stopped: RefCell<Vec<PeerId>>,
    /// Rung when some stand still.
    has_stopped: Signal,
}

struct Movement {
    client: PeerId,
    /// In whose memory.
    disk: DiskId,
    bytes: u64,
    /// Whether it can be given up alone.
    can_be_repeated: bool,
    /// Whether it, or its client, is given up.
    is_given_up: bool,
}

/// Why whoever waits for memory has waited for so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standstill {
    /// Movements had stopped, and are given up.
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
    /// None are under way. They are given up only if they are watched.
    pub(crate) fn new(is_watched: bool) -> Self {
        Self {
            is_watched,
            under_way: RefCell::default(),
            next: Cell::default(),
            bytes: Cell::default(),
            standstills: Cell::default(),
            stopped: RefCell::default(),
            has_stopped: Signal::default(),
        }
    }

    /// Moves `bytes` bytes between memory of this server, which others may need, and `client`,
    /// which is let go if that stands still.
    pub(crate) async fn moving<R, E>(
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

    /// The same, but if it stands still, it alone is given up: `None`. The client can ask again.
    pub(crate) async fn moving_unless_slow<R, E>(
        &self,
        (client, disk): (PeerId, DiskId),
        bytes: u64,
        transfer: impl Future<Output = Result<R, E>>,
    ) -> Option<Result<R, E>> {
        if !self.is_watched {
            return Some(transfer.await);
        }
        let entry = self.enter((client, disk), bytes, true);
        let is_given_up = || entry.is_given_up().then_some(());
        match select(pin!(transfer), pin!(self.has_stopped.until(is_given_up))).await {
            Either::Left((moved, _)) => Some(self.note(moved)),
            Either::Right(_) => None,
        }
    }

    fn enter(
        &self,
        (client, disk): (PeerId, DiskId),
        bytes: u64,
        can_be_repeated: bool,
    ) -> Entry<'_> {
        let number = self.next.replace(self.next.get() + 1);
        let movement = Movement { client, disk, bytes, can_be_repeated, is_given_up: false };
        self.under_way.borrow_mut().insert(number, movement);
        self.bytes.update(|sum| sum + bytes);
        Entry { movements: self, number }
    }

    fn note<R, E>(&self, moved: Result<R, E>) -> Result<R, E> {
        if moved.is_ok() {
            self.standstills.set(0);
        }
        moved
    }

    /// Waits for memory, of one disk or any. Gives up when that has taken too long; what has been
    /// moving there all the time is given up then.
    pub(crate) async fn wait<T>(
        &self,
        clock: &impl Clock,
        disk: Option<DiskId>,
        memory: impl Future<Output = T>,
    ) -> Result<T, Standstill> {
        if !self.is_watched {
            return Ok(memory.await);
        }
        let began = self.next.get();
        let patience_ms = PATIENCE_MS >> self.standstills.get().min(HALVINGS_MAX);
        let patience = Duration::from_ms(patience_ms + self.bytes.get() / SLOW_BYTES_PER_MS);
        match select(pin!(memory), pin!(clock.sleep(patience))).await {
            Either::Left((memory, _)) => Ok(memory),
            Either::Right(_) => Err(self.give_up(disk, began)),
        }
    }

    /// Gives up what is moving since before `moment`, there.
    fn give_up(&self, disk: Option<DiskId>, moment: u64) -> Standstill {
        let mut under_way = self.under_way.borrow_mut();
        let mut standstill = Standstill::OfOthers;
        let (mut is_news, mut lets_go) = (false, false);
        let before = under_way.range_mut(..moment).map(|(_, movement)| movement);
        for movement in before.filter(|it| disk.is_none_or(|disk| it.disk == disk)) {
            standstill = Standstill::OfClients;
            if std::mem::replace(&mut movement.is_given_up, true) {
                continue;
            }
            is_news = true;
            if movement.can_be_repeated {
                continue;
            }
            lets_go = true;
            let mut stopped = self.stopped.borrow_mut();
            if !stopped.contains(&movement.client) {
                stopped.push(movement.client);
            }
        }
        drop(under_way);
        if lets_go {
            self.standstills.update(|times| times + 1);
        }
        if is_news {
            self.has_stopped.notify();
        }
        standstill
    }

    /// The next client to be let go.
    pub(crate) async fn next_stopped(&self) -> PeerId {
        self.has_stopped.until(|| self.stopped.borrow_mut().pop()).await
    }
}

impl Entry<'_> {
    fn is_given_up(&self) -> bool {
        let under_way = self.movements.under_way.borrow();
        under_way.get(&self.number).is_some_and(|movement| movement.is_given_up)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let ended = self.movements.under_way.borrow_mut().remove(&self.number);
        let bytes = ended.map_or(0, |movement| movement.bytes);
        self.movements.bytes.update(|sum| sum - bytes);
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

    const DISK: DiskId = DiskId(1);

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
        let stop =
            |client| Box::pin(movements.moving((PeerId(client), DISK), 1, pending::<Moved>()));
        let mut stopped = [stop(1), stop(2), stop(1)];
        assert!(stopped.iter_mut().all(|moving| moving.now_or_never().is_none()));
        movements
            .moving((PeerId(3), DISK), 1, async { Moved::Ok(()) })
            .now_or_never()
            .expect("it goes on")
            .unwrap();
        let mut waiting = Box::pin(movements.wait(&clock, Some(DISK), pending::<()>()));
        assert!((&mut waiting).now_or_never().is_none());
        let mut later = stop(4);
        assert!((&mut later).now_or_never().is_none());
        assert!(movements.next_stopped().now_or_never().is_none());
        clock.0.set(true);
        assert_eq!(waiting.now_or_never(), Some(Err(Standstill::OfClients)));
        let let_go = [(); 3].map(|()| movements.next_stopped().now_or_never());
        assert_eq!(let_go, [Some(PeerId(2)), Some(PeerId(1)), None]);
        clock.0.set(true);
        let waiting = movements.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Standstill::OfClients)));
        assert_eq!(movements.standstills.get(), 2, "the later one is news, the others are not");
        assert_eq!(movements.next_stopped().now_or_never(), Some(PeerId(4)));
        drop(stopped);
        clock.0.set(true);
        let waiting = movements.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Standstill::OfClients)), "the later one is still there");
        drop(later);
        clock.0.set(true);
        let waiting = movements.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Standstill::OfOthers)));
        assert_eq!(movements.wait(&clock, Some(DISK), async { 7 }).now_or_never(), Some(Ok(7)));
        assert_eq!(movements.bytes.get(), 0);
    }

    #[test]
    fn what_can_be_repeated_is_given_up_alone() {
        let (movements, clock) = (Movements::new(true), Hand::default());
        let mut pull =
            Box::pin(movements.moving_unless_slow((PeerId(1), DISK), 1, pending::<Moved>()));
        assert!((&mut pull).now_or_never().is_none());
        clock.0.set(true);
        let waiting = movements.wait(&clock, Some(DISK), pending::<()>()).now_or_never();
        assert_eq!(waiting, Some(Err(Standstill::OfClients)));
        assert_eq!(pull.now_or_never(), Some(None));
        assert!(movements.next_stopped().now_or_never().is_none(), "its client stays");
        let quick = movements.moving_unless_slow((PeerId(1), DISK), 1, async { Moved::Ok(()) });
        assert_eq!(quick.now_or_never(), Some(Some(Ok(()))));
    }

    #[test]
    fn nobody_is_let_go_where_nobody_is_watched() {
        let (movements, clock) = (Movements::new(false), Hand::default());
        clock.0.set(true);
        let mut moving = Box::pin(movements.moving((PeerId(1), DISK), 1, pending::<Moved>()));
        assert!((&mut moving).now_or_never().is_none());
        assert!(movements.wait(&clock, Some(DISK), pending::<()>()).now_or_never().is_none());
    }
}
