//! Writes of clients with caches, and lines that clients evict.

use super::lines::LinePlace;
use super::registered::{key_of, name_of};
use crate::server::Server;
use futures_util::future::join_all;
use policy::{LineFate, LineKey};
use std::rc::Rc;
use units::{PeerId, Run};
use wire::{CacheCommand, Fault, LineName, Reply, RequestId};
use world::{Payload, World};

impl<W: World> Server<W> {
    /// Writes bytes of a line into the server's cache, then invalidates all other copies.
    pub(super) async fn write_line(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        (name, offset): (LineName, u64),
        keeps: bool,
        body: Option<W::Payload>,
    ) -> Result<(), Fault> {
        let (writer, key) = (call.0, key_of(name));
        let Some(_permit) = self.memory().keep_written(body.as_ref().map_or(0, Payload::length))
        else {
            self.reply_in_order(call, Reply::NoRoom, None);
            return Ok(());
        };
        let _turn = self.client_caches().locks.turn(key).await;
        let place = self.place_of_line(writer, name).await?;
        self.write_failures().report_to(name.file, writer)?;
        self.recall(writer, key, &place).await?;
        self.put_line(&place, offset, body).await?;
        let stale = self.client_caches().with(|directory| directory.write(writer, key, keeps));
        self.invalidate(stale.unwrap_or_default(), name).await;
        self.reply_in_order(call, Reply::Done, None);
        Ok(())
    }

    /// Gives a client the right to write a line without asking.
    pub(super) async fn own_line(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        name: LineName,
        fetches: bool,
    ) -> Result<(), Fault> {
        let (client, key) = (call.0, key_of(name));
        let _turn = self.client_caches().locks.turn(key).await;
        self.world().compute(self.config().costs.cache_read).await;
        let place = self.place_of_line(client, name).await?;
        self.recall(client, key, &place).await?;
        let data = match fetches {
            true => Some(self.load_line(&place).await?),
            false => None,
        };
        // Evicted copies that wait for a place at a client are obsolete from now on.
        self.store_evicted();
        let stale = self.client_caches().with(|directory| directory.own(client, key));
        self.invalidate(stale.unwrap_or_default(), name).await;
        let reply = Reply::Line { line: name, is_last_copy: true };
        self.reply_in_order(call, reply, data);
        Ok(())
    }

    /// Takes a line that its owner writes back, unless another client has become the owner. Does
    /// not report earlier failures of write-behind, which no program may be waiting for: a flush
    /// does.
    pub(super) async fn write_line_back(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        name: LineName,
        keeps: bool,
        body: Option<W::Payload>,
    ) -> Result<(), Fault> {
        let (owner, key) = (call.0, key_of(name));
        let Some(_permit) = self.memory().keep_written(body.as_ref().map_or(0, Payload::length))
        else {
            self.reply_in_order(call, Reply::NoRoom, None);
            return Ok(());
        };
        let _turn = self.client_caches().locks.turn(key).await;
        let place = self.place_of_line(owner, name).await?;
        let caches = self.client_caches();
        if caches.with(|directory| directory.is_owner(owner, key)) == Some(true) {
            // It owns the line until the server's copy, which may be evicted, is not obsolete.
            caches.with(|directory| directory.begin_write_back(key));
            let put = self.put_line(&place, 0, body).await;
            caches.with(|directory| directory.end_write_back(key));
            put?;
            caches.with(|directory| directory.written_back(owner, key, keeps));
        }
        self.reply_in_order(call, Reply::Done, None);
        Ok(())
    }

    /// Decides what becomes of a clean line that a client evicts.
    pub(super) async fn evict_line(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        name: LineName,
        chances: Option<u32>,
        body: Option<W::Payload>,
    ) -> Result<(), Fault> {
        let (client, key) = (call.0, key_of(name));
        let caches = self.client_caches();
        // A line for which there is no room now is dropped.
        let permit = self.memory().keep_written(body.as_ref().map_or(0, Payload::length));
        let body = body.filter(|_| permit.is_some());
        let _turn = caches.locks.turn(key).await;
        let place = self.place_of_line(client, name).await?;
        let draw = self.world().random();
        let fate = caches.with(|directory| directory.evicted(client, key, chances, draw));
        let reply = match fate.unwrap_or(LineFate::Drop) {
            LineFate::Drop => Reply::Done,
            LineFate::ToServer => {
                if let Some(line) = body.filter(|line| line.length() == place.range.length()) {
                    let costs = &self.config().costs;
                    let cost = costs.cache_write + costs.copy(line.length());
                    self.world().compute(cost).await;
                    let LinePlace { file, block, range } = &place;
                    self.cache().take_in(file, *block, range.start, line).await?;
                    self.store_evicted();
                }
                Reply::Done
            }
            LineFate::ToClient(to, left) => {
                let taker = caches.taker(to);
                let number = taker.as_ref().map_or(0, |taker| taker.number);
                let line = name;
                let expect = |answer| CacheCommand::Expect { answer, number, line, chances: left };
                // No later answer about the line may overtake this.
                let expected = caches.ask(to, expect).await.was_there;
                taker.filter(|_| expected).map_or(Reply::Done, Reply::SendLine)
            }
        };
        self.reply_in_order(call, reply, None);
        Ok(())
    }

    /// Has another client that owns a line write it back, and keep it.
    pub(super) async fn recall(
        self: &Rc<Self>,
        client: PeerId,
        key: LineKey,
        place: &LinePlace,
    ) -> Result<(), Fault> {
        let caches = self.client_caches();
        let owner = caches.with(|directory| directory.other_owner(client, key)).flatten();
        let Some(owner) = owner else { return Ok(()) };
        let command = |number| CacheCommand::WriteBack { number, line: name_of(key) };
        // The owner may leave, or drop its clean copy, before the server's cache has the bytes.
        caches.with(|directory| directory.begin_write_back(key));
        let answered = caches.ask(owner, command).await;
        let put = match answered.line.filter(|_| answered.was_there) {
            Some(line) => self.put_line(place, 0, Some(line)).await,
            // It had not used its right yet and may have a clean copy, or it has left.
            None => Ok(()),
        };
        caches.with(|directory| {
            directory.end_write_back(key);
            directory.written_back(owner, key, true);
        });
        if let Err(fault) = &put
            && self.files().get(key.0).is_ok()
        {
            // The owner believes that the server has its bytes.
            self.write_failures().record(key.0, fault.clone());
            return self.write_failures().report_to(key.0, client);
        }
        put
    }

    /// Puts bytes of a line into the server's cache.
    async fn put_line(
        self: &Rc<Self>,
        place: &LinePlace,
        offset: u64,
        body: Option<W::Payload>,
    ) -> Result<(), Fault> {
        let bad = |cause: &str| Fault::BadRequest { cause: cause.to_owned() };
        let body = body.ok_or_else(|| bad("a write came without data"))?;
        let (length, LinePlace { file, block, range }) = (body.length(), place);
        let end = offset.checked_add(length).filter(|end| *end <= range.length() && length > 0);
        end.ok_or_else(|| bad("a write is beyond its block of the client's cache"))?;
        let costs = &self.config().costs;
        self.world().compute(costs.cache_write + costs.copy(length)).await;
        let run = Run::contiguous(range.start + offset, length);
        let written = self.cache().write(file, *block, &[run], body).await;
        file.changed_at(self.world().timestamp());
        // Others may have been evicted for it, and older bytes of it just before.
        self.store_evicted();
        self.counters().count_moved(length);
        written
    }

    /// Has clients drop their copies of a line, and waits until they have or have left.
    pub(super) async fn invalidate(&self, stale: Vec<PeerId>, line: LineName) {
        let caches = self.client_caches();
        let asked = stale
            .into_iter()
            .map(|client| caches.ask(client, |number| CacheCommand::Invalidate { number, line }));
        join_all(asked).await;
    }
}
