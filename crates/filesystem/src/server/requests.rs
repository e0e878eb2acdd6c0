//! The work of a server for each kind of request.

use crate::collective::{caching, disk_directed, noncollective};
use crate::scale::{frequent_header, rare};
use crate::server::answer::Answer;
use crate::server::catalogue::{self, Catalogue};
use crate::server::clients::session::Session;
use crate::server::state::Server;
use crate::server::transfers::active_transfers::TransferKey;
use crate::server::transfers::answer_pools::Source;
use crate::server::transfers::write_budget::WritePermit;
use crate::signal::Signal;
use futures_util::FutureExt;
use policy::Buffering;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use tracing::debug;
use units::{FileId, MIB, PeerId, Timestamp};
use wire::{
    Fault, FileRecord, FileSize, Frequent, Message, ReadRequest, Reply, Request, RequestId,
    ServerStatus, TransferName, WriteRequest,
};
use world::{NetworkError, Payload, Place, World};

/// Maximum number of sizes in one answer.
const SIZES_PER_ANSWER_MAX: usize = 1024;

/// Size up to which the data of an answer is not counted, in bytes. The number of requests of a
/// client is limited.
const SMALL_ANSWER_BYTES: u64 = 4 << 10;

/// Usual size of a large answer without data, in bytes, by which such answers are limited.
const LARGE_ANSWER_BYTES: u64 = MIB;

/// Returns the fault of an answer that fits no message.
fn too_large(error: &NetworkError) -> Fault {
    Fault::BadRequest { cause: format!("the answer does not fit a message: {error}") }
}

/// Answer to a read, with its data.
fn placed<P: Payload>(id: RequestId, request: ReadRequest, payload: P) -> world::Message<P> {
    let place = Place { region: request.region, offset: request.region_offset };
    world::Message::placed(frequent_header(&Frequent::Done(id)), payload, place)
}

/// Outcome of a catalogue change, for the request that still waits for it.
#[derive(Default)]
struct Answered {
    outcome: RefCell<Option<Result<Reply, Fault>>>,
    is_there: Signal,
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
        let (payload, cost) = match caching::server::read(&self, request).await {
            Ok(read) => read,
            Err(fault) => return rare(self.refuse((from, id), fault)).await,
        };
        // A client that has left needs no answer; this one fits every message.
        let _ = self.world.send_after(cost, from, placed(id, request, payload)).await;
        Ok(())
    }

    /// As [`answer_read`](Self::answer_read), when there is room for the answer.
    async fn answer_large_read(
        self: Rc<Self>,
        (from, id): (PeerId, RequestId),
        request: ReadRequest,
    ) -> Result<(), Infallible> {
        let bytes = request.length.min(self.config.cache_bytes);
        let source = self.source_of(request.file, request.block);
        let held = self.memory.answers().take(&self.world, source, bytes).await;
        let (payload, cost) = match caching::server::read(&self, request).await {
            Ok(read) => read,
            Err(fault) => {
                drop(held);
                return rare(self.refuse((from, id), fault)).await;
            }
        };
        let sending = self.world.send_after(cost, from, placed(id, request, payload));
        let sent = self.memory.answers().send((from, source), bytes, sending).await;
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
        let _ = self.world.send_after(cost, from, message).await;
        Ok(())
    }

    /// Carries out a request, and sends the client the outcome.
    pub(crate) async fn answer(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: Request,
    ) -> Result<(), Infallible> {
        let stops = matches!(request, Request::Stop);
        let outcome = match self.large_answer(&request) {
            None => {
                let outcome = rare(self.serve_rare_request(call.0, request)).await;
                let is_done = outcome.is_ok();
                self.send_reply(call, outcome).await;
                is_done
            }
            Some((source, bytes)) => {
                let _held = self.memory.answers().take(&self.world, source, bytes).await;
                let outcome = rare(self.serve_rare_request(call.0, request)).await;
                let sending = self.send_reply(call, outcome).map(Ok::<(), Infallible>);
                let Ok(()) = self.memory.answers().send((call.0, source), bytes, sending).await;
                true
            }
        };
        let stops = stops && outcome;
        if stops {
            self.stop.request();
        }
        Ok(())
    }

    /// Source and largest size of the answer to a request; `None` for a small one.
    fn large_answer(&self, request: &Request) -> Option<(Source, u64)> {
        match request {
            Request::Page { file, block } => {
                let bytes = self.files.get(*file).ok()?.block_length(*block);
                Some((self.source_of(*file, *block), bytes))
            }
            Request::Digests(request) => {
                Some((self.source_of(request.file, request.block), LARGE_ANSWER_BYTES))
            }
            Request::Plan(request) => Some((Source::Disk(request.disk), LARGE_ANSWER_BYTES)),
            Request::List { .. } | Request::Nameless { .. } | Request::OpenSizes { .. } => {
                Some((Source::Memory, LARGE_ANSWER_BYTES))
            }
            _ => None,
        }
    }

    /// Source of the data of a block. A request for a file that is not open fails.
    fn source_of(&self, file: FileId, block: u64) -> Source {
        let disk = self.files.get(file).map(|file| file.stripe.locate(block).disk);
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
        let (result, data) = match outcome {
            Ok(Answer { reply, data }) => (Ok(reply), data),
            Err(fault) => {
                debug!(client = from.0, %fault, "a request failed");
                (Err(fault), None)
            }
        };
        let header = wire::encode(&Message::Reply { id, result });
        let message = match data {
            Some((payload, Some(loan))) => world::Message::lent(header, payload, loan),
            Some((payload, None)) => world::Message::with_body(header, payload),
            None => world::Message::new(header),
        };
        let sent = self.world.send(from, message).await;
        if let Err(error @ NetworkError::TooLarge { .. }) = sent {
            let result = Err(too_large(&error));
            let header = wire::encode(&Message::Reply { id, result });
            let _ = self.world.send(from, world::Message::new(header)).await;
        }
    }

    async fn serve_rare_request(
        self: &Rc<Self>,
        from: PeerId,
        request: Request,
    ) -> Result<Answer<W::Payload>, Fault> {
        if let Some(answer) = self.answer_read_only(&request) {
            return answer.map(Answer::from);
        }
        match request {
            Request::Flush(request) => caching::server::flush(self, from, request).await,
            Request::Pull(request) => caching::server::pull(self, from, request).await,
            Request::Page { file, block } => caching::server::page(self, file, block).await,
            Request::Digests(request) => caching::server::digests(self, request).await,
            Request::Plan(request) => disk_directed::plan::serve(self, *request).await,
            Request::Part(request) => noncollective::server::serve(self, from, *request).await,
            Request::AllGather(request) => {
                let _wait = self.clients.bounded_wait(from);
                self.all_gather(*request).await.map(Answer::from)
            }
            Request::Probe { silence_ms } => Ok(self.probe_clients(from, silence_ms).await.into()),
            Request::Register(request) => {
                self.groups.register(from, *request).map(|()| Reply::Done.into())
            }
            Request::Leave(request) => {
                self.groups.leave(from, request);
                Ok(Reply::Done.into())
            }
            Request::Join(request) => self.join(from, *request).await.map(Answer::from),
            Request::Counter(request) => self.count(from, request).map(Answer::from),
            Request::Lock(request) => self.lock(from, request).await.map(Answer::from),
            Request::Unlock(request) => self.unlock(from, request).map(Answer::from),
            Request::Cancel(transfer) => Ok(self.cancel(from, transfer).into()),
            Request::Open(record) => self.open(from, record).await,
            Request::Close { file, recorded } => self.close(from, file, recorded),
            Request::KeepSize { file } => self.keep_size(file).await,
            Request::Buffers { file } => {
                self.files.get(file)?;
                Ok(Reply::Buffers(self.cache.statistics(file)).into())
            }
            Request::Drop { file } => match self.files.lost_name(file) {
                true => Ok(Reply::InUse.into()),
                false => self.drop_file(file).await,
            },
            Request::Resize { file, size } => self.resize(file, size).await,
            Request::Measure(record) => self.size_of(record).await,
            Request::OpenSizes { after } => {
                let (sizes, more) = self.files.sizes(after, SIZES_PER_ANSWER_MAX);
                Ok(Reply::Sizes { sizes, more }.into())
            }
            Request::SetModified { file, modified } => self.set_modified(file, modified),
            Request::Status => self.status().await,
            Request::Stop => self.cache.write_back_all().await.map(|()| Reply::Done.into()),
            catalogue => {
                self.check_change(&catalogue)?;
                self.change_catalogue(catalogue).await.map(Answer::from)
            }
        }
    }

    /// Answers a request to change a file or the catalogue while nothing may be changed. (Requests
    /// to change data are refused where they begin to do so.)
    fn answer_read_only(&self, request: &Request) -> Option<Result<Reply, Fault>> {
        if !self.config.read_only {
            return None;
        }
        match request {
            // What clients report when they close a file is not kept.
            Request::RecordSize { size, .. } => Some(Ok(Reply::Size(*size))),
            Request::RecordModified { is_set: false, .. } => Some(Ok(Reply::Done)),
            Request::Create { .. }
            | Request::MakeDirectory { .. }
            | Request::Rename { .. }
            | Request::Remove { .. }
            | Request::SetDefaults { .. }
            | Request::Drop { .. }
            | Request::Forget { .. }
            | Request::KeepSize { .. }
            | Request::SetModified { .. }
            | Request::RecordModified { .. } => Some(Err(Fault::ReadOnly)),
            _ => None,
        }
    }

    /// Refuses a change of the catalogue that names what this server does not have.
    fn check_change(&self, change: &Request) -> Result<(), Fault> {
        match change {
            Request::Create { record, .. } => {
                self.check_record(record)?;
                self.check_policy(&record.buffering)
            }
            Request::SetDefaults { defaults, .. } => self.check_policy(&defaults.buffering),
            _ => Ok(()),
        }
    }

    /// Passes a request to the catalogue. A change runs to its end even when the client leaves:
    /// otherwise records and memory could come to differ.
    async fn change_catalogue(self: &Rc<Self>, request: Request) -> Result<Reply, Fault> {
        if self.catalogue.is_none() {
            let cause = "server 0 keeps the catalogue".to_owned();
            return Err(Fault::BadRequest { cause });
        }
        let (server, answer) = (Rc::clone(self), Rc::new(Answered::default()));
        let shared = Rc::clone(&answer);
        self.changes.spawn(async move {
            if let Some(catalogue) = &server.catalogue {
                let outcome = catalogue.serve(request).await;
                *shared.outcome.borrow_mut() = Some(outcome);
                shared.is_there.notify();
            }
            Ok(())
        });
        answer.is_there.until(|| answer.outcome.borrow_mut().take()).await
    }

    async fn open(
        self: &Rc<Self>,
        from: PeerId,
        record: FileRecord,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_record(&record)?;
        let record = self.with_kept_size(record).await?;
        let (file, buffering, size) = (record.file, record.buffering, record.size());
        let opened = self.clients.with(from, |session| self.files.open(session.files(), record));
        let gone = || Fault::BadRequest { cause: "the client has no session".to_owned() };
        if opened.ok_or_else(gone)?? {
            self.write_failures.opened(file, from);
        }
        self.cache.declare(file, buffering);
        let measured = self.measure(&self.files.get(file)?).await;
        // The client may have closed it meanwhile.
        self.forget_unused(file);
        measured?;
        self.resize(file, size).await
    }

    fn set_modified(&self, file: FileId, modified: Timestamp) -> Result<Answer<W::Payload>, Fault> {
        self.files.get(file)?.set_modified(modified);
        Ok(Reply::Done.into())
    }

    fn close(
        self: &Rc<Self>,
        from: PeerId,
        file: FileId,
        recorded: FileSize,
    ) -> Result<Answer<W::Payload>, Fault> {
        let known = self.files.get(file)?;
        self.kept_sizes.recorded(file, recorded);
        let close = |session: &Session<W>| self.files.close(session.files(), file);
        let is_last = self.clients.with(from, close).unwrap_or(false);
        if is_last && self.closed(file) {
            return Ok(Reply::Nameless.into());
        }
        let modified = known.modified_since_open();
        Ok(modified.map_or(Reply::Done, |at| Reply::Modified { at }).into())
    }

    pub(crate) fn check_record(&self, record: &FileRecord) -> Result<(), Fault> {
        catalogue::check_record(record, self.config.servers)?;
        let (wanted, disks) = (record.stripe.disks_per_server, self.world.disks().len());
        if wanted as usize > disks {
            let cause = format!(
                "the file is on {wanted} disks of each server, and this server has {disks}"
            );
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }

    /// Refuses a new file with a replacement policy that does not exist here. (An existing file can
    /// be used without its policy.)
    fn check_policy(&self, buffering: &Buffering) -> Result<(), Fault> {
        let (wanted, policies) = (buffering.replacement(), &self.config.policies);
        if policies.has(wanted) {
            return Ok(());
        }
        let added: Vec<String> = policies.added().map(|name| name.to_string()).collect();
        let added = if added.is_empty() { "none".to_owned() } else { added.join(", ") };
        let cause = format!(
            "server {} has no replacement policy {wanted}; its program adds {added}",
            self.config.id.0
        );
        Err(Fault::BadRequest { cause })
    }

    /// Aborts an active transfer of this client, if there is one of this name.
    fn cancel(&self, from: PeerId, transfer: TransferName) -> Reply {
        let active = match transfer {
            TransferName::Call(call) => {
                self.groups.cancel(from, call).then_some(TransferKey::Call(call))
            }
            TransferName::Part(number) => Some(TransferKey::Part(from, number)),
        };
        if let Some(active) = active {
            self.active_transfers.abort(active, Fault::Cancelled);
        }
        Reply::Done
    }

    /// Frees all that the server holds of a file, even one in use. Requests for it fail from now
    /// on, and collectives on it end first.
    pub(crate) async fn drop_file(&self, file: FileId) -> Result<Answer<W::Payload>, Fault> {
        let known = self.files.forget(file);
        self.kept_sizes.forget(file);
        self.client_caches.files.forget(file);
        let name = known.map_or_else(|| file.to_string(), |known| known.name().clone());
        self.active_transfers.abort_on(file, &Fault::NoSuchFile { name });
        self.active_transfers.until_aborted_ended(file).await;
        self.cache.discard(file).await;
        let removed = self.disks.remove(file).await;
        // If that fails, an obsolete record stays.
        let _ = self.kept_sizes.settle().await;
        removed.map(|()| Reply::Done.into())
    }

    async fn status(&self) -> Result<Answer<W::Payload>, Fault> {
        let disks = self.disks.spaces().await?;
        let status = ServerStatus {
            clients: self.clients.count() as u32,
            requests: self.counters.requests(),
            bytes_moved: self.counters.bytes_moved(),
            cache_bytes: self.cache.bytes(),
            dirty_bytes: self.cache.dirty_bytes(),
            collective_bytes: self.memory.buffer_bytes(),
            disks,
            files: self.catalogue.as_ref().map_or_else(Vec::new, Catalogue::files),
        };
        Ok(Reply::Status(status).into())
    }
}
