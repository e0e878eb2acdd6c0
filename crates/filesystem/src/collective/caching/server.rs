//! Server side of caching: ReadIOP of Figure 2a (TOCS 1997).

use crate::scale::rare;
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use crate::server::transfers::answer_pools::LARGE_ANSWER_BYTES;
use std::convert::Infallible;
use std::rc::Rc;
use units::{ByteRange, Duration, FileId, PeerId, PieceRun, Run};
use wire::{
    BlockRequest, DigestsRequest, Fault, FlushRequest, PullRequest, ReadRequest, Reply, RequestId,
    WriteRequest,
};
use world::{Loan, Memory, Payload, World};

impl<W: World> Server<W> {
    /// Answers a request to the block cache, other than reads and writes.
    pub(crate) async fn answer_block(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: BlockRequest,
    ) -> Result<(), Infallible> {
        if let BlockRequest::Page { file, .. } | BlockRequest::PageToKeep { file, .. } = request {
            // Before there is room for the answer: others wait for that.
            self.recall_leases(file, Some(call.0)).await;
        }
        let large = match request {
            BlockRequest::Page { file, block } | BlockRequest::PageToKeep { file, block } => {
                let file = self.files().get(file).ok();
                file.map(|it| (self.source_of(it.file, block), it.block_length(block)))
            }
            BlockRequest::Digests(DigestsRequest { file, block, .. }) => {
                Some((self.source_of(file, block), LARGE_ANSWER_BYTES))
            }
            BlockRequest::Pull(_) | BlockRequest::Flush(_) | BlockRequest::DroppedPages { .. } => {
                None
            }
        };
        self.answer(call, large, rare(self.serve_block(call.0, request))).await
    }

    async fn serve_block(
        self: &Rc<Self>,
        from: PeerId,
        request: BlockRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        match request {
            BlockRequest::Pull(request) => {
                // It takes room before it waits for the client, and gathered writes need room.
                self.recall_leases(request.file, Some(from)).await;
                self.exclude_readers(request.file, None).await;
                pull(self, from, request).await
            }
            BlockRequest::Page { file, block } => page(self, file, block).await,
            BlockRequest::PageToKeep { file, block } => {
                let open = self.files().get(file)?;
                self.page_to_keep(from, &open, page(self, file, block)).await
            }
            BlockRequest::DroppedPages { file } => {
                self.readers().end(file, self.clients().first_of(from));
                Ok(Reply::Done.into())
            }
            BlockRequest::Flush(request) => {
                self.recall_leases(request.file, Some(from)).await;
                flush(self, from, request).await
            }
            BlockRequest::Digests(request) => {
                self.recall_leases(request.file, Some(from)).await;
                digests(self, request).await
            }
        }
    }
}

/// Reads bytes of a block, then prefetches one block. Returns the bytes and the processor time that
/// the caller must pay together with the answer. That is all of the time if no disk is asked, and
/// none otherwise, because it is paid before the disk request.
pub(crate) async fn read<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: ReadRequest,
) -> Result<(W::Payload, Duration), Fault> {
    server.recall_leases(request.file, Some(from)).await;
    let file = server.files().get(request.file)?;
    let range = check_range(server, &file, request.block, request.offset, request.length)?;
    let cost = server.config().costs.cache_read;
    if server.cache().prefetcher().has_nothing_to_begin(&file, request.block)
        && let Some(payload) = server.cache().read_held(&file, request.block, range)
    {
        server.counters().count_moved(request.length);
        return Ok((payload, cost));
    }
    server.world().compute(cost).await;
    server.cache().prefetcher().begin_before(&file, request.block);
    let payload = server.cache().read(&file, request.block, range).await?;
    server.cache().prefetcher().begin_after(&file, request.block);
    server.counters().count_moved(request.length);
    Ok((payload, Duration::ZERO))
}

/// Returns a whole block, which stays in the cache as long as the client holds it.
async fn page<W: World>(
    server: &Rc<Server<W>>,
    file: FileId,
    block: u64,
) -> Result<Answer<W::Payload>, Fault> {
    let file = server.files().get(file)?;
    let length = file.block_length(block);
    check_range(server, &file, block, 0, length)?;
    server.world().compute(server.config().costs.cache_read).await;
    server.cache().prefetcher().begin_before(&file, block);
    let (payload, pin) = server.cache().page(&file, block).await?;
    server.cache().prefetcher().begin_after(&file, block);
    server.counters().count_moved(length);
    let loan = pin.map(|pin| Rc::new(pin) as Loan);
    Ok(Answer { reply: Reply::Done, data: Some((payload, loan)), permit: None })
}

/// Copies the data of a write request into the cache. Returns the processor time to be paid, as
/// [`read`] does. An earlier failure of write-behind is told instead, once.
pub(crate) async fn write<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: WriteRequest,
    body: Option<W::Payload>,
) -> Result<Duration, Fault> {
    let ordered = server.order_write(from, request.file).await;
    let file = server.files().get(request.file)?;
    let missing = || Fault::BadRequest { cause: "a write came without data".to_owned() };
    let body = body.ok_or_else(missing)?;
    let length = body.length();
    check_range(server, &file, request.block, request.offset, length)?;
    server.check_not_cached(&file)?;
    server.write_failures().report_to(request.file, from)?;
    let cost = server.config().costs.cache_write + server.config().costs.copy(length);
    let run = Run::contiguous(request.offset, length);
    let is_written = server.cache().write_held(&file, request.block, run, &body);
    if !is_written {
        let _change = server.begin_change(&file)?;
        server.world().compute(cost).await;
        server.cache().write(&file, request.block, &[run], body).await?;
    }
    if is_written {
        file.changed_at(server.world().timestamp());
    }
    server.counters().count_moved(length);
    if let Some(ordered) = ordered {
        let range = in_file(&file, request.block, run);
        rare(server.end_ordered(request.file, range, ordered)).await;
    }
    Ok(if is_written { cost } else { Duration::ZERO })
}

/// Gets bytes from the client's memory when there is room for them, and copies them into the cache.
/// Data of any number of writers waits in their own memory. (Tower of Pizzas, section 3.3.2, made
/// clients wait for an acknowledgement.)
async fn pull<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: PullRequest,
) -> Result<Answer<W::Payload>, Fault> {
    let PullRequest { file, block, offset, length, region, region_offset } = request;
    let file = server.files().get(file)?;
    check_range(server, &file, block, offset, length)?;
    let _change = server.begin_change(&file)?;
    server.write_failures().report_to(file.file, from)?;
    let _room = server.cache().reserve(&file, block).await?;
    let memory = server.world().memory(length);
    let (stride, memory_offset) = (length, region_offset);
    let piece =
        PieceRun { offset: 0, stride, memory_offset, memory_stride: stride, length, count: 1 };
    let pieces = [piece];
    let get = server.world().get(from, region, &pieces, &memory);
    let at = (from, file.stripe.locate(block).disk);
    let Some(got) = server.memory().watchdog().watch_retryable(at, length, get).await else {
        // The client does not deliver the data, and others wait for the room.
        return Ok(Reply::NoRoom.into());
    };
    got.map_err(|error| Fault::TransferFailed { cause: error.to_string() })?;
    let costs = &server.config().costs;
    server.world().compute(costs.cache_write + costs.copy(length)).await;
    let run = Run::contiguous(offset, length);
    server.cache().write(&file, block, &[run], memory.freeze()).await?;
    server.counters().count_moved(length);
    Ok(Reply::Done.into())
}

/// Maximum number of digests of one answer.
const DIGESTS_MAX: u64 = 1 << 16;

/// Returns digests of the content of a block: from the cache, or from the disk where the cache does
/// not have it.
async fn digests<W: World>(
    server: &Rc<Server<W>>,
    request: DigestsRequest,
) -> Result<Answer<W::Payload>, Fault> {
    let DigestsRequest { file, block, piece_bytes } = request;
    let file = server.files().get(file)?;
    let length = file.block_length(block);
    check_range(server, &file, block, 0, length)?;
    if piece_bytes == 0 || length.div_ceil(piece_bytes) > DIGESTS_MAX {
        let cause = format!(
            "checksums of {length} bytes in pieces of {piece_bytes} are not \
                             possible"
        );
        return Err(Fault::BadRequest { cause });
    }
    let payload = match server.cache().held_block(&file, block).await? {
        Some(payload) => payload,
        None => {
            let at = file.stripe.locate(block);
            let buffers = server.memory().buffers(at.disk);
            let _permit = buffers.take(server.world(), length).await;
            server.disks().read(&file, at.disk, file.disk_offset(block), length).await?
        }
    };
    let pieces = (0..length.div_ceil(piece_bytes)).map(|piece| {
        let start = piece * piece_bytes;
        payload.slice(start, piece_bytes.min(length - start)).digest()
    });
    Ok(Reply::Digests(pieces.collect()).into())
}

/// Waits for write-behind and prefetches and, if asked, for stable storage.
async fn flush<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: FlushRequest,
) -> Result<Answer<W::Payload>, Fault> {
    let file = server.files().get(request.file)?;
    server.cache().flush(request.file).await;
    let synced = if request.sync { server.disks().sync(&file).await } else { Ok(()) };
    let reported = server.write_failures().report_to(request.file, from);
    synced.and(reported).map(|()| Reply::Done.into())
}

/// Returns the bytes of the file that a run of a block names.
fn in_file(file: &OpenFile, block: u64, run: Run) -> ByteRange {
    ByteRange::at(block * file.stripe.block_bytes + run.offset, run.length)
}

/// Returns the range within the block, if this server has the block and the block has the range.
fn check_range<W: World>(
    server: &Server<W>,
    file: &OpenFile,
    block: u64,
    offset: u64,
    length: u64,
) -> Result<ByteRange, Fault> {
    let block_length = file.block_length(block);
    let range = ByteRange::checked_at(offset, length);
    let inside = range.filter(|range| !range.is_empty() && range.end <= block_length);
    let here = file.server_of(block) == server.config().id;
    if here && inside.is_none() && range.is_some_and(|range| range.end <= file.stripe.block_bytes) {
        return Err(file.past_end());
    }
    inside.filter(|_| here).ok_or_else(|| Fault::BadRequest {
        cause: format!(
            "{length} bytes at {offset} of block {block} of {:?} are not on this server: the block \
             has {block_length} bytes on {}",
            file.name(),
            file.server_of(block),
        ),
    })
}
