//! Helpers of the cases: signals between tasks, guards that observe a drop, recognisable bytes, and
//! connected nodes.

use super::{Fixture, PayloadOf};
use crate::{Clock, Header, Incoming, Message, Payload, World};
use futures_util::future::join;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{Duration, PeerId, SplitMix64};

/// Number of turns that [`eventually`] gives the world before it fails.
const TURNS_MAX: usize = 100;

/// Lists the cases of a file, each under the path of its function.
macro_rules! list_cases {
    ($($name:ident),* $(,)?) => {
        /// Returns the cases of this file.
        pub(super) fn cases<F: super::Fixture>() -> Vec<super::Case<F>> {
            vec![$((concat!(module_path!(), "::", stringify!($name)), $name::<F>)),*]
        }
    };
}
pub(super) use list_cases;

/// An event that happens once, for which any number of tasks can wait. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Signal(Rc<RefCell<SignalState>>);

#[derive(Default)]
struct SignalState {
    set: bool,
    waiting: Vec<Waker>,
}

impl Signal {
    /// Sets the signal and wakes all waiting tasks.
    pub(super) fn set(&self) {
        let waiting = {
            let mut state = self.0.borrow_mut();
            state.set = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// True once the signal is set.
    pub(super) fn is_set(&self) -> bool {
        self.0.borrow().set
    }

    /// Completes once the signal is set.
    pub(super) fn wait(&self) -> impl Future<Output = ()> + 'static {
        let state = Rc::clone(&self.0);
        poll_fn(move |context| {
            let mut state = state.borrow_mut();
            if state.set {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
    }
}

/// Sets its signal when it is dropped.
pub(super) struct Guard(pub(super) Signal);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// A list to which several tasks append. Clones are the same list.
pub(super) struct Log<T>(Rc<RefCell<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Rc::default())
    }
}

impl<T> Log<T> {
    /// Appends an entry.
    pub(super) fn push(&self, entry: T) {
        self.0.borrow_mut().push(entry);
    }

    /// Number of entries.
    pub(super) fn length(&self) -> usize {
        self.0.borrow().len()
    }

    /// Takes all entries; the list is empty afterwards.
    pub(super) fn take(&self) -> Vec<T> {
        self.0.take()
    }
}

/// Lets the world turn until `condition` holds. Panics with `what` if it never does.
pub(super) async fn eventually<C: Clock>(clock: &C, what: &str, condition: impl Fn() -> bool) {
    for _ in 0..TURNS_MAX {
        if condition() {
            return;
        }
        turn(clock).await;
    }
    panic!("this must happen within {TURNS_MAX} turns of the world: {what}");
}

/// Lets every task that is ready run.
pub(super) async fn turn<C: Clock>(clock: &C) {
    clock.sleep(Duration::from_us(10)).await;
}

/// Waits for one further poll, however late this task runs: a short sleep may end at once.
pub(super) async fn wait_for_next_poll() {
    let mut is_second = false;
    poll_fn(move |context: &mut Context<'_>| {
        if std::mem::replace(&mut is_second, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls once and drops the future. Returns true if it was ready.
pub(super) async fn abandon(future: impl Future) -> bool {
    let mut future = std::pin::pin!(future);
    poll_fn(move |context: &mut Context<'_>| Poll::Ready(future.as_mut().poll(context).is_ready()))
        .await
}

/// Returns `length` bytes, none of them zero, that differ between seeds and between places.
pub(super) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    (0..length).map(|_| (numbers.below(255) + 1) as u8).collect()
}

/// A reproducible sequence of numbers.
pub(super) struct Numbers(SplitMix64);

impl Numbers {
    /// Creates the sequence of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Returns the next number of `0 .. limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }
}

/// Panics unless the payload has these bytes (or as many, where none are stored).
pub(super) fn expect_bytes<F: Fixture>(payload: &PayloadOf<F>, expected: &[u8], what: &str) {
    assert_eq!(payload.length(), expected.len() as u64, "length of {what}");
    let Some(bytes) = F::read_back(payload) else { return };
    assert_eq!(bytes.len(), expected.len(), "length of {what}, read back");
    let differing = (0..bytes.len()).find(|&index| bytes[index] != expected[index]);
    if let Some(index) = differing {
        let (got, wanted) = (bytes[index], expected[index]);
        panic!("byte {index} of {what} must be {wanted}, not {got}");
    }
}

/// Returns the first two nodes of a world.
pub(super) fn two<W>(worlds: Vec<W>) -> (W, W) {
    let mut worlds = worlds.into_iter();
    match (worlds.next(), worlds.next()) {
        (Some(first), Some(second)) => (first, second),
        _ => panic!("the fixture must make as many nodes as it is asked for"),
    }
}

/// Creates a header of these bytes.
pub(super) fn header(bytes: &[u8]) -> Header {
    Header::from_slice(bytes)
}

/// Connects `caller` to `callee`. Returns the number of the connection at the caller, and at the
/// callee.
pub(super) async fn meet<W: World>(caller: &W, callee: &W) -> (PeerId, PeerId) {
    let address = callee.address();
    let calling = async {
        let callee = caller.connect(&address).await.expect("a node must accept connections");
        let hello = Message::new(header(b"hello"));
        caller.send(callee, hello).await.expect("a new connection must carry messages");
        callee
    };
    let (callee_of_caller, incoming) = join(calling, callee.receive()).await;
    let (caller_of_callee, hello, body) = expect_message(incoming);
    assert_eq!(hello, header(b"hello"), "the first message must arrive first");
    assert!(body.is_none(), "a message without a body must arrive without one");
    (callee_of_caller, caller_of_callee)
}

/// Returns the message that must have come.
pub(super) fn expect_message<P>(incoming: Incoming<P>) -> (PeerId, Header, Option<P>) {
    match incoming {
        Incoming::Message { from, header, body } => (from, header, body),
        Incoming::Departed { peer, cause } => {
            panic!("a message must come, but {peer} departed: {cause}")
        }
    }
}

/// Returns the departure that must have come.
pub(super) fn expect_departure<P>(incoming: Incoming<P>) -> PeerId {
    match incoming {
        Incoming::Departed { peer, .. } => peer,
        Incoming::Message { from, header, .. } => {
            panic!("a departure must come, not a message of {from}: {header:?}")
        }
    }
}
