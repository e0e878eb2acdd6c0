//! Flow control between one connection and the inbox of its node.
//!
//! Invariant: the reader of a connection adds nothing while more than [`INBOX_MESSAGES_MAX`] of its
//! messages, or more than [`INBOX_BYTES_MAX`] of their bytes, wait.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Maximum number of messages of one connection in the inbox.
const INBOX_MESSAGES_MAX: usize = 4096;

/// Maximum bytes of the messages of one connection in the inbox, without the last message.
const INBOX_BYTES_MAX: u64 = 1 << 20;

/// Receive window of one connection: the messages, and their bytes, that wait in the inbox.
#[derive(Default)]
pub(crate) struct Backlog {
    state: RefCell<BacklogState>,
}

#[derive(Default)]
struct BacklogState {
    messages: usize,
    bytes: u64,
    waiting: Option<Waker>,
}

impl BacklogState {
    fn has_room(&self) -> bool {
        self.messages < INBOX_MESSAGES_MAX && self.bytes < INBOX_BYTES_MAX
    }
}

impl Backlog {
    /// Counts a message of `bytes` bytes that entered the inbox.
    pub(super) fn add(&self, bytes: u64) {
        let mut state = self.state.borrow_mut();
        state.messages += 1;
        state.bytes += bytes;
    }

    /// Counts a message of `bytes` bytes that left the inbox; wakes the reader when there is room.
    pub(super) fn remove(&self, bytes: u64) {
        let mut state = self.state.borrow_mut();
        state.messages -= 1;
        state.bytes -= bytes;
        let waiting = if state.has_room() { state.waiting.take() } else { None };
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Waits until more may be added. Only the reader task of the connection waits here.
    pub(crate) async fn room(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.has_room() {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
