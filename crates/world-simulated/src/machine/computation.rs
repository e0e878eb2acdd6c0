//! Computations of a node's own program, which its messages and transfers interrupt, and which
//! share the cores of its host with other nodes, and waits that use a core.

use super::node::Node;
use crate::engine::{Engine, Sleep};
use crate::host_member::HostMember;
use crate::models::host::ComputationId;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::{Duration, Instant};
use world::payload::Kind;

/// Future of a computation. Dropping it ends the computation.
pub(super) struct Computing<P: Kind> {
    engine: Engine,
    node: Rc<Node<P>>,
    length: Duration,
    begun: Option<(HostMember, ComputationId)>,
    /// Sleep until the end, as it was when the task last looked.
    sleep: Option<(Instant, Sleep)>,
}

impl<P: Kind> Computing<P> {
    pub(super) fn new(engine: Engine, node: Rc<Node<P>>, length: Duration) -> Self {
        Self { engine, node, length, begun: None, sleep: None }
    }
}

impl<P: Kind> Future for Computing<P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let now = this.engine.now();
        let (node, length) = (&this.node, this.length);
        let (member, id) = this.begun.get_or_insert_with(|| {
            let member = node.host_member();
            let id = member.begin(now, length);
            (member, id)
        });
        while let Some(end) = member.end_of(now, *id) {
            // Timers cannot be taken back. With a new one at each look, each would cause a look,
            // and that one more.
            let is_same = this.sleep.as_ref().is_some_and(|(until, _)| *until == end);
            if !is_same {
                this.sleep = Some((end, this.engine.sleep_until(end)));
            }
            let Some((_, sleep)) = &mut this.sleep else { continue };
            if Pin::new(sleep).poll(context).is_pending() {
                member.wait(*id, this.engine.wakeup(context.waker()));
                return Poll::Pending;
            }
        }
        member.end(&this.engine, *id);
        this.begun = None;
        Poll::Ready(())
    }
}

impl<P: Kind> Drop for Computing<P> {
    fn drop(&mut self) {
        if let Some((member, id)) = self.begun.take() {
            member.end(&self.engine, id);
        }
    }
}

/// Use of a core by a node that waits, until this is dropped.
pub struct Polling {
    engine: Engine,
    member: HostMember,
}

impl Polling {
    pub(super) fn new<P: Kind>(engine: Engine, node: &Node<P>) -> Self {
        let member = node.host_member();
        member.begin_polling(engine.now());
        Self { engine, member }
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.member.end_polling(&self.engine);
    }
}
