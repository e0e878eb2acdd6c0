//! Answers to requests. Each part of a server serves the requests of its own part of
//! [`Request`](wire::Request); here are reads, writes, and requests for the server as a whole.

use crate::collective::caching;
use crate::scale::{frequent_header, rare};
use crate::server::answer::Answer;
use crate::server::catalogue::Catalogue;
use crate::server::state::Server;
use crate::server::transfers::answer_pools::{LARGE_ANSWER_BYTES, Source};
use crate::server::transfers::write_budget::WritePermit;
use futures_util::FutureExt;
use std::convert::Infallible;
use std::rc::Rc;
use tracing::debug;
use units::{FileId, PeerId};
use wire::{
    Fault, Frequent, Message, ProcessorUse, ReadRequest, Reply, RequestId, ServerRequest,
    ServerStatus, WriteRequest,
};
use world::{NetworkError, Payload, Place, World};

/// Size up to which the data of an answer is not counted, in bytes. The number of requests of a
/// client is limited.
const SMALL_ANSWER_BYTES: u64 = 4 << 10;

/// Returns the fault of an answer that fits no message.
fn too_large(error: &NetworkError) -> Fault {
    Fault::BadRequest { cause: format!("the answer does not fit a message: {error}") }
}

/// Answer to a read, with its data.
fn placed<P: Payload>(id: RequestId, request: ReadRequest, payload: P) -> world::Message<P> {
    let place = Place { region: request.region, offset: request.region_offset };
    world::Message::placed(frequent_header(&Frequent::Done(id)), payload, place)
}

impl<W: World> Server<W> {
    /// Reads, and sends the client its data.
    pub(crate) async fn answer_read(
        self: Rc<Self>,
        (from, id): (PeerId, RequestId),
        request: ReadRequest,
    ) -> Result<(), Infallible> {
        if request.length > SMALL_ANSWER_BYTES {
            return self.answer_large_read((from, id), request).await;
        }
        let (payload, cost) = match caching::server::read(&self, from, request).await {
            Ok(read) => read,
            Err(fault) => return rare(self.refuse((from, id), fault)).await,
        };
        // A client that has left needs no answer; this one fits every message.
        let _ = self.world().send_after(cost, from, placed(id, request, payload)).await;
        Ok(())
    }

    /// As [`answer_read`](Self::answer_read), when there is room for the answer.
    async fn answer_large_read(
        self: Rc<Self>,
        (from, id): (PeerId, RequestId),
        request: ReadRequest,
    ) -> Result<(), Infallible> {
        // Before there is room for the answer: others wait for that.
        self.recall_leases(request.file, Some(from)).await;
        let bytes = request.length.min(self.config().cache_bytes);
        let source = self.source_of(request.file, request.block);
        let held = self.memory().answers().take(self.world(), source, bytes).await;
        let (payload, cost) = match caching::server::read(&self, from, request).await {
            Ok(read) => read,
            Err(fault) => {
                drop(held);
                return rare(self.refuse((from, id), fault)).await;
            }
        };
        let sending = self.world().send_after(cost, from, placed(id, request, payload));
        let sent = self.memory().answers().send((from, source), bytes, sending).await;
        drop(held);
        if let Err(error @ NetworkError::TooLarge { .. }) = sent {
            return rare(self.refuse((from, id), too_large(&error))).await;
        }
        Ok(())
    }

    /// Writes, and sends the client the outcome.
    pub(crate) async fn answer_write(
        self: Rc<Self>,
        (from, id): (PeerId, RequestId),
        request: WriteRequest,
        body: Option<W::Payload>,
        permit: WritePermit,
    ) -> Result<(), Infallible> {
        let written = caching::server::write(&self, from, request, body).await;
        drop(permit);
        let cost = match written {
            Ok(cost) => cost,
            Err(fault) => return rare(self.refuse((from, id), fault)).await,
        };
        let message = world::Message::new(frequent_header(&Frequent::Done(id)));
        // A client that has left needs no answer.
        let _ = self.world().send_after(cost, from, message).await;
        Ok(())
    }

    /// Carries out a request, and sends the client the outcome. `large` is the source and largest
    /// size of the answer; `None` for a small one.
    pub(crate) async fn answer(
        &self,
        call: (PeerId, RequestId),
        large: Option<(Source, u64)>,
        serving: impl Future<Output = Result<Answer<W::Payload>, Fault>>,
    ) -> Result<(), Infallible> {
        let Some((source, bytes)) = large else {
            self.send_reply(call, serving.await).await;
            return Ok(());
        };
        let _held = self.memory().answers().take(self.world(), source, bytes).await;
        let sending = self.send_reply(call, serving.await).map(Ok);
        self.memory().answers().send((call.0, source), bytes, sending).await
    }

    /// Answers a request for the server as a whole.
    pub(crate) async fn answer_server(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: ServerRequest,
    ) -> Result<(), Infallible> {
        let is_list = matches!(
            request,
            ServerRequest::Unprotected { .. } | ServerRequest::CatalogueCopy { .. }
        );
        if is_list {
            let large = Some((Source::Memory, LARGE_ANSWER_BYTES));
            return self.answer(call, large, rare(self.serve_server(call.0, request))).await;
        }
        let outcome = rare(self.serve_server(call.0, request)).await;
        let stops = request == ServerRequest::Stop && outcome.is_ok();
        self.send_reply(call, outcome).await;
        if stops {
            self.stop().request();
        }
        Ok(())
    }

    /// Source of the data of a block. A request for a file that is not open fails.
    pub(crate) fn source_of(&self, file: FileId, block: u64) -> Source {
        let disk = self.files().get(file).map(|file| file.stripe.locate(block).disk);
        disk.map_or(Source::Memory, Source::Disk)
    }

    /// Sends a client that the server has no room for its data.
    pub(crate) async fn turn_away(
        self: Rc<Self>,
        call: (PeerId, RequestId),
    ) -> Result<(), Infallible> {
        self.send_reply(call, Ok(Reply::NoRoom.into())).await;
        Ok(())
    }

    /// Sends a client a fault.
    pub(crate) async fn refuse(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        fault: Fault,
    ) -> Result<(), Infallible> {
        self.send_reply(call, Err(fault)).await;
        Ok(())
    }

    /// Sends an answer. A client that has left needs none.
    pub(crate) async fn send_reply(
        &self,
        (from, id): (PeerId, RequestId),
        outcome: Result<Answer<W::Payload>, Fault>,
    ) {
        let (result, data, _permit) = match outcome {
            Ok(Answer { reply, data, permit }) => (Ok(reply), data, permit),
            Err(fault) => {
                debug!(client = from.0, %fault, "a request failed");
                (Err(fault), None, None)
            }
        };
        let header = wire::encode(&Message::Reply { id, result });
        let message = match data {
            Some((payload, Some(loan))) => world::Message::lent(header, payload, loan),
            Some((payload, None)) => world::Message::with_body(header, payload),
            None => world::Message::new(header),
        };
        let sent = self.world().send(from, message).await;
        if let Err(error @ NetworkError::TooLarge { .. }) = sent {
            let result = Err(too_large(&error));
            let header = wire::encode(&Message::Reply { id, result });
            let _ = self.world().send(from, world::Message::new(header)).await;
        }
    }

    async fn serve_server(
        self: &Rc<Self>,
        from: PeerId,
        request: ServerRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        match request {
            ServerRequest::Status => self.status().await,
            ServerRequest::Unprotected { from, count } => {
                Ok(Reply::Unprotected(self.unprotected_files(from, count).await).into())
            }
            ServerRequest::Stop => self.cache().write_back_all().await.map(|()| Reply::Done.into()),
            ServerRequest::Probe { silence_ms } => {
                Ok(self.probe_clients(from, silence_ms).await.into())
            }
            ServerRequest::CatalogueCopy { after } => self.read_catalogue_copy(after).await,
        }
    }

    async fn status(&self) -> Result<Answer<W::Payload>, Fault> {
        let disks = self.disks().spaces().await?;
        let used = self.world().used();
        let status = ServerStatus {
            clients: self.clients().count() as u32,
            requests: self.counters().requests(),
            bytes_moved: self.counters().bytes_moved(),
            cache_bytes: self.cache().bytes(),
            dirty_bytes: self.cache().dirty_bytes(),
            collective_bytes: self.memory().buffer_bytes(),
            disks,
            files: self.catalogue().map_or_else(Vec::new, Catalogue::files),
            protected_parts: self.catalogue().map_or_else(Vec::new, Catalogue::protected_parts),
            copies: self.catalogue().map_or_else(Vec::new, |it| it.copies().current()),
            behind: self.catalogue().map_or_else(Vec::new, Catalogue::behind),
            files_behind: self.mirrors().files_behind(),
            repaired: self.disks().repaired(),
            refill: self.lacking().status(),
            processor: ProcessorUse {
                user_ns: (used.all - used.system).as_ns(),
                system_ns: used.system.as_ns(),
            },
        };
        Ok(Reply::Status(Box::new(status)).into())
    }
}
