//! Receive queue of a node.
//!
//! Invariants:
//!
//! - Messages keep their order of arrival.
//! - The reader of a connection waits while its [`Backlog`](super::backlog::Backlog) is full, so a
//!   program that stops receiving stops its senders. Only the notice of a departure is always
//!   added.

use super::connection::Connection;
use super::receive_pool::Room;
use crate::memory::RealPayload;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use world::Incoming;

/// Receive queue of one node.
#[derive(Default)]
pub(crate) struct Inbox {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    waiting: Option<Waker>,
}

struct Entry {
    incoming: Incoming<RealPayload>,
    /// Connection that the entry came over.
    from: Rc<Connection>,
    /// Bytes that the entry occupies.
    bytes: u64,
    /// Room that it has taken for them.
    #[expect(dead_code, reason = "returned when the entry is received or dropped")]
    room: Option<Room>,
}

impl Inbox {
    /// Adds an entry that came over `from` and occupies `bytes`, perhaps in `room`.
    pub(crate) fn push(
        &self,
        from: &Rc<Connection>,
        incoming: Incoming<RealPayload>,
        bytes: u64,
        room: Option<Room>,
    ) {
        from.backlog.add(bytes);
        let mut state = self.state.borrow_mut();
        state.entries.push_back(Entry { incoming, from: Rc::clone(from), bytes, room });
        if let Some(waker) = state.waiting.take() {
            drop(state);
            waker.wake();
        }
    }

    /// Returns the next entry, when there is one. One task at a time may wait.
    pub(crate) async fn next(&self) -> Incoming<RealPayload> {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            match state.entries.pop_front() {
                Some(Entry { incoming, from, bytes, .. }) => {
                    drop(state);
                    from.backlog.remove(bytes);
                    Poll::Ready(incoming)
                }
                None => {
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Drops all entries that came over `from`.
    pub(crate) fn forget(&self, from: &Rc<Connection>) {
        self.state.borrow_mut().entries.retain(|entry| !Rc::ptr_eq(&entry.from, from));
    }

    /// Drops all entries.
    pub(crate) fn clear(&self) {
        let entries = std::mem::take(&mut self.state.borrow_mut().entries);
        drop(entries);
    }
}
