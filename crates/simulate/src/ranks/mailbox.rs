//! Messages of ranks that have arrived, and receivers that wait for them.

use program::Stream;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Messages that have arrived at one rank. The n-th receiver of a stream gets its n-th message.
#[derive(Clone, Default)]
pub(super) struct Mailbox(Rc<RefCell<BTreeMap<(u32, Stream), Line>>>);

/// One stream from one sender.
#[derive(Default)]
struct Line {
    /// Receivers so far.
    receivers: u64,
    /// Bytes of the messages that nobody has received, by their number.
    arrived: BTreeMap<u64, u64>,
    /// Messages so far.
    messages: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Mailbox {
    /// Puts a message into the mailbox.
    pub(super) fn deliver(&self, from: u32, stream: Stream, bytes: u64) {
        let mut lines = self.0.borrow_mut();
        let line = lines.entry((from, stream)).or_default();
        let number = line.messages;
        line.messages += 1;
        line.arrived.insert(number, bytes);
        if let Some(waker) = line.waiting.remove(&number) {
            waker.wake();
        }
    }

    /// Waits for the next message of a stream; returns its bytes.
    pub(super) fn receive(&self, from: u32, stream: Stream) -> Receiving {
        Receiving { mailbox: self.clone(), key: (from, stream), number: None }
    }
}

/// Future of one message. It takes its place in the line when it is first polled.
pub(super) struct Receiving {
    mailbox: Mailbox,
    key: (u32, Stream),
    number: Option<u64>,
}

impl Future for Receiving {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let lines = Rc::clone(&self.mailbox.0);
        let mut lines = lines.borrow_mut();
        let line = lines.entry(self.key).or_default();
        let number = *self.number.get_or_insert_with(|| {
            line.receivers += 1;
            line.receivers - 1
        });
        let Some(bytes) = line.arrived.remove(&number) else {
            line.waiting.insert(number, context.waker().clone());
            return Poll::Pending;
        };
        // A stream without messages and receivers can begin again.
        if line.messages == line.receivers && line.arrived.is_empty() && line.waiting.is_empty() {
            lines.remove(&self.key);
        }
        Poll::Ready(bytes)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: receivers get the messages of a stream in order, whether they or the messages come
    //! first, and a stream that has ended leaves nothing.
    use super::*;
    use futures_util::FutureExt;
    use program::Manner;

    const STREAM: Stream = Stream { communicator: 0, tag: 7, manner: Manner::Data };

    #[test]
    fn messages_are_received_in_order() {
        let mailbox = Mailbox::default();
        mailbox.deliver(1, STREAM, 10);
        let (mut first, mut second) = (mailbox.receive(1, STREAM), mailbox.receive(1, STREAM));
        assert_eq!((&mut first).now_or_never(), Some(10));
        assert_eq!((&mut second).now_or_never(), None);
        mailbox.deliver(2, STREAM, 11);
        assert_eq!((&mut second).now_or_never(), None, "it is of another sender");
        mailbox.deliver(1, STREAM, 12);
        assert_eq!((&mut second).now_or_never(), Some(12));
        assert_eq!(mailbox.0.borrow().len(), 1, "the message of rank 2");
    }
}
