//! Failure propagation: telling the members of a group why it is broken.

use super::mailbox::FailureNotice;
use crate::client::state::State;
use futures_util::future::join_all;
use std::rc::Rc;
use wire::{GroupMessage, Message};
use world::World;

impl<W: World> State<W> {
    /// Sends a failure notice to its receivers. A task of its own sends it: the listener must not
    /// wait for a slow peer, and the caller may be dropped.
    pub(crate) fn propagate_failure(self: &Rc<Self>, notice: Option<FailureNotice>) {
        let Some(FailureNotice { group, fault, peers }) = notice else { return };
        let (world, client) = (self.world().clone(), Rc::downgrade(self));
        self.spawn(async move {
            let broken = GroupMessage::Broken { fault };
            let header: world::Header = wire::encode(&Message::Group(broken));
            let sends = peers.iter().map(|peer| {
                let message = world::Message::new(header.clone());
                world.send(*peer, message)
            });
            // A peer that has left needs no notice.
            join_all(sends).await;
            if let Some(client) = client.upgrade() {
                client.mailbox().notified(group);
            }
            Ok(())
        });
    }
}
