//! Requests of clients with caches: reads, and the way to all others.

use super::lines::LinePlace;
use super::registered::key_of;
use crate::scale::rare;
use crate::server::Server;
use crate::signal::Signal;
use policy::{Cooperation, Directory, LineKey, LineSource};
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use units::PeerId;
use wire::{
    CacheCommand, CacheRequest, DROPPED_LINES_MAX, Fault, LineName, LineReader, Message, Reply,
    RequestId,
};
use world::World;

impl<W: World> Server<W> {
    /// Carries out a request of a client with a cache, and sends it the outcome, unless another
    /// client does. The request runs to its end even when the client leaves: otherwise bytes that
    /// an owner wrote back for it could get lost.
    pub(crate) async fn answer_cache(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: CacheRequest,
        body: Option<W::Payload>,
    ) -> Result<(), Infallible> {
        let (server, ended) = (Rc::clone(&self), Rc::new((Cell::new(false), Signal::default())));
        let shared = Rc::clone(&ended);
        self.changes().spawn(async move {
            if let Err(fault) = rare(server.serve_cache(call, request, body)).await {
                server.send_reply(call, Err(fault)).await;
            }
            shared.0.set(true);
            shared.1.notify();
            Ok(())
        });
        // Bounds the active requests of the client.
        ended.1.until(|| ended.0.get().then_some(())).await;
        Ok(())
    }

    async fn serve_cache(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        request: CacheRequest,
        body: Option<W::Payload>,
    ) -> Result<(), Fault> {
        use CacheRequest::{Own, Write, WriteBack};
        if !self.config().client_caches {
            let cause = "this server serves no caches of clients".to_owned();
            return Err(Fault::BadRequest { cause });
        }
        if matches!(request, Write { .. } | Own { .. } | WriteBack { .. }) {
            self.check_not_read_only()?;
        }
        match request {
            CacheRequest::Register(registration) => {
                if !self.clients().is_here(call.0) {
                    // It has left meanwhile.
                    return Ok(());
                }
                self.client_caches().register(self.world(), call.0, registration)?;
                self.disconnect_when_stalled(call.0);
                let coordinated =
                    |it: &mut Directory| it.cooperation() == Cooperation::CentrallyCoordinated;
                if self.client_caches().with(coordinated) == Some(true) {
                    self.cache().evicted().keep();
                }
                self.send_reply(call, Ok(Reply::Done.into())).await;
                Ok(())
            }
            CacheRequest::Read { line, dropped } => {
                self.note_dropped(call.0, dropped)?;
                self.read_line(call, line).await
            }
            CacheRequest::Write { line, offset, keeps, dropped } => {
                self.note_dropped(call.0, dropped)?;
                self.write_line(call, (line, offset), keeps, body).await
            }
            CacheRequest::Own { line, fetches, dropped } => {
                self.note_dropped(call.0, dropped)?;
                self.own_line(call, line, fetches).await
            }
            CacheRequest::WriteBack { line, keeps } => {
                self.write_line_back(call, line, keeps, body).await
            }
            CacheRequest::Evict { line, chances } => {
                self.evict_line(call, line, chances, body).await
            }
            CacheRequest::Settle { line } => {
                let _turn = self.client_caches().locks.turn(key_of(line)).await;
                self.send_reply(call, Ok(Reply::Done.into())).await;
                Ok(())
            }
            CacheRequest::Withdraw => {
                self.end_client_cache(call.0);
                self.send_reply(call, Ok(Reply::Done.into())).await;
                Ok(())
            }
        }
    }

    /// Has a client disconnected that answers no commands.
    fn disconnect_when_stalled(self: &Rc<Self>, client: PeerId) {
        let server = Rc::clone(self);
        self.client_caches().spawn_for(client, async move {
            server.client_caches().until_stalled(server.world(), client).await;
            server.memory().watchdog().disconnect(client);
            Ok(())
        });
    }

    /// Takes the notes of a client about lines that it has dropped.
    fn note_dropped(&self, client: PeerId, dropped: Vec<LineName>) -> Result<(), Fault> {
        if dropped.len() > DROPPED_LINES_MAX {
            let cause = format!("a request names {} dropped blocks", dropped.len());
            return Err(Fault::BadRequest { cause });
        }
        for line in dropped {
            self.client_caches().with(|directory| directory.dropped(client, key_of(line)));
        }
        Ok(())
    }

    /// Sends a reader a line, or has another client send it.
    async fn read_line(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        name: LineName,
    ) -> Result<(), Fault> {
        let (reader, id) = call;
        let key = key_of(name);
        let caches = self.client_caches();
        let _turn = caches.locks.turn(key).await;
        self.world().compute(self.config().costs.cache_read).await;
        let place = self.place_of_line(reader, name).await?;
        self.recall(reader, key, &place).await?;
        let mut was_sent = false;
        loop {
            let in_server = self.cache().peek(name.file, place.block, place.range).is_some();
            let source = caches.with(|directory| directory.read(reader, key, in_server));
            match source.unwrap_or(LineSource::Disk) {
                LineSource::Reader => {
                    self.reply_in_order(call, Reply::HasLine, None);
                    return Ok(());
                }
                LineSource::Client(holder) => {
                    let source = LineSource::Client(holder);
                    let moves = self.moves();
                    let to = caches.taker(reader).map(|taker| LineReader {
                        address: taker.address,
                        ticket: taker.ticket,
                        id,
                    });
                    let Some(reader_at) = to else {
                        let cause = "the client has no cache any more".to_owned();
                        return Err(Fault::BadRequest { cause });
                    };
                    let command = |number| CacheCommand::Send {
                        number,
                        line: name,
                        reader: reader_at,
                        moves,
                    };
                    if caches.ask(holder, command).await.was_there {
                        caches.with(|directory| directory.has_read(reader, key, source));
                        self.counters().count_moved(place.range.length());
                        return Ok(());
                    }
                    caches.with(|directory| directory.missing(holder, key));
                    was_sent = true;
                }
                source @ (LineSource::ServerCache | LineSource::Disk) => {
                    let loaded = self.load_line(&place).await;
                    // A holder that gave up may have reached the reader after all.
                    if loaded.is_ok() || was_sent {
                        caches.with(|directory| directory.has_read(reader, key, source));
                    }
                    let payload = loaded?;
                    if self.moves() {
                        self.cache().drop_clean(name.file, place.block);
                    }
                    self.counters().count_moved(place.range.length());
                    let is_last_copy = self.is_last_copy(reader, key);
                    let reply = Reply::Line { line: name, is_last_copy };
                    self.reply_in_order(call, reply, Some(payload));
                    return Ok(());
                }
            }
        }
    }

    /// Sends a reply after all commands that were decided before it: one about the same line must
    /// not arrive later.
    pub(super) fn reply_in_order(
        self: &Rc<Self>,
        call: (PeerId, RequestId),
        reply: Reply,
        body: Option<W::Payload>,
    ) {
        let (client, id) = call;
        if self.client_caches().has(client) {
            self.client_caches().queue(client, Message::Reply { id, result: Ok(reply) }, body);
            return;
        }
        // It has withdrawn its cache, and gets no commands any more, or has left.
        let server = Rc::clone(self);
        self.changes().spawn(async move {
            server.send_reply(call, Ok(reply.into())).await;
            Ok(())
        });
    }

    /// Reads a line through the server's cache, as any read.
    pub(super) async fn load_line(self: &Rc<Self>, place: &LinePlace) -> Result<W::Payload, Fault> {
        let LinePlace { file, block, range } = place;
        self.cache().prefetcher().begin_before(file, *block);
        let payload = self.cache().read(file, *block, *range).await;
        self.store_evicted();
        let payload = payload?;
        self.cache().prefetcher().begin_after(file, *block);
        self.store_evicted();
        Ok(payload)
    }

    /// True if a copy moves to the reader instead of being copied.
    fn moves(&self) -> bool {
        let moves =
            |directory: &mut Directory| directory.cooperation() == Cooperation::GloballyManaged;
        self.client_caches().with(moves).unwrap_or(false)
    }

    fn is_last_copy(&self, client: PeerId, key: LineKey) -> bool {
        let is_last = |directory: &mut Directory| directory.is_last_copy(client, key);
        self.client_caches().with(is_last).unwrap_or(false)
    }
}
