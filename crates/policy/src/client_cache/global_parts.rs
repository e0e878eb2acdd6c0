//! Parts of the clients' caches that one server manages (centrally coordinated caching).
//!
//! Invariants:
//! - No line is in two parts.
//! - A client has at most as many lines as it gave this server.

use super::cache::LineKey;
use crate::cache::Lru;
use std::collections::BTreeMap;
use units::PeerId;

/// Lines of the global parts, of all clients together.
#[derive(Clone, Debug, Default)]
pub(super) struct GlobalParts {
    /// Lines in the order of their last use, over all clients.
    order: Lru<LineKey>,
    places: BTreeMap<LineKey, PeerId>,
    /// Number of unused lines of each client.
    free: BTreeMap<PeerId, u32>,
}

impl GlobalParts {
    /// Adds the part of a client.
    pub(super) fn register(&mut self, client: PeerId, lines: u32) {
        self.free.insert(client, lines);
    }

    /// Removes the part of a client.
    pub(super) fn leave(&mut self, client: PeerId) {
        let order = &mut self.order;
        self.places.retain(|key, holder| {
            let stays = *holder != client;
            if !stays {
                order.remove(*key);
            }
            stays
        });
        self.free.remove(&client);
    }

    /// Returns the client that holds a line.
    pub(super) fn holder(&self, key: LineKey) -> Option<PeerId> {
        self.places.get(&key).copied()
    }

    /// Makes a line the most recent one.
    pub(super) fn touch(&mut self, key: LineKey) {
        self.order.touch(key);
    }

    /// Removes a line. Returns the client that held it.
    pub(super) fn remove(&mut self, key: LineKey) -> Option<PeerId> {
        let holder = self.places.remove(&key)?;
        self.order.remove(key);
        if let Some(free) = self.free.get_mut(&holder) {
            *free += 1;
        }
        Some(holder)
    }

    /// Finds a place for a line as the most recent one: an unused one of the client that has most,
    /// else that of the least recently used line. Returns the client and the line that leaves;
    /// `None` if a part holds the line already, or there is no part.
    pub(super) fn place(&mut self, key: LineKey) -> Option<(PeerId, Option<LineKey>)> {
        if self.places.contains_key(&key) {
            self.order.touch(key);
            return None;
        }
        // Of several clients with as many unused lines, the first.
        let most = self.free.iter().rev().max_by_key(|(_, free)| **free);
        let (client, replaced) = match most {
            Some((client, free)) if *free > 0 => (*client, None),
            _ => {
                let oldest = self.order.oldest()?;
                (self.remove(oldest)?, Some(oldest))
            }
        };
        if let Some(free) = self.free.get_mut(&client) {
            *free -= 1;
        }
        self.order.insert(key);
        self.places.insert(key, client);
        Some((client, replaced))
    }
}
