//! The queue of a disk: it gives as many turns at once as the disk takes commands.

use crate::models::request_queue::{QueueKind, RequestQueue};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Queue of requests that gives turns in the order of its kind. Clones share the turns.
///
/// Invariants:
///
/// - No turn is free while a request could be served.
/// - A dropped request or turn leaves nothing behind.
#[derive(Clone)]
pub(crate) struct DiskQueue(Rc<RefCell<State>>);

struct State {
    requests: RequestQueue,
    /// Requests that have not yet seen their turn, by ticket.
    waiters: BTreeMap<u64, Waiter>,
    turns_free: u32,
    next_ticket: u64,
}

#[derive(Default)]
struct Waiter {
    has_turn: bool,
    waker: Option<Waker>,
}

impl DiskQueue {
    /// Creates an empty queue of a disk that takes `commands_max` commands at once, at least one.
    pub(crate) fn new(kind: QueueKind, commands_max: u32) -> Self {
        assert!(commands_max > 0, "a disk must take a command");
        Self(Rc::new(RefCell::new(State {
            requests: RequestQueue::new(kind),
            waiters: BTreeMap::new(),
            turns_free: commands_max,
            next_ticket: 0,
        })))
    }

    /// Returns a future of a turn at `sectors`, which a scan orders by `scanned`. The turn lasts
    /// until the guard is dropped. The request joins the queue now, not at the first poll.
    pub(crate) fn turn(
        &self,
        sectors: Range<u64>,
        scanned: Range<u64>,
    ) -> impl Future<Output = Turn> + use<> {
        let mut state = self.0.borrow_mut();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.requests.push_at(ticket, sectors, scanned);
        state.waiters.insert(ticket, Waiter::default());
        drop(state);
        self.give_turns();
        wait(Place { queue: self.clone(), ticket })
    }

    /// Gives the free turns to the next requests.
    fn give_turns(&self) {
        loop {
            let mut state = self.0.borrow_mut();
            if state.turns_free == 0 {
                return;
            }
            let Some(ticket) = state.requests.take_next() else { return };
            state.turns_free -= 1;
            let waiter =
                state.waiters.get_mut(&ticket).expect("a queued request must have a waiter");
            waiter.has_turn = true;
            let waker = waiter.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn end_turn(&self, ticket: u64) {
        let mut state = self.0.borrow_mut();
        state.requests.finish(ticket);
        state.turns_free += 1;
        drop(state);
        self.give_turns();
    }
}

async fn wait(place: Place) -> Turn {
    poll_fn(|context| {
        let mut state = place.queue.0.borrow_mut();
        let waiter = state
            .waiters
            .get_mut(&place.ticket)
            .expect("a request in the queue must have a waiter");
        if !waiter.has_turn {
            waiter.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.waiters.remove(&place.ticket);
        Poll::Ready(())
    })
    .await;
    Turn { queue: place.queue.clone(), ticket: place.ticket }
}

/// Place of a request in the queue. Dropping it before its turn was seen gives it up.
struct Place {
    queue: DiskQueue,
    ticket: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.0.borrow_mut();
        let Some(waiter) = state.waiters.remove(&self.ticket) else { return };
        if waiter.has_turn {
            drop(state);
            self.queue.end_turn(self.ticket);
        } else {
            state.requests.finish(self.ticket);
            drop(state);
            self.queue.give_turns(); // Another request may have waited for this one only.
        }
    }
}

/// A turn. Dropping it passes it on.
pub(crate) struct Turn {
    queue: DiskQueue,
    ticket: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.queue.end_turn(self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn_of(queue: &DiskQueue, sectors: Range<u64>) -> impl Future<Output = Turn> + use<> {
        queue.turn(sectors.clone(), sectors)
    }
    use crate::engine::Engine;
    use std::pin::{Pin, pin};
    use std::task::Context;
    use units::Duration;

    fn poll(turn: Pin<&mut impl Future<Output = Turn>>) -> Option<Turn> {
        match turn.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    /// Proves that as many requests have their turn as the disk takes commands, and that the next
    /// one is chosen by address when a turn ends.
    #[test]
    fn turns_follow_the_kind() {
        let queue = DiskQueue::new(QueueKind::Cscan, 2);
        let mut first = pin!(turn_of(&queue, 50..60));
        let mut second = pin!(turn_of(&queue, 70..80));
        let mut low = pin!(turn_of(&queue, 10..20));
        let mut high = pin!(turn_of(&queue, 90..99));
        let (one, two) = (poll(first.as_mut()), poll(second.as_mut()));
        assert!(one.is_some() && two.is_some());
        assert!(poll(low.as_mut()).is_none() && poll(high.as_mut()).is_none());
        drop(one);
        assert!(poll(low.as_mut()).is_none(), "90 is ahead of the head at 80, 10 is not");
        let three = poll(high.as_mut());
        assert!(three.is_some());
        drop(two);
        assert!(poll(low.as_mut()).is_some());
    }

    /// Proves that a cancelled request leaves the queue intact: while it waits, after it got a turn
    /// that it has not seen, and before its first poll.
    #[test]
    fn requests_can_be_given_up() {
        for kind in [QueueKind::Fcfs, QueueKind::Cscan] {
            let queue = DiskQueue::new(kind, 1);
            let turn = poll(pin!(turn_of(&queue, 0..1)));
            let waiting = turn_of(&queue, 1..2);
            let chosen = turn_of(&queue, 2..3);
            let mut last = pin!(turn_of(&queue, 3..4));
            drop(waiting);
            drop(turn);
            assert!(poll(last.as_mut()).is_none(), "the turn is with the chosen");
            drop(chosen);
            assert!(poll(last.as_mut()).is_some());
            assert_eq!(queue.0.borrow().turns_free, 1);
            assert!(queue.0.borrow().waiters.is_empty());
        }
    }

    /// Proves that waiting tasks are woken, each in its turn, and that a task dropped with its turn
    /// passes it on.
    #[test]
    fn waiting_tasks_are_woken() {
        let engine = Engine::new();
        let queue = DiskQueue::new(QueueKind::Cscan, 1);
        let served = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = [40, 90, 10, 60, 20]
            .into_iter()
            .map(|first| {
                let (queue, engine_inside) = (queue.clone(), engine.clone());
                let served = Rc::clone(&served);
                engine.spawn(0, async move {
                    let _turn = turn_of(&queue, first..first + 1).await;
                    engine_inside.sleep(Duration::from_us(10)).await;
                    served.borrow_mut().push(first);
                })
            })
            .collect();
        let (mut tasks, inside) = (tasks, engine.clone());
        let ended = engine.run(async move {
            inside.sleep(Duration::from_us(25)).await;
            drop(tasks.remove(1)); // 40 and 60 are done, and 90 has its turn.
            inside.sleep(Duration::from_us(100)).await;
            drop(tasks);
        });
        assert!(ended.is_ok());
        assert_eq!(*served.borrow(), [40, 60, 10, 20]);
    }
}
