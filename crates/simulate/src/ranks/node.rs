//! Computation of a rank on its node, and its messages to other ranks.

use super::mailbox::Mailbox;
use filesystem::Fault;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use program::Stream;
use std::convert::Infallible;
use std::rc::Rc;
use units::Duration;
use world::payload::Kind;
use world::{Clock, Scope};
use world_simulated::SimulatedWorld;

/// Call of a rank under way.
pub(crate) type Call = LocalBoxFuture<'static, Result<(), Fault>>;

/// Mailboxes of all ranks.
#[derive(Clone)]
pub(crate) struct Mailboxes(Rc<[Mailbox]>);

/// Node of one rank.
pub(crate) struct Node<P: Kind> {
    pub(crate) rank: u32,
    pub(crate) world: SimulatedWorld<P>,
    /// Node of rank 0: ranks follow the servers.
    first: u32,
    mailboxes: Mailboxes,
    /// Messages on their way.
    travelling: Rc<Scope<SimulatedWorld<P>, Infallible>>,
}

impl Mailboxes {
    pub(crate) fn of(ranks: u32) -> Self {
        Self((0..ranks).map(|_| Mailbox::default()).collect())
    }
}

impl<P: Kind> Node<P> {
    pub(crate) fn new(
        (rank, first): (u32, u32),
        world: SimulatedWorld<P>,
        mailboxes: Mailboxes,
    ) -> Self {
        let travelling = Rc::new(Scope::new(world.clone()));
        Self { rank, world, first, mailboxes, travelling }
    }

    /// Number of the node of a rank.
    pub(super) fn of(&self, rank: u32) -> u32 {
        self.first + rank
    }

    pub(super) async fn compute(&self, time: Duration) {
        self.world.compute_as_program(time).await;
    }

    pub(super) async fn block(&self, time: Duration) {
        self.world.sleep(time).await;
    }

    pub(crate) fn send(&self, to: u32, stream: Stream, bytes: u64) -> Call {
        let (world, travelling) = (self.world.clone(), Rc::clone(&self.travelling));
        let target = self.mailboxes.0[to as usize].clone();
        let (node, message) = (self.of(to), (self.rank, stream, bytes));
        async move {
            post(world, travelling, target, node, message).await;
            Ok(())
        }
        .boxed_local()
    }

    pub(super) fn receive(&self, from: u32, stream: Stream) -> Call {
        self.receive_bytes(from, stream).map(|received| received.map(|_| ())).boxed_local()
    }

    /// Receives a message, and returns its bytes.
    pub(crate) fn receive_bytes(
        &self,
        from: u32,
        stream: Stream,
    ) -> LocalBoxFuture<'static, Result<u64, Fault>> {
        let world = self.world.clone();
        let receiving = self.mailboxes.0[self.rank as usize].receive(from, stream);
        async move {
            let bytes = receiving.await;
            world.receive_as_program(bytes).await;
            Ok(bytes)
        }
        .boxed_local()
    }
}

/// Sends a message to node `to`: the processor of the sender copies it, the network carries it.
async fn post<P: Kind>(
    world: SimulatedWorld<P>,
    travelling: Rc<Scope<SimulatedWorld<P>, Infallible>>,
    target: Mailbox,
    to: u32,
    (from, stream, bytes): (u32, Stream, u64),
) {
    world.send_as_program(to, bytes).await;
    let carrying = world.clone();
    travelling.spawn(async move {
        carrying.carry_as_program(to, bytes).await;
        target.deliver(from, stream, bytes);
        Ok(())
    });
}
