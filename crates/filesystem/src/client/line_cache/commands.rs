//! Commands of servers to a client's cache, and lines that other clients send.

use super::cache::{Expected, Held, Leaving, LineCache};
use crate::client::connections::calls::Answer;
use crate::client::line_cache::cache::Lines;
use crate::client::state::{Client, State};
use futures_util::future::{Either, select};
use policy::LineKey;
use std::pin::pin;
use std::rc::Rc;
use units::{Duration, PeerId, ServerId};
use wire::{CacheAnswer, CacheCommand, LineName, LineReader, Message, Reply, SentLine};
use world::World;

/// Maximum number of lines that are expected from other clients. With more, the one that has been
/// expected longest is not: its sender may have left.
const EXPECTED_MAX: usize = 1024;

/// Maximum time that sending a line to a reader may take. The server waits longer for the answer.
const SEND_TIMEOUT: Duration = Duration::from_ms(10_000);

impl<W: World> State<W> {
    /// Carries out a command of a server.
    pub(crate) fn cache_command(
        self: &Rc<Self>,
        from: PeerId,
        command: CacheCommand,
        body: Option<W::Payload>,
    ) {
        let (cache, server) = (self.line_cache(), self.servers().number_of(from));
        let (Some(cache), Some(server)) = (cache, server) else { return };
        match command {
            CacheCommand::Send { number, line, reader, moves } => {
                match cache.line_to_send(key_of(line), moves) {
                    Some(data) => {
                        self.send_line(&cache, (from, number), (reader, line), moves, data);
                    }
                    None => self.answer_command(from, number, false, None),
                }
            }
            CacheCommand::Invalidate { number, line } => {
                let was_there = cache.lines.borrow_mut().invalidate(key_of(line));
                cache.counts.borrow_mut().invalidated += u64::from(was_there);
                cache.left.notify();
                self.answer_command(from, number, was_there, None);
            }
            CacheCommand::WriteBack { number, line } => {
                let line = cache.recall(key_of(line));
                self.answer_command(from, number, line.is_some(), line);
            }
            CacheCommand::Store { line, replaces } => {
                cache.store(server, key_of(line), replaces.map(key_of), body);
            }
            CacheCommand::Expect { answer, number, line, chances } => {
                cache.lines.borrow_mut().expect(key_of(line), server, number, chances);
                self.answer_command(from, answer, true, None);
            }
            CacheCommand::Confirm { number } => self.answer_command(from, number, true, None),
        }
    }

    /// Accepts a line that another client sent. Returns false if it has no right to.
    pub(crate) fn accept_line(self: &Rc<Self>, sent: SentLine, body: Option<W::Payload>) -> bool {
        let (Some(cache), Some(line)) = (self.line_cache(), body) else { return false };
        match sent {
            SentLine::Requested { ticket, id, line: name, is_last_copy }
                if ticket == cache.ticket =>
            {
                cache.counts.borrow_mut().from_clients += 1;
                let reply = Reply::Line { line: name, is_last_copy };
                self.servers().answered(id, Answer::of(Ok(reply), Some(line)));
                true
            }
            SentLine::Evicted { ticket, number, line: name } if ticket == cache.ticket => {
                cache.receive(&Client(Rc::clone(self)), number, key_of(name), line);
                true
            }
            SentLine::Requested { .. } | SentLine::Evicted { .. } => false,
        }
    }

    /// Notes that a server has sent a line. Earlier commands, about older copies of the line, do
    /// not concern this one.
    pub(crate) fn line_arrives(&self, line: LineName, has_data: bool) {
        let Some(cache) = self.line_cache() else { return };
        cache.counts.borrow_mut().from_servers += u64::from(has_data);
        if let Some(is_stale) = cache.lines.borrow_mut().pending.get_mut(&key_of(line)) {
            *is_stale = false;
        }
    }

    /// Notes that a client has left, which may have been about to send a line.
    pub(crate) fn cache_peer_left(&self, peer: PeerId) {
        let Some(cache) = self.line_cache() else { return };
        cache.peers.borrow_mut().retain(|_, known| *known != peer);
        cache.departures.set(cache.departures.get() + 1);
        cache.departed.notify();
    }

    /// Sends a line to a reader, and tells the server when it is on its way.
    fn send_line(
        self: &Rc<Self>,
        cache: &Rc<LineCache<W>>,
        (from, number): (PeerId, u64),
        (reader, name): (LineReader, LineName),
        moves: bool,
        line: W::Payload,
    ) {
        cache.counts.borrow_mut().sent += 1;
        let (cache, world, lookup) =
            (Rc::clone(cache), self.world().clone(), self.costs().cache_read);
        self.spawn(async move {
            world.compute(lookup).await;
            let LineReader { address, ticket, id } = reader;
            let sent = SentLine::Requested { ticket, id, line: name, is_last_copy: moves };
            let is_sent = {
                let sent = pin!(cache.send_to_client(&world, &address, sent, line));
                let stalled = pin!(world.sleep(SEND_TIMEOUT));
                matches!(select(sent, stalled).await, Either::Left((Ok(()), _)))
            };
            if !is_sent {
                // The server will forget that this client has the line.
                cache.lines.borrow_mut().invalidate(key_of(name));
                cache.left.notify();
            }
            send_answer(&world, from, number, is_sent, None).await;
            Ok(())
        });
    }

    fn answer_command(
        self: &Rc<Self>,
        from: PeerId,
        number: u64,
        was_there: bool,
        line: Option<W::Payload>,
    ) {
        let world = self.world().clone();
        self.spawn(async move {
            send_answer(&world, from, number, was_there, line).await;
            Ok(())
        });
    }
}

impl<W: World> LineCache<W> {
    /// Returns a line for another client, and drops it if it moves there. A line that is still on
    /// its way here is not kept when it comes, since its server will not know of it. Nor is a line
    /// that a request is about: the server may have carried it out already.
    fn line_to_send(&self, key: LineKey, moves: bool) -> Option<W::Payload> {
        let lines = &mut *self.lines.borrow_mut();
        if lines.pending.contains_key(&key) {
            lines.invalidate(key);
            return None;
        }
        let held = lines.held.get(&key).map(|held| held.line.clone());
        let leaving = lines.leaving.get(&key).filter(|leaving| !leaving.is_dirty);
        let leaving = leaving.map(|leaving| leaving.line.clone());
        let line = held.filter(|_| !lines.policy.is_dirty(key)).or(leaving);
        match &line {
            Some(_) if moves => {
                lines.policy.remove(key);
                lines.held.remove(&key);
                lines.leaving.remove(&key);
            }
            Some(_) => lines.policy.is_shared(key),
            None => lines.will_not_keep(key),
        }
        self.left.notify();
        line
    }

    /// Returns a line that this client owns, which it owns no longer. A right that is on its way
    /// here has ended too.
    fn recall(&self, key: LineKey) -> Option<W::Payload> {
        let lines = &mut *self.lines.borrow_mut();
        if lines.policy.is_dirty(key)
            && let Some(held) = lines.held.get(&key)
        {
            let line = held.line.clone();
            lines.policy.set_dirty(key, false);
            return Some(line);
        }
        lines.will_not_keep(key);
        if !lines.leaving.get(&key)?.is_dirty {
            return None;
        }
        let leaving = lines.leaving.remove(&key)?;
        self.left.notify();
        Some(leaving.line)
    }

    /// Takes a line into the part of the cache that servers manage.
    fn store(
        &self,
        server: ServerId,
        key: LineKey,
        replaces: Option<LineKey>,
        line: Option<W::Payload>,
    ) {
        let lines = &mut *self.lines.borrow_mut();
        let Some(line) = line else { return };
        // The client's own copy is never older.
        if lines.policy.store(key, replaces) && !lines.policy.holds_itself(key) {
            lines.held.insert(key, Held { line, server });
        }
        if let Some(replaced) = replaces.filter(|key| !lines.policy.holds(*key)) {
            lines.held.remove(&replaced);
        }
        let (own, global) = lines.policy.lines();
        if lines.held.len() > own + global {
            // The server has counted wrong.
            lines.held.retain(|key, _| lines.policy.holds(*key));
        }
    }

    /// Takes a line that another client evicted, if this client expects it.
    fn receive(self: &Rc<Self>, client: &Client<W>, number: u64, key: LineKey, line: W::Payload) {
        let lines = &mut *self.lines.borrow_mut();
        let expected = lines.expected.get(&key).filter(|it| it.number == number).copied();
        let Some(Expected { server, chances, .. }) = expected else { return };
        lines.expected.remove(&key);
        // Its server may carry out a request of this client about the line after it has noted that
        // the line comes here, and then know nothing of it: one that reads, writes or evicts it.
        if self.locks.is_taken(key) || lines.policy.holds(key) {
            return;
        }
        let dropped = lines.policy.receive(key, chances);
        lines.held.insert(key, Held { line, server });
        // Its server must not read a note of this after it has let another client send the line
        // here again. Without chances, the line goes nowhere.
        if let Some(dropped) = dropped
            && let Some(Held { line, server }) = lines.held.remove(&dropped)
        {
            let leaving = Leaving { line, server, is_dirty: false, chances: Some(0) };
            self.begin_eviction(client, lines, dropped, leaving);
        }
    }
}

impl<P> Lines<P> {
    /// Expects a line from another client.
    fn expect(&mut self, key: LineKey, server: ServerId, number: u64, chances: u32) {
        self.expected.remove(&key);
        if self.expected.len() >= EXPECTED_MAX {
            let longest = self.expected.iter().min_by_key(|(_, it)| it.order);
            if let Some(key) = longest.map(|(key, _)| *key) {
                self.expected.remove(&key);
            }
        }
        self.expectations += 1;
        let order = self.expectations;
        self.expected.insert(key, Expected { server, number, chances, order });
    }
}

async fn send_answer<W: World>(
    world: &W,
    server: PeerId,
    number: u64,
    was_there: bool,
    line: Option<W::Payload>,
) {
    let header = wire::encode(&Message::CacheAnswer(CacheAnswer { number, was_there }));
    let message = world::Message { body: line, ..world::Message::new(header) };
    // A server that has left needs no answer.
    let _ = world.send(server, message).await;
}

fn key_of(line: LineName) -> LineKey {
    (line.file, line.line)
}
