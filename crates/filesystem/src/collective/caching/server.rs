//! The server's side of caching: ReadIOP of Figure 2a (TOCS 1997).

use crate::server::Server;
use crate::server::disk_fault;
use crate::server::requests::Answer;
use std::rc::Rc;
use units::{ByteRange, FileId, PeerId, Run};
use wire::{Fault, FileRecord, FlushRequest, ReadRequest, Reply, WriteRequest};
use world::{Disk, Payload, Place, World};

/// Answers with bytes of a block, then reads one block ahead.
pub(crate) async fn read<W: World>(
    server: &Rc<Server<W>>,
    request: ReadRequest,
) -> Result<Answer<W::Payload>, Fault> {
    let file = server.files.get(request.file)?;
    let range = check_range(server, &file, request.block, request.offset, request.length)?;
    server.world.compute(server.config.costs.cache_read).await;
    server.cache.prefetch_before(&file, request.block);
    let payload = server.cache.read(&file, request.block, range).await?;
    server.cache.prefetch_after(&file, request.block);
    server.count_moved(request.length);
    let place = Place { region: request.region, offset: request.region_offset };
    Ok(Answer { reply: Reply::Done, data: Some((payload, place)) })
}

/// Copies the bytes that came along into the cache.
pub(crate) async fn write<W: World>(
    server: &Rc<Server<W>>,
    request: WriteRequest,
    body: Option<W::Payload>,
) -> Result<Answer<W::Payload>, Fault> {
    let file = server.files.get(request.file)?;
    let missing = || Fault::BadRequest { cause: "a write came without data".to_owned() };
    let body = body.ok_or_else(missing)?;
    let length = body.length();
    check_range(server, &file, request.block, request.offset, length)?;
    let costs = &server.config.costs;
    server.world.compute(costs.cache_write + costs.copy(length)).await;
    let run = Run::contiguous(request.offset, length);
    server.cache.write(&file, request.block, &[run], body).await?;
    server.count_moved(length);
    Ok(Reply::Done.into())
}

/// Waits for write-behind and prefetches, and for stable storage if that is asked.
pub(crate) async fn flush<W: World>(
    server: &Rc<Server<W>>,
    from: PeerId,
    request: FlushRequest,
) -> Result<Answer<W::Payload>, Fault> {
    server.files.get(request.file)?;
    server.cache.flush(request.file).await;
    let synced = if request.sync { server.sync(request.file).await } else { Ok(()) };
    let told = server.cache.failures.tell(request.file, from);
    synced.and(told).map(|()| Reply::Done.into())
}

/// The range within the block, if this server has the block and the block has the range.
fn check_range<W: World>(
    server: &Server<W>,
    file: &FileRecord,
    block: u64,
    offset: u64,
    length: u64,
) -> Result<ByteRange, Fault> {
    let block_length = file.stripe.block_range(block, file.bytes).length();
    let range = ByteRange::checked_at(offset, length);
    let inside = range.filter(|range| !range.is_empty() && range.end <= block_length);
    let here = file.server_of(block) == server.config.id;
    inside.filter(|_| here).ok_or_else(|| Fault::BadRequest {
        cause: format!(
            "{length} bytes at {offset} of block {block} of {:?} are not here: the block has \
             {block_length} bytes on {}",
            file.name,
            file.server_of(block),
        ),
    })
}

impl<W: World> Server<W> {
    /// Waits until a file is on stable storage, on every disk. A disk that fails may have lost what
    /// anyone has written, and may not say so again: all are told.
    pub(crate) async fn sync(&self, file: FileId) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for disk in self.world.disks() {
            if let Err(error) = disk.sync(file).await {
                let fault = disk_fault(self.config.id, &error);
                self.cache.failures.record(file, fault.clone());
                outcome = outcome.and(Err(fault));
            }
        }
        outcome
    }

    pub(crate) fn count_moved(&self, bytes: u64) {
        self.counters.bytes_moved.set(self.counters.bytes_moved.get() + bytes);
    }
}
