//! Open object: its bytes, and the checksums that they must match.
//!
//! Invariants:
//!
//! - Bytes are returned, or kept beside bytes that are written, only after the whole pieces that
//!   hold them matched their checksums.
//! - A write marks its pieces in flux, writes the bytes, then stores the new checksums, so that a
//!   process killed in between leaves nothing unreadable.

use super::checksums::{Checksum, Checksums, PIECE_BYTES, pieces_of};
use super::data::{Data, SECTOR_BYTES};
use super::extent_cache::ObjectExtents;
use super::extents::extents;
use super::failure::Failure;
use super::preallocation::Preallocation;
use super::verified_cache::VerifiedCache;
use crate::memory::{RealMemory, RealPayload, thaw};
use std::sync::Arc;
use units::{ByteRange, FileId};
use world::{Damage, Memory, Payload};

/// Bytes read at a time through the page cache when they are also verified.
const PART_BYTES: u64 = 4 * PIECE_BYTES;

/// Open object.
pub(super) struct Object {
    id: FileId,
    data: Arc<Data>,
    /// `None` when the disk keeps no checksums, or those of this object could not be created: then
    /// all its pieces are in flux.
    sums: Option<Checksums>,
    reservations: Preallocation,
    /// Version of the extents; changes whenever the object may have moved.
    version: u64,
    /// True if some bytes had no physical address at the last query.
    is_unsettled: bool,
}

/// Result of a read.
pub(super) enum Found {
    /// Verified bytes.
    Bytes(RealPayload),
    /// Direct read, to be executed before the object changes.
    OnDevice(OnDevice),
}

/// Direct read of an object, with the checksums to verify.
pub(super) struct OnDevice {
    id: FileId,
    data: Arc<Data>,
    /// Whole pieces that hold the requested bytes.
    span: ByteRange,
    /// Checksums of all those pieces, none in flux; or empty.
    sums: Vec<Checksum>,
    /// Requested bytes.
    range: ByteRange,
}

/// Piece that a write covers in part, with its future contents.
struct Edge {
    piece: u64,
    memory: RealMemory,
    /// New bytes of the piece.
    new: ByteRange,
}

impl Object {
    /// Wraps an open file. `version` was used for no other object of the disk.
    pub(super) fn new(
        id: FileId,
        data: Data,
        sums: Option<Checksums>,
        reservations: Preallocation,
        version: u64,
    ) -> Self {
        let data = Arc::new(data);
        Self { id, data, sums, reservations, version, is_unsettled: false }
    }

    /// Returns the extents of the object; `None` if `version` is current.
    pub(super) fn locate(&mut self, version: Option<u64>) -> Option<ObjectExtents> {
        if version == Some(self.version) && !self.is_unsettled {
            return None;
        }
        let (extents, is_settled) = extents(&*self.data).ok()?;
        self.is_unsettled = !is_settled;
        Some(ObjectExtents { version: self.version, extents })
    }

    /// Marks the object as possibly moved; `version` is a new one.
    pub(super) fn moves(&mut self, version: u64) {
        self.version = version;
    }

    /// Frees preallocated space beyond the end.
    pub(super) fn give_back(&mut self) {
        self.reservations.give_back(&self.data);
    }

    /// True if the bytes have checksums.
    pub(super) fn has_sums(&self) -> bool {
        self.sums.is_some()
    }

    /// Number of the generation of the last change, if the bytes have checksums.
    pub(super) fn generation(&self) -> Option<u32> {
        self.sums.as_ref().map(Checksums::generation)
    }

    /// Sets or removes the checksums of the object.
    pub(super) fn set_sums(&mut self, sums: Option<Checksums>) {
        self.sums = sums;
    }

    /// Returns the file of bytes.
    pub(super) fn data(&self) -> &Data {
        &self.data
    }

    /// Reads the bytes of `range`; fails if a piece that holds some is damaged.
    pub(super) fn read(
        &mut self,
        range: ByteRange,
        recent: &mut VerifiedCache,
    ) -> Result<Found, Failure> {
        let span = self.span(range);
        if span.length() == PIECE_BYTES && range != span {
            let piece = self.piece(span.start / PIECE_BYTES, recent)?;
            return Ok(Found::Bytes(part_of(&piece, within(range, span.start))));
        }
        if let Some(found) = self.on_device(range, span)? {
            return Ok(Found::OnDevice(found));
        }
        let memory = RealMemory::new(span.length() as usize);
        let mut bytes = memory.bytes_mut();
        for part in self.parts(span) {
            let part_bytes = &mut bytes[within(part, span.start)];
            self.data.read(part_bytes, part.start)?;
            self.verify(part, part_bytes)?;
        }
        drop(bytes);
        let bytes = memory.freeze().slice(range.start - span.start, range.length());
        Ok(Found::Bytes(bytes))
    }

    /// Returns the read as a direct read for another thread, if all its pieces have checksums.
    fn on_device(&self, range: ByteRange, span: ByteRange) -> Result<Option<OnDevice>, Failure> {
        if !self.data.is_direct() && !self.data.is_direct_for(span) {
            return Ok(None);
        }
        let sums = match &self.sums {
            Some(sums) => sums.read(pieces_of(span))?,
            None => Vec::new(),
        };
        if sums.contains(&Checksum::IN_FLUX) {
            return Ok(None);
        }
        let data = Arc::clone(&self.data);
        Ok(Some(OnDevice { id: self.id, data, span, sums, range }))
    }

    /// Returns a whole piece, verified now or recently.
    fn piece(&mut self, piece: u64, recent: &mut VerifiedCache) -> Result<RealPayload, Failure> {
        if let Some(bytes) = recent.piece(self.id, piece) {
            return Ok(bytes);
        }
        let memory = RealMemory::new(PIECE_BYTES as usize);
        let all = ByteRange::at(piece * PIECE_BYTES, PIECE_BYTES);
        memory.with_bytes_mut(|bytes| {
            self.data.read(bytes, all.start)?;
            self.verify(all, bytes)
        })?;
        let bytes = memory.freeze();
        recent.keep(self.id, piece, bytes.clone());
        Ok(bytes)
    }

    /// Writes `payload` to `range`; both have the same length.
    pub(super) fn write(
        &mut self,
        range: ByteRange,
        payload: &RealPayload,
        recent: &mut VerifiedCache,
    ) -> Result<(), Failure> {
        let bytes = payload.bytes();
        self.reservations.reserve(&self.data, range);
        if self.sums.is_none() && !self.data.is_direct() {
            return Ok(self.data.write(bytes, range.start)?);
        }
        let edges = self.edges(range, bytes, recent)?;
        let pieces = pieces_of(range);
        recent.forget(self.id, pieces.clone());
        if let Some(sums) = &mut self.sums {
            sums.put_in_flux(pieces.clone())?;
        }
        let mut new = Vec::new();
        if self.data.is_direct() {
            let before = self.data.length()?;
            let written = self.write_parts(range, bytes, &edges, &mut new);
            let is_cut = self.end_at(if written.is_ok() { range.end.max(before) } else { before });
            written.and(is_cut)?;
        } else {
            self.write_parts(range, bytes, &edges, &mut new)?;
        }
        if let Some(sums) = &mut self.sums {
            sums.write(pieces.start, &new)?;
        }
        for Edge { piece, memory, .. } in edges {
            recent.keep(self.id, piece, memory.freeze());
        }
        Ok(())
    }

    /// Truncates the object to `length`.
    pub(super) fn truncate(
        &mut self,
        length: u64,
        recent: &mut VerifiedCache,
    ) -> Result<(), Failure> {
        let end = self.data.length()?;
        if end <= length {
            return Ok(());
        }
        let cut = ByteRange::new(length, length.next_multiple_of(PIECE_BYTES));
        let zeros = vec![0; cut.length() as usize];
        let edges = self.edges(cut, &zeros, recent)?;
        recent.forget(self.id, length / PIECE_BYTES..u64::MAX);
        let kept = length.div_ceil(PIECE_BYTES);
        if let Some(sums) = &mut self.sums {
            sums.put_in_flux(length / PIECE_BYTES..end.div_ceil(PIECE_BYTES))?;
        }
        self.data.truncate(length)?;
        self.reservations.truncated(length);
        let Some(sums) = &mut self.sums else { return Ok(()) };
        sums.truncate(kept)?;
        if let Some(edge) = edges.first() {
            sums.write(edge.piece, &[edge.sum()])?;
        }
        Ok(())
    }

    /// Returns when all written bytes are on stable storage.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        if self.sums.as_ref().is_some_and(Checksums::is_synced) {
            return Ok(());
        }
        self.data.sync()?;
        match &mut self.sums {
            Some(sums) => Ok(sums.sync(self.data.length()?)?),
            None => Ok(()),
        }
    }

    /// Returns the range to read for `range`: whole pieces or sectors, if they must be verified or
    /// aligned.
    fn span(&self, range: ByteRange) -> ByteRange {
        if self.sums.is_none() && !self.data.is_direct() {
            let start = range.start / SECTOR_BYTES * SECTOR_BYTES;
            let sectors = ByteRange::new(start, range.end.next_multiple_of(SECTOR_BYTES));
            return if self.data.is_direct_for(range) { sectors } else { range };
        }
        let pieces = pieces_of(range);
        ByteRange::new(pieces.start * PIECE_BYTES, pieces.end * PIECE_BYTES)
    }

    /// Splits `range` into parts of whole pieces. Through the page cache they are so small that
    /// they are still in the processor's cache when they are verified.
    fn parts(&self, range: ByteRange) -> impl Iterator<Item = ByteRange> + use<> {
        let is_whole = self.data.is_direct() || self.sums.is_none();
        let part_bytes = if is_whole { u64::MAX } else { PART_BYTES };
        let first = range.start / PIECE_BYTES * PIECE_BYTES;
        let parts = ByteRange::new(first, range.end).windows(part_bytes);
        parts.map(move |part| part.intersect(range))
    }

    /// Verifies whole pieces, and stores checksums of those in flux.
    fn verify(&mut self, span: ByteRange, bytes: &[u8]) -> Result<(), Failure> {
        let Some(sums) = &mut self.sums else { return Ok(()) };
        let pieces = pieces_of(span);
        let known = sums.read(pieces.clone())?;
        compare(self.id, pieces.start, &known, bytes)?;
        if known.contains(&Checksum::IN_FLUX) {
            let settled = known.iter().zip(bytes.chunks(PIECE_BYTES as usize));
            let settled: Vec<Checksum> = settled.map(|(sum, piece)| sum.settled(piece)).collect();
            // After an error they stay in flux, and the next reader tries again.
            let _ = sums.write(pieces.start, &settled);
        }
        Ok(())
    }

    /// Returns the pieces that a write of `bytes` to `range` covers in part: the first, the last,
    /// or none.
    fn edges(
        &mut self,
        range: ByteRange,
        bytes: &[u8],
        recent: &mut VerifiedCache,
    ) -> Result<Vec<Edge>, Failure> {
        let pieces = pieces_of(range);
        let mut edges = Vec::new();
        for piece in pieces.clone().take(1).chain(pieces.skip(1).last()) {
            let all = ByteRange::at(piece * PIECE_BYTES, PIECE_BYTES);
            let new = range.intersect(all);
            if new == all {
                continue;
            }
            let old = self.piece(piece, recent)?;
            recent.forget(self.id, piece..piece + 1);
            // Without a copy, as no other handle exists.
            let memory = thaw(old);
            memory.with_bytes_mut(|whole| {
                whole[within(new, all.start)].copy_from_slice(&bytes[within(new, range.start)]);
            });
            edges.push(Edge { piece, memory, new });
        }
        Ok(edges)
    }

    /// Writes `bytes` to `range`, and appends the checksums of its pieces to `sums`, if there are
    /// any.
    fn write_parts(
        &self,
        range: ByteRange,
        bytes: &[u8],
        edges: &[Edge],
        sums: &mut Vec<Checksum>,
    ) -> Result<(), Failure> {
        for part in self.parts(range) {
            if self.sums.is_some() {
                sums.extend(pieces_of(part).map(|piece| sum_of(piece, range, bytes, edges)));
            }
            self.write_data(part, &bytes[within(part, range.start)], edges)?;
        }
        Ok(())
    }

    /// Truncates the file to `end`, after writes of whole sectors made it longer.
    fn end_at(&mut self, end: u64) -> Result<(), Failure> {
        if self.data.length()? > end {
            self.data.truncate(end)?;
            self.reservations.truncated(end);
        }
        Ok(())
    }

    /// Writes `bytes` to `range`; for direct I/O the edges are rounded to sectors.
    fn write_data(&self, range: ByteRange, bytes: &[u8], edges: &[Edge]) -> Result<(), Failure> {
        if !self.data.is_direct() {
            return Ok(self.data.write(bytes, range.start)?);
        }
        let mut whole = range;
        for edge in edges {
            let start = edge.piece * PIECE_BYTES;
            let sectors = ByteRange::new(
                edge.new.start / SECTOR_BYTES * SECTOR_BYTES,
                edge.new.end.next_multiple_of(SECTOR_BYTES),
            );
            self.data.write(&edge.memory.bytes()[within(sectors, start)], sectors.start)?;
            if edge.new.start == whole.start {
                whole.start = edge.new.end;
            } else {
                whole.end = edge.new.start;
            }
        }
        Ok(self.data.write(&bytes[within(whole, range.start)], whole.start)?)
    }
}

impl OnDevice {
    /// Reads and verifies the bytes.
    pub(super) fn read(self) -> Result<RealPayload, Failure> {
        let memory = RealMemory::new(self.span.length() as usize);
        memory.with_bytes_mut(|bytes| {
            self.data.read(bytes, self.span.start)?;
            compare(self.id, pieces_of(self.span).start, &self.sums, bytes)
        })?;
        Ok(memory.freeze().slice(self.range.start - self.span.start, self.range.length()))
    }
}

/// Verifies whole pieces, from `first` on, against their checksums.
fn compare(id: FileId, first: u64, sums: &[Checksum], bytes: &[u8]) -> Result<(), Failure> {
    let mut pieces = (first..).zip(sums).zip(bytes.chunks(PIECE_BYTES as usize));
    match pieces.find(|((_, sum), bytes)| !sum.allows(bytes)) {
        Some(((piece, _), _)) => {
            let bytes = ByteRange::at(piece * PIECE_BYTES, PIECE_BYTES);
            Err(Failure::Corrupt(id, bytes, Damage::Mismatch))
        }
        None => Ok(()),
    }
}

impl Edge {
    fn sum(&self) -> Checksum {
        Checksum::of(&self.memory.bytes())
    }
}

/// Returns the checksum of a piece after a write of `bytes` to `range`, which has `edges`.
fn sum_of(piece: u64, range: ByteRange, bytes: &[u8], edges: &[Edge]) -> Checksum {
    match edges.iter().find(|edge| edge.piece == piece) {
        Some(edge) => edge.sum(),
        None => {
            let all = ByteRange::at(piece * PIECE_BYTES, PIECE_BYTES);
            Checksum::of(&bytes[within(all, range.start)])
        }
    }
}

/// Copies some bytes of a piece: a small part must not keep all of it in memory.
fn part_of(piece: &RealPayload, bytes: std::ops::Range<usize>) -> RealPayload {
    let memory = RealMemory::new(bytes.len());
    memory.with_bytes_mut(|part| part.copy_from_slice(&piece.bytes()[bytes]));
    memory.freeze()
}

/// Converts `bytes` to indices into a buffer that begins at `start`.
fn within(bytes: ByteRange, start: u64) -> std::ops::Range<usize> {
    (bytes.start - start) as usize..(bytes.end - start) as usize
}
