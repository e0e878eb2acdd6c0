//! What has arrived and waits for the program.
//!
//! Invariants: order of arrival is kept; a connection adds nothing while more than
//! [`INBOX_MESSAGES_MAX`] of its messages, or more than [`INBOX_BYTES_MAX`] of their bytes, wait,
//! except the word that it ended. So a program that stops receiving stops its senders.

use super::connection::Connection;
use crate::memory::RealPayload;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use world::Incoming;

/// The queue of one node.
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
    /// The connection it came over.
    from: Rc<Connection>,
    /// Bytes that it keeps busy.
    bytes: u64,
}

impl Inbox {
    /// Adds something that came over `from` and keeps `bytes` busy.
    pub(crate) fn push(&self, from: &Rc<Connection>, incoming: Incoming<RealPayload>, bytes: u64) {
        from.backlog.add(bytes);
        let mut state = self.state.borrow_mut();
        state.entries.push_back(Entry { incoming, from: Rc::clone(from), bytes });
        if let Some(waker) = state.waiting.take() {
            drop(state);
            waker.wake();
        }
    }

    /// The next thing, when there is one. One task at a time may wait.
    pub(crate) async fn next(&self) -> Incoming<RealPayload> {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            match state.entries.pop_front() {
                Some(Entry { incoming, from, bytes }) => {
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

    /// Drops everything that came over `from`.
    pub(crate) fn forget(&self, from: &Rc<Connection>) {
        self.state.borrow_mut().entries.retain(|entry| !Rc::ptr_eq(&entry.from, from));
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        let entries = std::mem::take(&mut self.state.borrow_mut().entries);
        drop(entries);
    }
}
