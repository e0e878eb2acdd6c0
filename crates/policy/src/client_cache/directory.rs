//! Directory of a server: the clients that hold copies of its lines.
//!
//! The caller serializes operations on one line. It carries the answers out before the next one.
//!
//! Invariants:
//! - A client that holds a line is in the directory. (It may be there for a line that it dropped.)
//!   It is there until it has dropped the line, not only until it is told to.
//! - A line with an owner has no other holder.
//! - Under globally managed caching a line has one holder.
//! - Under centrally coordinated caching no line is in two global parts.

use super::cache::LineKey;
use super::former_places::FormerPlaces;
use super::global_parts::GlobalParts;
use super::spec::Cooperation;
use std::collections::{BTreeMap, BTreeSet};
use units::PeerId;

/// Clients that hold the lines of one server.
#[derive(Clone, Debug)]
pub struct Directory {
    cooperation: Cooperation,
    /// Moves of an unused last copy under [`Cooperation::NChance`].
    chances: u32,
    clients: BTreeSet<PeerId>,
    lines: BTreeMap<LineKey, Holders>,
    global: GlobalParts,
    former: FormerPlaces,
    /// Lines that are being written back.
    written_back: BTreeSet<LineKey>,
}

#[derive(Clone, Debug, Default)]
struct Holders {
    /// Clients with a copy, in the order in which they got it.
    clients: Vec<PeerId>,
    /// Client that may write the line without asking.
    owner: Option<PeerId>,
}

/// Place where a read finds a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineSource {
    /// The reader's own memory: the server has just sent the line there.
    Reader,
    /// The server's cache.
    ServerCache,
    /// The cache of this client, which sends the line to the reader.
    Client(PeerId),
    /// The disk.
    Disk,
}

/// Fate of a line that a client evicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineFate {
    /// It is dropped.
    Drop,
    /// It goes to the server's cache.
    ToServer,
    /// It goes to this client, with this many moves left.
    ToClient(PeerId, u32),
}

/// Place for a line that the server evicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Client whose global part takes the line.
    pub client: PeerId,
    /// Line of that part that is dropped for it.
    pub replaces: Option<LineKey>,
}

impl Directory {
    /// Directory without clients.
    pub fn new(cooperation: Cooperation, chances: u32) -> Self {
        Self {
            cooperation,
            chances,
            clients: BTreeSet::new(),
            lines: BTreeMap::new(),
            global: GlobalParts::default(),
            former: FormerPlaces::default(),
            written_back: BTreeSet::new(),
        }
    }

    /// Cooperation of the caches.
    pub fn cooperation(&self) -> Cooperation {
        self.cooperation
    }

    /// Moves of an unused last copy under [`Cooperation::NChance`].
    pub fn chances(&self) -> u32 {
        self.chances
    }

    /// Adds a client that gives this server `global_lines` lines of its cache to manage.
    pub fn register(&mut self, client: PeerId, global_lines: u32) {
        self.clients.insert(client);
        self.global.register(client, global_lines);
    }

    /// Removes a client that has left, with all its copies.
    pub fn leave(&mut self, client: PeerId) {
        self.clients.remove(&client);
        self.global.leave(client);
        self.former.leave(client);
        self.lines.retain(|_, holders| {
            holders.remove(client);
            !holders.clients.is_empty()
        });
    }

    /// Tells if a client is registered.
    pub fn has(&self, client: PeerId) -> bool {
        self.clients.contains(&client)
    }

    /// Number of registered clients.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Returns another client that owns a line. It must write the line back before anything else
    /// is done with it.
    pub fn other_owner(&self, client: PeerId, key: LineKey) -> Option<PeerId> {
        self.lines.get(&key)?.owner.filter(|owner| *owner != client)
    }

    /// Tells if a client owns a line.
    pub fn is_owner(&self, client: PeerId, key: LineKey) -> bool {
        self.lines.get(&key).is_some_and(|holders| holders.owner == Some(client))
    }

    /// Tells where `reader`, which does not hold a line, finds it. `in_server` is true if the
    /// server's cache has it.
    pub fn read(&mut self, reader: PeerId, key: LineKey, in_server: bool) -> LineSource {
        self.forget(reader, key);
        // The last one to get it drops it last.
        let last = self.lines.get(&key).and_then(|holders| holders.clients.last()).copied();
        match (self.cooperation, last) {
            // The one copy moves. The server has another one only after a write.
            (Cooperation::GloballyManaged, Some(holder)) => LineSource::Client(holder),
            _ if in_server => LineSource::ServerCache,
            (Cooperation::GreedyForwarding | Cooperation::NChance, Some(holder)) => {
                LineSource::Client(holder)
            }
            (Cooperation::CentrallyCoordinated, _) => self.read_global(reader, key),
            (
                Cooperation::Base
                | Cooperation::GreedyForwarding
                | Cooperation::GloballyManaged
                | Cooperation::NChance,
                _,
            ) => LineSource::Disk,
        }
    }

    fn read_global(&mut self, reader: PeerId, key: LineKey) -> LineSource {
        match self.global.holder(key) {
            Some(holder) if holder == reader => LineSource::Reader,
            Some(holder) => {
                self.global.touch(key);
                LineSource::Client(holder)
            }
            None => LineSource::Disk,
        }
    }

    /// Notes that a client that was to send a line does not have it.
    pub fn missing(&mut self, holder: PeerId, key: LineKey) {
        self.forget(holder, key);
        if self.global.holder(key) == Some(holder) {
            self.global.remove(key);
        }
    }

    /// Notes that a client has got a line from `source`. Returns true if the copy at the source
    /// moved: the server's cache or the client must not keep it.
    pub fn has_read(&mut self, reader: PeerId, key: LineKey, source: LineSource) -> bool {
        let moves = self.cooperation == Cooperation::GloballyManaged;
        let holders = self.lines.entry(key).or_default();
        if moves && let LineSource::Client(from) = source {
            holders.remove(from);
        }
        holders.add(reader);
        moves
    }

    /// Tells if a client is the only one that holds a line.
    pub fn is_last_copy(&self, client: PeerId, key: LineKey) -> bool {
        let holders = self.lines.get(&key).map_or(&[][..], |holders| &holders.clients);
        holders == [client]
    }

    /// Returns the clients whose copies a write by `writer` invalidates, and forgets these copies.
    /// `keeps` is true if the writer has a copy with the new bytes afterwards.
    pub fn write(&mut self, writer: PeerId, key: LineKey, keeps: bool) -> Vec<PeerId> {
        let holders = self.lines.remove(&key).unwrap_or_default();
        let mut stale: BTreeSet<PeerId> = holders.clients.into_iter().collect();
        // A client may be about to take older bytes into a place that another line takes after it.
        stale.extend(self.former.holders(key));
        stale.remove(&writer);
        // A global part is not updated, not even the writer's.
        stale.extend(self.global.remove(key));
        if keeps && !stale.contains(&writer) {
            self.lines.entry(key).or_default().add(writer);
        }
        stale.into_iter().collect()
    }

    /// Makes a client the owner of a line. Returns the clients whose copies are invalid now: also
    /// its own, before it gets the right, if it has one in its global part.
    pub fn own(&mut self, client: PeerId, key: LineKey) -> Vec<PeerId> {
        let stale = self.write(client, key, true);
        let holders = self.lines.entry(key).or_default();
        holders.add(client);
        holders.owner = Some(client);
        stale
    }

    /// Notes that the bytes of a line in the server's cache are obsolete until
    /// [`end_write_back`](Self::end_write_back), whatever becomes of the owner.
    pub fn begin_write_back(&mut self, key: LineKey) {
        self.written_back.insert(key);
    }

    /// Notes that the server's cache has the bytes of the owner of a line, or will not get any.
    pub fn end_write_back(&mut self, key: LineKey) {
        self.written_back.remove(&key);
    }

    /// Notes that a client has written a line back. Returns false if it is not the owner: then
    /// its bytes are obsolete. It stays a holder if it `keeps` the line.
    pub fn written_back(&mut self, client: PeerId, key: LineKey, keeps: bool) -> bool {
        let Some(holders) = self.lines.get_mut(&key) else { return false };
        if holders.owner != Some(client) {
            return false;
        }
        holders.owner = None;
        if !keeps {
            self.forget(client, key);
        }
        true
    }

    /// Notes that a client has dropped a line from its own part. An owner has written it back
    /// before, and the server may still be busy with that: it stays a holder.
    pub fn dropped(&mut self, client: PeerId, key: LineKey) {
        if !self.is_owner(client, key) {
            self.forget(client, key);
        }
    }

    fn forget(&mut self, client: PeerId, key: LineKey) {
        if let Some(holders) = self.lines.get_mut(&key) {
            holders.remove(client);
            if holders.clients.is_empty() {
                self.lines.remove(&key);
            }
        }
    }

    /// Decides about a clean line that a client evicts, with the moves that were left to it, and
    /// notes where it goes. `draw` is a random number.
    pub fn evicted(
        &mut self,
        client: PeerId,
        key: LineKey,
        chances: Option<u32>,
        draw: u64,
    ) -> LineFate {
        let is_current = self.lines.get(&key).is_some_and(|it| it.clients.contains(&client));
        let is_last = self.is_last_copy(client, key);
        self.forget(client, key);
        match self.cooperation {
            // A line that was invalidated meanwhile is obsolete.
            _ if !is_current => LineFate::Drop,
            Cooperation::GloballyManaged => LineFate::ToServer,
            Cooperation::NChance if is_last => {
                let left =
                    chances.map_or(self.chances, |left| left.min(self.chances).saturating_sub(1));
                let others = self.clients.iter().filter(|other| **other != client);
                let count = others.clone().count() as u64;
                if left == 0 || count == 0 {
                    return LineFate::Drop;
                }
                let Some(to) = others.copied().nth((draw % count) as usize) else {
                    return LineFate::Drop;
                };
                self.lines.entry(key).or_default().add(to);
                LineFate::ToClient(to, left)
            }
            Cooperation::NChance
            | Cooperation::Base
            | Cooperation::GreedyForwarding
            | Cooperation::CentrallyCoordinated => LineFate::Drop,
        }
    }

    /// Decides about a clean line that the server's cache evicts, and notes where it goes; `None`
    /// if it is dropped.
    pub fn evicted_by_server(&mut self, key: LineKey) -> Option<Stored> {
        let is_owned = self.lines.get(&key).is_some_and(|holders| holders.owner.is_some());
        // An owner may have written newer bytes.
        let is_obsolete = is_owned || self.written_back.contains(&key);
        if self.cooperation != Cooperation::CentrallyCoordinated || is_obsolete {
            return None;
        }
        let (client, replaces) = self.global.place(key)?;
        if let Some(replaced) = replaces {
            self.former.add(client, replaced);
        }
        Some(Stored { client, replaces })
    }

    /// Number of the last command of [`evicted_by_server`](Self::evicted_by_server), for
    /// [`carried_out`](Self::carried_out).
    pub fn last_stored(&self) -> u64 {
        self.former.last()
    }

    /// Notes that a client has carried out the commands of
    /// [`evicted_by_server`](Self::evicted_by_server) up to number `last`.
    pub fn carried_out(&mut self, client: PeerId, last: u64) {
        self.former.carried_out(client, last);
    }

    /// Number of lines that a client has been told to drop for others, by commands that it may not
    /// have carried out.
    pub fn unconfirmed(&self, client: PeerId) -> usize {
        self.former.of_client(client)
    }

    /// Returns all holders of a line, of global parts too, for tests and inspection.
    pub fn holders(&self, key: LineKey) -> Vec<PeerId> {
        let own = self.lines.get(&key).into_iter().flat_map(|holders| holders.clients.clone());
        own.chain(self.global.holder(key)).chain(self.former.holders(key)).collect()
    }
}

impl Holders {
    fn add(&mut self, client: PeerId) {
        self.remove(client);
        self.clients.push(client);
    }

    fn remove(&mut self, client: PeerId) {
        self.clients.retain(|other| *other != client);
        if self.owner == Some(client) {
            self.owner = None;
        }
    }
}
