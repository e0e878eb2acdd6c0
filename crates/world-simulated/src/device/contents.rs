//! The contents of the objects of a simulated disk.

use std::collections::BTreeMap;
use units::Run;
use world::Memory;
use world::payload::Kind;

/// The written ranges of one object. For data that is only a length it stores nothing but the end,
/// so terabytes cost no memory.
pub(crate) struct Contents<P> {
    disk: u32,
    object: u64,
    /// Written pieces by offset, without overlaps.
    pieces: BTreeMap<u64, P>,
    /// One past the last byte that was written and not cut off.
    end: u64,
}

impl<P: Kind> Contents<P> {
    pub(crate) fn new(disk: u32, object: u64) -> Self {
        Self { disk, object, pieces: BTreeMap::new(), end: 0 }
    }

    /// Length of the object in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn write(&mut self, offset: u64, payload: P) {
        if payload.length() == 0 {
            return;
        }
        let end = offset + payload.length();
        self.end = self.end.max(end);
        if !P::REMEMBERED {
            return;
        }
        self.cut_at(offset);
        self.cut_at(end);
        let covered: Vec<u64> = self.pieces.range(offset..end).map(|(&start, _)| start).collect();
        for start in covered {
            self.pieces.remove(&start);
        }
        self.pieces.insert(offset, payload);
    }

    pub(crate) fn read(&self, offset: u64, length: u64) -> P {
        let end = offset + length;
        let before = self.pieces.range(..=offset).next_back();
        if let Some((&start, piece)) = before
            && end <= start + piece.length()
        {
            return piece.slice(offset - start, length);
        }
        let unwritten = P::unwritten(self.disk, self.object, offset, length);
        if self.pieces.is_empty() {
            return unwritten;
        }
        let memory = unwritten.thaw();
        let first = before.map_or(offset, |(&start, _)| start);
        for (&start, piece) in self.pieces.range(first..end) {
            let from = start.max(offset);
            let to = (start + piece.length()).min(end);
            if from < to {
                let part = piece.slice(from - start, to - from);
                memory.scatter(&[Run::contiguous(from - offset, to - from)], &part);
            }
        }
        memory.freeze()
    }

    /// Cuts off everything beyond the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: u64) {
        self.end = self.end.min(length);
        self.cut_at(length);
        self.pieces.split_off(&length);
    }

    fn cut_at(&mut self, at: u64) {
        let Some((&start, piece)) = self.pieces.range(..at).next_back() else { return };
        let length = piece.length();
        if at < start + length {
            let head = piece.slice(0, at - start);
            let tail = piece.slice(at - start, start + length - at);
            self.pieces.insert(start, head);
            self.pieces.insert(at, tail);
        }
    }
}
