//! A server looks at the records that begin in its blocks.

use super::super::disk_directed::server::blocks_in_order;
use super::active::{ActiveSelection, FoundBlock};
use super::{all_ended, job_fault};
use crate::server::Server;
use crate::server::files::open_file::OpenFile;
use futures_util::FutureExt;
use policy::{Access, Bounds, DiskOrder, ListEntry, Matches};
use std::cell::RefCell;
use std::rc::Rc;
use units::{ByteRange, DiskId, Run};
use wire::{Fault, SelectReply};
use world::{Memory, Payload, World};

/// Looks at all records that lie whole in a block of this server.
pub(super) async fn scan<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    order: DiskOrder,
) -> Result<SelectReply, Fault> {
    let file = &selection.file;
    server.place_in(file)?;
    let extent = selection.selector.borrow().records().extent();
    let disks = (0..file.stripe.disks_per_server).map(DiskId);
    let scanned = disks.map(|disk| scan_disk(server, selection, extent, order, disk).boxed_local());
    let blocks = all_ended(scanned).await?.iter().sum();
    let skipped = selection.skipped.borrow().len() as u64;
    Ok(SelectReply::Begun { blocks, skipped, head_bytes: selection.head_bytes() })
}

/// Looks at the blocks of one disk in the order of their addresses, with a few rotating buffers.
/// Returns their number.
async fn scan_disk<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    extent: ByteRange,
    order: DiskOrder,
    disk: DiskId,
) -> Result<u64, Fault> {
    let (file_offset, length) = (extent.start, extent.length());
    let all = ListEntry { file_offset, memory_offset: 0, length };
    let access = Access::lists(vec![Some(all).filter(|all| all.length > 0).into_iter().collect()]);
    let Some(order) = blocks_in_order(server, &selection.file, &access, order, disk).await else {
        return Ok(0);
    };
    let (order, bytes) =
        (RefCell::new(order), selection.file.stripe.block_bytes.min(selection.file.bytes()));
    let records = *selection.selector.borrow().records();
    let summary = server.summaries().of(&selection.file, &records);
    let next = || loop {
        let Some(block) = order.borrow_mut().next() else { return Ok(None) };
        let skipped = summary.as_ref().and_then(|summary| summary.skipped(selection, block));
        let Some(skipped) = skipped else { return Ok::<_, Fault>(Some(block)) };
        selection.skipped.borrow_mut().insert(block);
        if let Some(head) = skipped.head
            && let Err(fault) = selection.keep_head(block, head)
        {
            return Err(fault);
        }
    };
    let buffers = server.memory().buffers(disk);
    let rotate = async || {
        let mut blocks = 0;
        loop {
            let _permit = buffers.take(server.world(), bytes).await;
            let Some(block) = next()? else { return Ok::<_, Fault>(blocks) };
            blocks += 1;
            look_at(server, selection, block).await?;
        }
    };
    let count = server.config().buffers_per_disk.max(1);
    let looked_at = all_ended((0..count).map(|_| rotate().boxed_local())).await?;
    Ok(looked_at.iter().sum())
}

/// Looks at the records that begin in a block.
async fn look_at<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    block: u64,
) -> Result<(), Fault> {
    let (found, head) = find(server, selection, block).await?;
    if let Some(head) = head {
        selection.keep_head(block, head)?;
    }
    if found.is_empty() {
        return Ok(());
    }
    let destinations = found.destinations.len() * size_of::<(u32, u32)>();
    let start = found.start.as_ref().map_or(0, |(_, start)| start.length());
    selection.hold(start + destinations as u64)?;
    let kept = found.records.as_ref().map_or(0, Payload::length);
    let has_room = selection.has_room(kept);
    let records = found.records.filter(|_| has_room);
    selection.blocks.borrow_mut().insert(block, FoundBlock { records, ..found });
    Ok(())
}

/// Reads a block. Returns the records of it that match, and the start of the block that belongs to
/// a record of the block before.
pub(super) async fn find<W: World>(
    server: &Rc<Server<W>>,
    selection: &ActiveSelection<W::Payload>,
    block: u64,
) -> Result<(FoundBlock<W::Payload>, Option<W::Payload>), Fault> {
    let file = &selection.file;
    let range = file.block_range(block);
    let data = load(server, file, block, range).await?;
    let costs = &server.config().costs;
    server.world().compute(costs.block).await;
    let grid = *selection.selector.borrow().records();
    let head = grid.head_of(range);
    let head = (!head.is_empty()).then(|| copied(&data, head.start - range.start, head.length()));
    let begin = grid.beginning_in(range);
    let goes_on = !grid.rest_of(range).is_empty();
    let whole = (begin.end - begin.start) - u64::from(goes_on);
    let record_bytes = u64::from(grid.record_bytes);
    let at = grid.offset_of(begin.start).saturating_sub(range.start);
    let mut found = FoundBlock::default();
    if let Some(fields) = selection.selector.borrow().summarised() {
        // Nothing, until there are records.
        found.bounds = vec![Bounds::default(); fields.len()];
    }
    if whole > 0 {
        let records = data.slice(at, whole * record_bytes);
        let matches = match_records(server, selection, begin.start, &records).await?;
        found.records =
            (!matches.positions.is_empty()).then(|| packed(&records, &matches, record_bytes));
        let kept = matches.positions.len() as u64;
        if kept < whole {
            server.world().compute(costs.copy(kept * record_bytes)).await;
        }
        found.destinations = matches.destinations;
        found.add_bounds(selection.selector.borrow_mut().take_bounds());
    }
    if goes_on {
        let from = at + whole * record_bytes;
        found.start = Some((begin.end - 1, copied(&data, from, range.length() - from)));
    }
    Ok((found, head))
}

impl<P> Default for FoundBlock<P> {
    fn default() -> Self {
        let (destinations, bounds) = (Vec::new(), Vec::new());
        Self { destinations, records: None, start: None, bounds, last: None }
    }
}

impl<P> FoundBlock<P> {
    fn add_bounds(&mut self, bounds: Vec<Bounds>) {
        self.bounds.iter_mut().zip(bounds).for_each(|(own, more)| own.merge(more));
    }

    fn is_empty(&self) -> bool {
        self.destinations.is_empty() && self.start.is_none() && self.bounds.is_empty()
    }
}

/// Looks at records that follow one another. `first` is the number of the first. A module looks at
/// them where that delays nobody else.
async fn match_records<W: World>(
    server: &Server<W>,
    selection: &ActiveSelection<W::Payload>,
    first: u64,
    records: &W::Payload,
) -> Result<Matches, Fault> {
    let bytes = records.look_inside().ok_or_else(|| Fault::BadRequest {
        cause: "these servers hold data without bytes, which no predicate can look at".to_owned(),
    })?;
    let failed = |cause: String| Fault::BadSelection { cause };
    let apart = selection.selector.borrow().apart();
    let Some(operator) = apart else {
        server.world().compute(server.config().costs.look(records.length())).await;
        let looked_at = selection.selector.borrow_mut().look_at(first, bytes);
        return looked_at.map_err(|error| failed(error.to_string()));
    };
    let (cost, copy) = (server.config().costs.module(records.length()), bytes.to_vec());
    let answers = server.world().compute_apart(cost, move || operator.look_at(&copy)).await;
    let answers = answers.map_err(job_fault)?.map_err(|error| failed(error.to_string()))?;
    let matches = selection.selector.borrow_mut().act(first, &answers);
    matches.map_err(|error| failed(error.to_string()))
}

/// Packs records that match, in the order of their destinations.
fn packed<P: Payload>(records: &P, matches: &Matches, record_bytes: u64) -> P {
    let mut runs: Vec<Run> = Vec::new();
    for position in &matches.positions {
        let offset = u64::from(*position) * record_bytes;
        match runs.last_mut() {
            Some(run) if run.offset + run.length == offset => run.length += record_bytes,
            _ => runs.push(Run::contiguous(offset, record_bytes)),
        }
    }
    for run in &mut runs {
        run.stride = run.length;
    }
    records.gather(&runs)
}

/// Copies a small part of a block, which then need not be kept for it.
fn copied<P: Payload>(data: &P, offset: u64, length: u64) -> P {
    data.gather(&[Run::contiguous(offset, length)])
}

/// Returns a block from the cache, which may have newer data, or from the disk.
async fn load<W: World>(
    server: &Server<W>,
    file: &Rc<OpenFile>,
    block: u64,
    range: ByteRange,
) -> Result<W::Payload, Fault> {
    if let Some(held) = server.cache().held_block(file, block).await? {
        return Ok(held);
    }
    let (disk, offset) = (file.stripe.locate(block).disk, file.disk_offset(block));
    server.disks().read(file, disk, offset, range.length()).await
}

/// Looks at records that go on in other blocks, of which the rests are `body`.
pub(super) async fn complete<W: World>(
    server: &Server<W>,
    selection: &ActiveSelection<W::Payload>,
    rests: &[(u64, u32)],
    body: &W::Payload,
) -> Result<(), Fault> {
    let bad = |cause: &str| Fault::BadRequest { cause: cause.to_owned() };
    let grid = *selection.selector.borrow().records();
    let mut at = 0;
    for (block, length) in rests {
        let length = u64::from(*length);
        if at + length > body.length() {
            return Err(bad("the rests of records are longer than what was sent"));
        }
        let rest = body.slice(at, length);
        at += length;
        if selection.skipped.borrow().contains(block) {
            continue;
        }
        let record_bytes = u64::from(grid.record_bytes);
        let is_rest = |(_, start): &(u64, W::Payload)| start.length() + length == record_bytes;
        let start = {
            let mut blocks = selection.blocks.borrow_mut();
            blocks.get_mut(block).and_then(|found| found.start.take_if(|start| is_rest(start)))
        };
        let (number, start) =
            start.ok_or_else(|| bad("no record of that block has such a rest"))?;
        // Of the start, whose bytes were counted, the record is made.
        selection.hold(length)?;
        let memory = server.world().memory(record_bytes);
        memory.scatter(&[Run::contiguous(0, start.length())], &start);
        memory.scatter(&[Run::contiguous(start.length(), length)], &rest);
        let record = memory.freeze();
        let matches = match_records(server, selection, number, &record).await?;
        let bounds = selection.selector.borrow_mut().take_bounds();
        if let Some(found) = selection.blocks.borrow_mut().get_mut(block) {
            found.add_bounds(bounds);
        }
        if let Some((destination, _)) = matches.destinations.first() {
            let mut blocks = selection.blocks.borrow_mut();
            if let Some(found) = blocks.get_mut(block) {
                found.last = Some((*destination, record));
            }
        }
    }
    Ok(())
}
