//! A server puts records that match into the memories of clients.

use super::super::access_checks::transfer_fault;
use super::active::{ActiveSelection, FoundBlock};
use super::scan;
use crate::server::Server;
use std::rc::Rc;
use units::{ClientId, PeerId, PieceRun, RegionId, Run};
use wire::{Fault, TakenRecords};
use world::{Memory, Payload, World};

/// Bytes from which records are put as they are, instead of together with others.
const LARGE_BYTES: u64 = 1 << 17;

/// Bytes of records that are put together.
const TOGETHER_BYTES: u64 = 1 << 20;

/// Puts records into the memory of a client. Returns the number of bytes.
pub(super) async fn deliver<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    (peer, region): (PeerId, RegionId),
    destination: u32,
    places: &[TakenRecords],
) -> Result<u64, Fault> {
    let mut delivery = Delivery { server, peer, region, waiting: Vec::new(), bytes: 0, moved: 0 };
    for place in places {
        let pieces = pieces_of(server, selection, destination, place).await?;
        for (at, records) in pieces {
            delivery.add(at, records).await?;
        }
    }
    delivery.put_waiting().await?;
    Ok(delivery.moved)
}

/// Returns the records of one place, in one or two pieces, each with its first byte in the memory.
async fn pieces_of<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    destination: u32,
    place: &TakenRecords,
) -> Result<Vec<(u64, W::Payload)>, Fault> {
    let record_bytes = u64::from(selection.selector.borrow().records().record_bytes);
    let bad = || Fault::BadRequest { cause: "the block has fewer such records".to_owned() };
    let (before, count, last, kept) = {
        let blocks = selection.blocks.borrow();
        let found = blocks.get(&place.block).ok_or_else(bad)?;
        let (before, count) = found.packed_of(destination);
        (before, count, found.last_of(destination).cloned(), found.records.clone())
    };
    let end = u64::from(place.skipped) + u64::from(place.count);
    if end > u64::from(count) + u64::from(last.is_some()) {
        return Err(bad());
    }
    let packed = place.count.min(count.saturating_sub(place.skipped));
    let mut pieces = Vec::new();
    if packed > 0 {
        let records = match kept {
            Some(records) => records,
            None => read_again(server, selection, place.block).await?,
        };
        let from = u64::from(before + place.skipped) * record_bytes;
        pieces.push((place.at, records.slice(from, u64::from(packed) * record_bytes)));
    }
    if packed < place.count
        && let Some(last) = last
    {
        let at = place.at.checked_add(u64::from(packed) * record_bytes).ok_or_else(bad)?;
        pieces.push((at, last));
    }
    Ok(pieces)
}

/// Reads a block again whose records had no room.
async fn read_again<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    block: u64,
) -> Result<W::Payload, Fault> {
    let (disk, bytes) = {
        let file = &selection.file;
        (file.stripe.locate(block).disk, file.block_length(block))
    };
    let _permit = server.memory().buffers(disk).take(server.world(), bytes).await;
    let (found, _): (FoundBlock<W::Payload>, _) = scan::find(server, selection, block).await?;
    let is_as_before = selection
        .blocks
        .borrow()
        .get(&block)
        .is_some_and(|before| before.destinations == found.destinations);
    found.records.filter(|_| is_as_before && selection.is_unchanged()).ok_or_else(|| {
        Fault::TransferFailed {
            cause: format!(
                "{:?} was changed while records of it were selected, and there was no room to keep \
             those that matched",
                *selection.file.name()
            ),
        }
    })
}

/// Records on their way to the memory of a client.
struct Delivery<'a, W: World> {
    server: &'a Rc<Server<W>>,
    peer: PeerId,
    region: RegionId,
    /// Records that wait for others, and their first bytes in the memory.
    waiting: Vec<(u64, W::Payload)>,
    bytes: u64,
    moved: u64,
}

impl<W: World> Delivery<'_, W> {
    async fn add(&mut self, at: u64, records: W::Payload) -> Result<(), Fault> {
        let length = records.length();
        if length >= LARGE_BYTES {
            let pieces = [piece(0, at, length)];
            return self.put(&pieces, &records).await;
        }
        self.waiting.push((at, records));
        self.bytes += length;
        if self.bytes >= TOGETHER_BYTES { self.put_waiting().await } else { Ok(()) }
    }

    /// Puts the records that wait, as one transfer.
    async fn put_waiting(&mut self) -> Result<(), Fault> {
        let (waiting, bytes) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.bytes));
        if bytes == 0 {
            return Ok(());
        }
        let memory = self.server.world().memory(bytes);
        let mut pieces = Vec::with_capacity(waiting.len());
        let mut from = 0;
        for (at, records) in waiting {
            let length = records.length();
            memory.scatter(&[Run::contiguous(from, length)], &records);
            pieces.push(piece(from, at, length));
            from += length;
        }
        self.put(&pieces, &memory.freeze()).await
    }

    async fn put(&mut self, pieces: &[PieceRun], records: &W::Payload) -> Result<(), Fault> {
        let bytes = pieces.iter().map(|piece| piece.length).sum();
        let put = self.server.world().put(self.peer, self.region, pieces, records);
        let on = (self.peer, units::DiskId(0));
        let moved = self.server.memory().watchdog().watch(on, bytes, put).await;
        moved.map_err(|error| transfer_fault(ClientId(0), error))?;
        self.moved += bytes;
        Ok(())
    }
}

fn piece(offset: u64, memory_offset: u64, length: u64) -> PieceRun {
    PieceRun { offset, stride: length, memory_offset, memory_stride: length, length, count: 1 }
}
