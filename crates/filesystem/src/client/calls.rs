//! Calls: requests that wait for their answers.
//!
//! Invariant: every call is answered, by its server or by the news that the server has left.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use units::ServerId;
use wire::{Fault, Reply, RequestId};

/// The calls of one client that are under way.
#[derive(Default)]
pub(crate) struct Calls {
    next: Cell<u64>,
    pending: RefCell<BTreeMap<RequestId, Pending>>,
    left: RefCell<BTreeMap<ServerId, String>>,
}

struct Pending {
    server: ServerId,
    answer: Option<Result<Reply, Fault>>,
    waiting: Option<Waker>,
}

/// One call; given up when dropped.
pub(crate) struct Call<'a> {
    calls: &'a Calls,
    id: RequestId,
}

impl Calls {
    /// Registers a call before its request is sent. Fails when the server is known to be gone.
    pub(crate) fn begin(&self, server: ServerId) -> Result<Call<'_>, Fault> {
        if let Some(cause) = self.left.borrow().get(&server) {
            return Err(Fault::ServerLeft { server, cause: cause.clone() });
        }
        let id = RequestId(self.next.get());
        self.next.set(id.0 + 1);
        self.pending.borrow_mut().insert(id, Pending { server, answer: None, waiting: None });
        Ok(Call { calls: self, id })
    }

    /// An answer has come; nobody may be waiting for it any more.
    pub(crate) fn answered(&self, id: RequestId, answer: Result<Reply, Fault>) {
        let waiting = match self.pending.borrow_mut().get_mut(&id) {
            Some(pending) => {
                pending.answer = Some(answer);
                pending.waiting.take()
            }
            None => None,
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// A server has left: its calls fail, those to come too.
    pub(crate) fn server_left(&self, server: ServerId, cause: &str) {
        self.left.borrow_mut().insert(server, cause.to_owned());
        let of_server: Vec<RequestId> = {
            let pending = self.pending.borrow();
            let unanswered = |call: &&Pending| call.server == server && call.answer.is_none();
            pending.iter().filter(|(_, call)| unanswered(call)).map(|(id, _)| *id).collect()
        };
        for id in of_server {
            self.answered(id, Err(Fault::ServerLeft { server, cause: cause.to_owned() }));
        }
    }

    /// The first server that is known to be gone.
    pub(crate) fn first_left(&self) -> Option<Fault> {
        let left = self.left.borrow();
        let (&server, cause) = left.first_key_value()?;
        Some(Fault::ServerLeft { server, cause: cause.clone() })
    }
}

impl Call<'_> {
    /// The number to send along.
    pub(crate) fn id(&self) -> RequestId {
        self.id
    }

    /// Waits for the answer.
    pub(crate) async fn answer(self) -> Result<Reply, Fault> {
        poll_fn(|context| {
            let mut pending = self.calls.pending.borrow_mut();
            let call = pending.get_mut(&self.id);
            let call = call.expect("a call stays registered until it is dropped");
            match call.answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => {
                    call.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.pending.borrow_mut().remove(&self.id);
    }
}
