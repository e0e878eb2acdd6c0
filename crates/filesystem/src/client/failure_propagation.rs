//! How a client tells others of its groups why those are broken.

use super::mailbox::FailureNotice;
use super::state::State;
use futures_util::future::join_all;
use std::rc::Rc;
use wire::{GroupMessage, Message};
use world::World;

impl<W: World> State<W> {
    /// Begins to tell all whom the news are for. It is a task of its own, because whoever listens
    /// must not wait for a slow peer, and whoever finds a group broken may give up waiting.
    pub(super) fn propagate_failure(self: &Rc<Self>, notice: Option<FailureNotice>) {
        let Some(FailureNotice { group, fault, peers }) = notice else { return };
        let (world, client) = (self.world.clone(), Rc::downgrade(self));
        self.listening.spawn(async move {
            let broken = GroupMessage::Broken { fault };
            let header: world::Header = wire::encode(&Message::Group(broken));
            let sends = peers.iter().map(|peer| {
                let message = world::Message::new(header.clone());
                world.send(*peer, message)
            });
            // One that is gone already need not be told.
            join_all(sends).await;
            if let Some(client) = client.upgrade() {
                client.mailbox.notified(group);
            }
            Ok(())
        });
    }
}
