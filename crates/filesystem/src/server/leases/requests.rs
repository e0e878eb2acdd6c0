//! Requests of clients with leases, and the recall of leases.

use super::file_leases::Turn;
use crate::scale::rare;
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use crate::server::transfers::write_budget::WritePermit;
use futures_util::future::{join_all, select};
use policy::{GatheredPart, GatheredWrite};
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use units::{ByteRange, Duration, FileId, PeerId, Run};
use wire::{
    Fault, GATHERED_BYTES_MAX, GATHERED_WRITES_MAX, Message, Reply, RequestId, WriteGathered,
};
use world::{Memory, Payload, World};

/// Number of writes of one file that the server remembers, to put those of other clients in order.
/// A client whose flush makes it more waits until others have flushed as much.
const REMEMBERED_WRITES_MAX: usize = 1 << 17;

/// Time that the end of a server waits for the gathered writes of its clients.
const STOP_TIMEOUT: Duration = Duration::from_ms(5_000);

/// Write that is not gathered, of a file of which clients gather writes.
pub(crate) struct OrderedWrite<'a> {
    turn: Turn<'a>,
    client: PeerId,
    stamp: u64,
}

impl<W: World> Server<W> {
    /// Puts a write that is not gathered in order with those that are, and waits until no client
    /// keeps pages of the file. Recalls all leases where there is no order. `None` if there is
    /// nothing to order then. The caller must begin the write at once.
    pub(crate) async fn order_write(&self, from: PeerId, file: FileId) -> Option<OrderedWrite<'_>> {
        let ordered = match self.leases().is_empty() {
            true => None,
            false => rare(self.order_write_with(from, file)).await,
        };
        self.exclude_readers(file, None).await;
        ordered
    }

    async fn order_write_with(&self, from: PeerId, file: FileId) -> Option<OrderedWrite<'_>> {
        let client = self.clients().first_of(from);
        let clock = self.world().clock();
        let Some(turn) = self.leases().turn_by(file, clock).await else {
            self.recall_leases(file, Some(from)).await;
            return None;
        };
        // The time of the write, which is not carried out before.
        Some(OrderedWrite { turn, client, stamp: self.world().now().as_ns() })
    }

    /// Ends a write of a range of a file that was put in order.
    pub(crate) async fn end_ordered(
        &self,
        file: FileId,
        range: ByteRange,
        ordered: OrderedWrite<'_>,
    ) {
        let OrderedWrite { turn, client, stamp } = ordered;
        turn.wrote(client, range, stamp);
        drop(turn);
        self.bound_remembered(file, stamp).await;
    }

    /// Gives a client a lease of a file that it has open.
    pub(crate) async fn lease(
        &self,
        from: PeerId,
        file: FileId,
        clock: u64,
        since: u64,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_not_read_only()?;
        // A client with a cache of its own sees writes by messages about lines.
        let may_have = !self.config().client_caches;
        if may_have {
            self.exclude_readers(file, Some(from)).await;
        }
        // The client may have closed it meanwhile.
        let session = self.clients().session(from);
        let has_open = session.is_some_and(|session| session.files().has(file));
        let is_granted = may_have && has_open && self.leases().grant(file, from, clock, since);
        Ok(Reply::Lease { is_granted }.into())
    }

    /// Waits until all clients but `except` have flushed their gathered writes of a file.
    pub(crate) async fn recall_leases(&self, file: FileId, except: Option<PeerId>) {
        if !self.leases().is_empty() {
            rare(self.recall_others(file, except)).await;
        }
    }

    async fn recall_others(&self, file: FileId, except: Option<PeerId>) {
        let except = except.map(|client| self.clients().first_of(client));
        let (told, ending) = self.leases().begin_recall(file, except);
        self.tell(told, Message::Recall { file, ends: true });
        self.leases().until_ended(file, ending).await;
    }

    /// Waits until all clients but `except` have flushed their gathered writes of all files.
    pub(crate) async fn recall_all_leases(&self, except: Option<PeerId>) {
        let files = self.leases().files().into_iter();
        join_all(files.map(|file| self.recall_leases(file, except))).await;
    }

    /// Waits for the gathered writes of all clients, since the server ends, but not for long.
    pub(crate) async fn recall_before_end(&self) {
        self.leases().close();
        let recalled = pin!(self.recall_all_leases(None));
        select(recalled, pin!(self.world().sleep(STOP_TIMEOUT))).await;
    }

    /// Sends clients a message, although whoever wants it may give up.
    pub(super) fn tell(&self, clients: Vec<PeerId>, message: Message) {
        if clients.is_empty() {
            return;
        }
        let (world, header) = (self.world().clone(), wire::encode(&message));
        self.changes().spawn(async move {
            let header: world::Header = header;
            let send = |client| world.send(client, world::Message::new(header.clone()));
            // The leases of a client that has left end when the network reports it.
            join_all(clients.into_iter().map(send)).await;
            Ok(())
        });
    }

    /// Answers a request to carry out gathered writes.
    pub(crate) async fn answer_gathered(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: Box<WriteGathered>,
        body: Option<W::Payload>,
        permit: Option<WritePermit>,
    ) -> Result<(), Infallible> {
        let written = self.write_gathered(call.0, *request, (body, permit)).await;
        self.send_reply(call, written.map(|()| Reply::Done.into())).await;
        Ok(())
    }

    async fn write_gathered(
        self: &Rc<Self>,
        from: PeerId,
        request: WriteGathered,
        (body, permit): (Option<W::Payload>, Option<WritePermit>),
    ) -> Result<(), Fault> {
        if request.writes.is_empty() && request.returns {
            // Also of a file that is not open any more.
            self.leases().end(request.file, from);
            return Ok(());
        }
        let file = self.files().get(request.file)?;
        let no_lease =
            || Fault::BadRequest { cause: "a client without a lease flushes".to_owned() };
        let turn = self.leases().turn(file.file, from).await.ok_or_else(no_lease)?;
        let writes = self.check_gathered(&file, &request, body.as_ref())?;
        if let Some(body) = body.filter(|_| !writes.is_empty()) {
            let _change = self.begin_change(&file)?;
            let parts = turn.parts(&writes);
            self.write_parts(&file, &parts, &body).await?;
            self.counters().count_moved(body.length());
        }
        turn.flushed(from, &writes, request.until);
        drop((turn, permit));
        if request.returns {
            self.leases().end(file.file, from);
        } else {
            self.bound_remembered(file.file, request.until).await;
        }
        self.write_failures().report_to(file.file, from)
    }

    /// Waits until the server remembers few enough writes of a file again, for a client that has
    /// none older than `stamp`.
    async fn bound_remembered(&self, file: FileId, stamp: u64) {
        while let Some(told) = self.leases().next_to_tell(file, stamp, REMEMBERED_WRITES_MAX).await
        {
            self.tell(told, Message::Recall { file, ends: false });
        }
    }

    /// Checks gathered writes, which may come from anyone, and returns them with whole stamps.
    fn check_gathered(
        &self,
        file: &OpenFile,
        request: &WriteGathered,
        body: Option<&W::Payload>,
    ) -> Result<Vec<GatheredWrite>, Fault> {
        let bad = |cause: String| Fault::BadRequest { cause };
        if request.writes.len() > GATHERED_WRITES_MAX {
            return Err(bad(format!("{} writes are too many to flush", request.writes.len())));
        }
        let length = request.writes.iter().try_fold(0u64, |sum, one| sum.checked_add(one.length));
        let brought = body.map_or(0, Payload::length);
        if length != Some(brought) || brought > GATHERED_BYTES_MAX {
            return Err(bad(format!("gathered writes came with {brought} bytes of data")));
        }
        let checked = |write: &GatheredWrite| {
            let range = write.range().ok_or_else(|| bad("a write has no bytes".to_owned()))?;
            let block = range.start / file.stripe.block_bytes;
            if range.end.div_ceil(file.stripe.block_bytes) != block + 1
                || file.server_of(block) != self.config().id
            {
                return Err(bad(format!("bytes {range:?} are in no block of this server")));
            }
            match range.end <= file.bytes() {
                true => {
                    let stamp = request.since.saturating_add(write.stamp);
                    Ok(GatheredWrite { stamp, ..*write })
                }
                false => Err(file.past_end()),
            }
        };
        request.writes.iter().map(checked).collect()
    }

    /// Copies parts of a flush to the cache, those of a block together.
    async fn write_parts(
        &self,
        file: &Rc<OpenFile>,
        parts: &[GatheredPart],
        body: &W::Payload,
    ) -> Result<(), Fault> {
        let costs = &self.config().costs;
        let block_of = |part: &GatheredPart| part.range.start / file.stripe.block_bytes;
        for parts in parts.chunk_by(|one, next| block_of(one) == block_of(next)) {
            let block = block_of(&parts[0]);
            let start = block * file.stripe.block_bytes;
            let bytes = file.block_length(block);
            let data = gathered_data(self.world(), parts, body, bytes);
            let written = costs.gathered_write.of(parts.len() as u64, data.length());
            self.world().compute(costs.cache_write + costs.copy(data.length()) + written).await;
            self.cache().write(file, block, &runs_of(start, parts), data).await?;
        }
        Ok(())
    }
}

/// Returns parts of a block as runs from its start. Neighbours are one run.
fn runs_of(start: u64, parts: &[GatheredPart]) -> Vec<Run> {
    let mut runs: Vec<ByteRange> = Vec::new();
    for part in parts {
        let range = ByteRange::new(part.range.start - start, part.range.end - start);
        match runs.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            Some(_) | None => runs.push(range),
        }
    }
    runs.into_iter().map(|range| Run::contiguous(range.start, range.length())).collect()
}

/// Returns the bytes of parts of a block of `block_bytes` bytes, one after the other; without a
/// copy where they lie so. But the cache keeps what makes up a whole block as it is, and would keep
/// all of a longer body with it.
fn gathered_data<W: World>(
    world: &W,
    parts: &[GatheredPart],
    body: &W::Payload,
    block_bytes: u64,
) -> W::Payload {
    let follows =
        |two: &[GatheredPart]| two[0].data_offset + two[0].range.length() == two[1].data_offset;
    let length: u64 = parts.iter().map(|part| part.range.length()).sum();
    let is_kept = length == block_bytes && length < body.length();
    if parts.windows(2).all(follows) && !is_kept {
        return body.slice(parts[0].data_offset, length);
    }
    let (memory, mut offset) = (world.memory(length), 0);
    for part in parts {
        let length = part.range.length();
        let run = Run::contiguous(offset, length);
        memory.scatter(&[run], &body.slice(part.data_offset, length));
        offset += length;
    }
    memory.freeze()
}
