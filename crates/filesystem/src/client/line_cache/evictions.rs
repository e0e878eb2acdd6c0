//! Lines that leave a client's cache.

use super::cache::{Leaving, LineCache, LinePart, Lines};
use crate::client::state::Client;
use policy::{Cooperation, LineKey};
use std::rc::Rc;
use units::PeerId;
use wire::{CacheRequest, Fault, LineName, LineTaker, Message, Reply, SentLine};
use world::{Address, NetworkError, Payload, World};

impl<W: World> LineCache<W> {
    /// Uses a line, if the cache has it and it is long enough. A line on its way out comes back.
    pub(super) fn use_held(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
    ) -> Option<W::Payload> {
        let lines = &mut *self.lines.borrow_mut();
        let key = part.key;
        if let Some(held) = lines.held.get(&key) {
            if held.line.length() < part.range.end {
                return None;
            }
            let line = held.line.clone();
            lines.policy.touch(key);
            return Some(line);
        }
        if lines.leaving.get(&key)?.line.length() < part.range.end {
            return None;
        }
        let Leaving { line, server, is_dirty, .. } = lines.leaving.remove(&key)?;
        let evicted = lines.insert(key, line.clone(), server, true);
        lines.policy.set_dirty(key, is_dirty);
        self.left.notify();
        if let Some((key, evicted)) = evicted {
            self.begin_eviction(client, lines, key, evicted);
        }
        Some(line)
    }

    /// Begins to do with an evicted line what its state and the cooperation ask for.
    pub(super) fn begin_eviction(
        self: &Rc<Self>,
        client: &Client<W>,
        lines: &mut Lines<W::Payload>,
        key: LineKey,
        evicted: Leaving<W::Payload>,
    ) {
        let asks = match self.spec.cooperation {
            Cooperation::GloballyManaged | Cooperation::NChance => true,
            Cooperation::Base
            | Cooperation::GreedyForwarding
            | Cooperation::CentrallyCoordinated => evicted.is_dirty,
        };
        if !asks {
            return self.note_dropped(lines, evicted.server, key);
        }
        lines.leaving.insert(key, evicted);
        // A client that is dropped does not wait for its lines: flush them first.
        let (cache, weak) = (Rc::clone(self), Rc::downgrade(&client.0));
        client.0.spawn(async move {
            let _turn = cache.locks.turn(key).await;
            let Some(client) = weak.upgrade().map(Client) else { return Ok(()) };
            let evicted = cache.evict(&client, key).await;
            let was_dirty = {
                let lines = &mut *cache.lines.borrow_mut();
                lines.expected.remove(&key);
                lines.leaving.remove(&key).is_some_and(|leaving| leaving.is_dirty)
            };
            // A clean line is lost to this cache only.
            if let Err(fault) = evicted
                && was_dirty
            {
                cache.keep_fault(key.0, fault);
            }
            cache.left.notify();
            Ok(())
        });
    }

    /// Moves an evicted line to where it goes, unless it has come back or is obsolete.
    async fn evict(&self, client: &Client<W>, key: LineKey) -> Result<(), Fault> {
        let Some(Leaving { line, server, is_dirty, chances }) = self.leaving(key) else {
            return Ok(());
        };
        if is_dirty {
            return self.send_back(client, (key, server), false, line).await;
        }
        let name = LineName { file: key.0, line: key.1 };
        let goes_to_server = self.spec.cooperation == Cooperation::GloballyManaged;
        let request = CacheRequest::Evict { line: name, chances };
        let body = goes_to_server.then_some(line);
        let (reply, _) = client.call_with_data(server, request, body).await?;
        // It may have been invalidated while the server answered.
        if let Reply::SendLine(LineTaker { address, ticket, number }) = reply
            && let Some(Leaving { line, .. }) = self.leaving(key)
        {
            let sent = SentLine::Evicted { ticket, number, line: name };
            // The receiver drops what it expects with its next request about the line.
            let _ = self.send_to_client(client.world(), &address, sent, line).await;
        }
        Ok(())
    }

    fn leaving(&self, key: LineKey) -> Option<Leaving<W::Payload>> {
        let lines = self.lines.borrow();
        let Leaving { line, server, is_dirty, chances } = lines.leaving.get(&key)?;
        let (line, server, is_dirty, chances) = (line.clone(), *server, *is_dirty, *chances);
        Some(Leaving { line, server, is_dirty, chances })
    }

    /// Sends a line to another client.
    pub(super) async fn send_to_client(
        &self,
        world: &W,
        address: &str,
        sent: SentLine,
        line: W::Payload,
    ) -> Result<(), NetworkError> {
        let peer = self.connect(world, address).await?;
        let header = wire::encode(&Message::SentLine(sent));
        world.send(peer, world::Message::with_body(header, line)).await
    }

    /// Returns the connection to another client, and makes it first if there is none.
    async fn connect(&self, world: &W, address: &str) -> Result<PeerId, NetworkError> {
        loop {
            if let Some(peer) = self.peers.borrow().get(address) {
                return Ok(*peer);
            }
            if self.connecting.borrow_mut().insert(address.to_owned()) {
                let _ended = Connecting { cache: self, address };
                let peer = world.connect(&Address(address.to_owned())).await?;
                self.peers.borrow_mut().insert(address.to_owned(), peer);
                return Ok(peer);
            }
            let has_ended = || (!self.connecting.borrow().contains(address)).then_some(());
            self.connected.until(has_ended).await;
        }
    }
}

/// Attempt to connect. Over when dropped.
struct Connecting<'a, W: World> {
    cache: &'a LineCache<W>,
    address: &'a str,
}

impl<W: World> Drop for Connecting<'_, W> {
    fn drop(&mut self) {
        self.cache.connecting.borrow_mut().remove(self.address);
        self.cache.connected.notify();
    }
}
