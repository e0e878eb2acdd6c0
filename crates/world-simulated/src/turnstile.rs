//! A turnstile: one passes at a time, in the order in which they came.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Gives turns, first come, first served. Clones share the turns.
#[derive(Clone, Default)]
pub(crate) struct Turnstile(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    taken: bool,
    next_ticket: u64,
    waiting: VecDeque<(u64, Option<Waker>)>,
}

impl Turnstile {
    /// Waits for a turn, which lasts until the guard is dropped. The place in the queue is taken
    /// now, not at the first poll.
    pub(crate) fn turn(&self) -> impl Future<Output = Turn> + use<> {
        let mut state = self.0.borrow_mut();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back((ticket, None));
        let place = Place { turnstile: self.clone(), ticket, waiting: true };
        wait(place)
    }

    fn wake_first(state: &RefCell<State>) {
        let waker = {
            let mut state = state.borrow_mut();
            if state.taken {
                return;
            }
            state.waiting.front_mut().and_then(|(_, waker)| waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

async fn wait(mut place: Place) -> Turn {
    poll_fn(|context| {
        let mut state = place.turnstile.0.borrow_mut();
        let first = state.waiting.front().is_some_and(|(ticket, _)| *ticket == place.ticket);
        if first && !state.taken {
            state.waiting.pop_front();
            state.taken = true;
            return Poll::Ready(());
        }
        let own = state.waiting.iter_mut().find(|(ticket, _)| *ticket == place.ticket);
        if let Some((_, waker)) = own {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    })
    .await;
    place.waiting = false;
    Turn(place.turnstile.clone())
}

/// A place in the queue, given up when dropped.
struct Place {
    turnstile: Turnstile,
    ticket: u64,
    waiting: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.waiting {
            self.turnstile.0.borrow_mut().waiting.retain(|(ticket, _)| *ticket != self.ticket);
            Turnstile::wake_first(&self.turnstile.0);
        }
    }
}

/// A turn; the next one begins when it is dropped.
pub(crate) struct Turn(Turnstile);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.borrow_mut().taken = false;
        Turnstile::wake_first(&self.0.0);
    }
}
