//! Calls: requests that wait for their answers.
//!
//! Invariant: every call ends, with the answer of its server or with the fault for which the server
//! cannot be reached.

use crate::scale::NumberedQueue;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use units::ServerId;
use wire::{Fault, Reply, RequestId};

/// Active calls of one client. Answers may bring data of the kind `P`.
pub(super) struct Calls<P> {
    next: Cell<u64>,
    /// Active calls by number.
    pending: RefCell<NumberedQueue<RequestId, Pending<P>>>,
    /// Faults of calls to servers that have left or could not be reached.
    left: RefCell<BTreeMap<ServerId, Fault>>,
    /// Number that the next call had at the last search for silent servers.
    looked_at: Cell<u64>,
}

struct Pending<P> {
    server: ServerId,
    answer: Option<Answer<P>>,
    waiting: Option<Waker>,
}

/// Result of a call. Nearly all answers are `Done`; other answers are large.
pub(crate) enum Answer<P> {
    Done,
    Other(Box<Result<(Reply, Option<P>), Fault>>),
}

/// One call, which ends with its answer. Dropping it gives the call up.
pub(super) struct Call<'a, P> {
    calls: &'a Calls<P>,
    id: RequestId,
    is_answered: bool,
}

impl<P> Default for Calls<P> {
    fn default() -> Self {
        let (next, looked_at) = (Cell::default(), Cell::default());
        Self { next, pending: RefCell::default(), left: RefCell::default(), looked_at }
    }
}

impl<P> Calls<P> {
    /// Registers a call before its request is sent. Fails when the server is known to be gone.
    pub(super) fn begin(&self, server: ServerId) -> Result<Call<'_, P>, Fault> {
        match self.why_left(server) {
            Some(left) => Err(left),
            None => Ok(self.begin_anyway(server)),
        }
    }

    /// Registers a call of a server that may be gone for all others.
    pub(super) fn begin_anyway(&self, server: ServerId) -> Call<'_, P> {
        let id = RequestId(self.next.get());
        self.next.set(id.0 + 1);
        let call = Pending { server, answer: None, waiting: None };
        self.pending.borrow_mut().push(id, call);
        Call { calls: self, id, is_answered: false }
    }

    /// Ends a call with its answer. The caller may have given it up.
    pub(super) fn answered(&self, id: RequestId, answer: Answer<P>) {
        let mut pending = self.pending.borrow_mut();
        let Some(call) = pending.get_mut(id) else { return };
        call.answer = Some(answer);
        let waiting = call.waiting.take();
        drop(pending);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Fails all calls to a server that has left or could not be reached, and later ones.
    pub(super) fn server_left(&self, server: ServerId, fault: &Fault) {
        self.server_fails(server, fault.clone(), fault);
    }

    /// Fails all calls to a server that does not answer any more. Later calls fail as if it had
    /// left.
    pub(super) fn server_stalled(&self, server: ServerId, waited_ms: u64) {
        let stalled = Fault::ServerStalled { server, waited_ms };
        let later = Fault::ServerLeft { server, cause: stalled.to_string() };
        self.server_fails(server, later, &stalled);
    }

    /// Returns the servers that owed an answer at the last search and still owe it.
    pub(super) fn silent_since_last_look(&self) -> Vec<ServerId> {
        let before = self.looked_at.replace(self.next.get());
        let pending = self.pending.borrow();
        let old = pending.iter().filter(|(id, call)| id.0 < before && call.answer.is_none());
        let silent: BTreeSet<ServerId> = old.map(|(_, call)| call.server).collect();
        silent.into_iter().collect()
    }

    /// Returns the servers that owe an answer.
    pub(super) fn owing_servers(&self) -> BTreeSet<ServerId> {
        let pending = self.pending.borrow();
        pending
            .iter()
            .filter(|(_, call)| call.answer.is_none())
            .map(|(_, call)| call.server)
            .collect()
    }

    /// Fails all calls to a server with `fault`, and later ones with `later`.
    fn server_fails(&self, server: ServerId, later: Fault, fault: &Fault) {
        self.left.borrow_mut().entry(server).or_insert(later);
        let of_server: Vec<RequestId> = {
            let pending = self.pending.borrow();
            let unanswered = |call: &Pending<P>| call.server == server && call.answer.is_none();
            pending.iter().filter(|(_, call)| unanswered(call)).map(|(id, _)| id).collect()
        };
        for id in of_server {
            self.answered(id, Answer::Other(Box::new(Err(fault.clone()))));
        }
    }

    /// Notes that a server which had left is there again.
    pub(super) fn server_returned(&self, server: ServerId) {
        self.left.borrow_mut().remove(&server);
    }

    /// Tells if a server is known to have left.
    pub(super) fn has_left(&self, server: ServerId) -> bool {
        self.left.borrow().contains_key(&server)
    }

    /// Returns the fault of a server that is known to have left.
    pub(super) fn why_left(&self, server: ServerId) -> Option<Fault> {
        self.left.borrow().get(&server).cloned()
    }

    /// Returns the fault of the first server that is known to have left.
    pub(super) fn first_left(&self) -> Option<Fault> {
        self.left.borrow().values().next().cloned()
    }
}

impl<P> Call<'_, P> {
    /// Number of the call, which goes with its request.
    pub(super) fn id(&self) -> RequestId {
        self.id
    }
}

impl<P> Future for Call<'_, P> {
    type Output = Answer<P>;

    /// Must not be polled again after the answer.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer<P>> {
        let mut pending = self.calls.pending.borrow_mut();
        let call = pending.get_mut(self.id);
        let call = call.expect("a call stays registered until it is answered or dropped");
        if call.answer.is_none() {
            call.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        let call = pending.remove(self.id);
        drop(pending);
        self.is_answered = true;
        Poll::Ready(call.and_then(|call| call.answer).expect("its answer has just been seen"))
    }
}

impl<P> Answer<P> {
    /// Makes an answer of the reply of a server and the data that came with it.
    pub(crate) fn of(result: Result<Reply, Fault>, data: Option<P>) -> Self {
        match (result, data) {
            (Ok(Reply::Done), None) => Self::Done,
            (other, data) => Self::Other(Box::new(other.map(|reply| (reply, data)))),
        }
    }

    pub(crate) fn result(self) -> Result<(Reply, Option<P>), Fault> {
        match self {
            Self::Done => Ok((Reply::Done, None)),
            Self::Other(result) => *result,
        }
    }
}

impl<P> Drop for Call<'_, P> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let given_up = self.calls.pending.borrow_mut().remove(self.id);
        // Outside the borrow: dropping a call may drop the task that waits for it.
        drop(given_up);
    }
}
