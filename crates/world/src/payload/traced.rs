//! Traced data, which records the origin of each of its bytes.

use super::Kind;
use super::phantom::measure;
use crate::{Memory, Payload};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::Run;

/// Origin of a byte: its place before it moved for the first time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// Memory that was never written.
    Nowhere,
    /// The memory of a client.
    Client(u32),
    /// An object on a disk, before anything was written there.
    Disk {
        /// Number of the disk, counted over all servers.
        disk: u32,
        /// Number of the object.
        object: u64,
    },
}

/// A run of `length` bytes from `offset` of their origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Origin of the bytes.
    pub origin: Origin,
    /// Offset of the first byte in its origin.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// A payload of traced bytes.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Segments in order; neighbours are merged where they continue one another.
    segments: Rc<Vec<Segment>>,
    length: u64,
}

impl Traced {
    /// Returns the origins of the bytes, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn collect(pieces: impl IntoIterator<Item = Segment>) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        let mut length = 0;
        for piece in pieces {
            length += piece.length;
            match segments.last_mut() {
                Some(last)
                    if last.origin == piece.origin && last.offset + last.length == piece.offset =>
                {
                    last.length += piece.length;
                }
                _ if piece.length == 0 => {}
                _ => segments.push(piece),
            }
        }
        Self { segments: Rc::new(segments), length }
    }
}

impl Payload for Traced {
    fn length(&self) -> u64 {
        self.length
    }

    fn slice(&self, offset: u64, length: u64) -> Self {
        assert!(offset + length <= self.length, "a slice must lie in its payload");
        let mut at = 0;
        Self::collect(self.segments.iter().filter_map(|segment| {
            let start = at.max(offset);
            let end = (at + segment.length).min(offset + length);
            let skipped = start.saturating_sub(at);
            at += segment.length;
            let offset = segment.offset + skipped;
            (start < end).then(|| Segment { offset, length: end - start, ..*segment })
        }))
    }

    fn gather(&self, runs: &[Run]) -> Self {
        match runs {
            [run] if run.is_contiguous() => self.slice(run.offset, run.bytes()),
            _ => self.clone().thaw().gather(runs),
        }
    }

    fn look_inside(&self) -> Option<&[u8]> {
        None
    }

    fn digest(&self) -> u32 {
        self.segments.iter().fold(0, |sum, segment| {
            let (kind, place, object) = match segment.origin {
                Origin::Nowhere => (0, 0, 0),
                Origin::Client(client) => (1, client, 0),
                Origin::Disk { disk, object } => (2, disk, object),
            };
            [kind, u64::from(place), object, segment.offset, segment.length]
                .iter()
                .fold(sum, |sum, number| crc32c::crc32c_append(sum, &number.to_le_bytes()))
        })
    }

    fn xor(&self, other: &Self) -> Self {
        assert!(self.length == other.length, "both payloads must have the same length");
        Self::collect([Segment { origin: Origin::Nowhere, offset: 0, length: self.length }])
    }

    fn digest_of_xor(_: &[u32], _: u64) -> Option<u32> {
        None
    }
}

/// Memory that records the origin of each of its bytes.
#[derive(Clone, Debug)]
pub struct TracedMemory {
    /// Segments by their offset in the memory, which they cover without gap or overlap.
    contents: Rc<RefCell<BTreeMap<u64, Segment>>>,
    length: u64,
}

impl TracedMemory {
    /// Creates a memory whose byte `i` is byte `i` of `origin`.
    pub fn of(origin: Origin, length: u64) -> Self {
        let whole = Segment { origin, offset: 0, length };
        let contents = BTreeMap::from_iter((length > 0).then_some((0, whole)));
        Self { contents: Rc::new(RefCell::new(contents)), length }
    }

    fn cut(&self, offset: u64, length: u64, pieces: &mut Vec<Segment>) {
        if length == 0 {
            return;
        }
        let contents = self.contents.borrow();
        let first = contents.range(..=offset).next_back().map_or(0, |(start, _)| *start);
        for (&start, segment) in contents.range(first..offset + length) {
            let from = start.max(offset);
            let to = (start + segment.length).min(offset + length);
            if from < to {
                let offset = segment.offset + (from - start);
                pieces.push(Segment { offset, length: to - from, ..*segment });
            }
        }
    }

    fn split_at(contents: &mut BTreeMap<u64, Segment>, at: u64) {
        let Some((&start, &segment)) = contents.range(..at).next_back() else { return };
        if at < start + segment.length {
            let head = at - start;
            contents.insert(start, Segment { length: head, ..segment });
            let rest =
                Segment { offset: segment.offset + head, length: segment.length - head, ..segment };
            contents.insert(at, rest);
        }
    }

    fn overwrite(&self, mut offset: u64, pieces: &[Segment]) {
        let contents = &mut *self.contents.borrow_mut();
        for piece in pieces {
            let end = offset + piece.length;
            Self::split_at(contents, offset);
            Self::split_at(contents, end);
            let inside: Vec<u64> = contents.range(offset..end).map(|(&start, _)| start).collect();
            for start in inside {
                contents.remove(&start);
            }
            contents.insert(offset, *piece);
            offset = end;
        }
    }
}

impl Memory for TracedMemory {
    type Payload = Traced;

    fn length(&self) -> u64 {
        self.length
    }

    fn gather(&self, runs: &[Run]) -> Traced {
        measure(runs, self.length);
        let mut pieces = Vec::new();
        for run in runs {
            for offset in run.offsets() {
                self.cut(offset, run.length, &mut pieces);
            }
        }
        Traced::collect(pieces)
    }

    fn scatter(&self, runs: &[Run], payload: &Traced) {
        let total = measure(runs, self.length);
        assert!(total == payload.length, "a scatter must place every byte of its payload");
        let mut segments = payload.segments.iter().copied();
        let mut current = segments.next();
        for run in runs {
            for start in run.offsets() {
                let (mut offset, end) = (start, start + run.length);
                while let Some(segment) = current.filter(|_| offset < end) {
                    let length = segment.length.min(end - offset);
                    self.overwrite(offset, &[Segment { length, ..segment }]);
                    offset += length;
                    current = if length == segment.length {
                        segments.next()
                    } else {
                        let length_left = segment.length - length;
                        let offset = segment.offset + length;
                        Some(Segment { offset, length: length_left, ..segment })
                    };
                }
            }
        }
    }

    fn freeze(self) -> Traced {
        let contents = self.contents.borrow();
        Traced::collect(contents.values().copied())
    }
}

impl Kind for Traced {
    type Memory = TracedMemory;
    const REMEMBERED: bool = true;

    fn memory(length: u64) -> TracedMemory {
        TracedMemory::of(Origin::Nowhere, length)
    }

    fn thaw(self) -> TracedMemory {
        let memory = TracedMemory::of(Origin::Nowhere, self.length);
        memory.overwrite(0, &self.segments);
        memory
    }

    fn unwritten(disk: u32, object: u64, offset: u64, length: u64) -> Self {
        Self::collect([Segment { origin: Origin::Disk { disk, object }, offset, length }])
    }
}

#[cfg(test)]
mod tests {
    //! Proves: cutting, scattering and gathering of traced data agree with those of real bytes.
    use super::*;
    use crate::payload::Bytes;

    #[test]
    fn traced_memory_agrees_with_bytes() {
        let traced = TracedMemory::of(Origin::Client(1), 64);
        let bytes = Bytes::from((0..64).collect::<Vec<u8>>()).thaw();
        let runs = [
            Run { offset: 3, length: 4, stride: 9, count: 5 },
            Run { offset: 50, length: 1, stride: 2, count: 3 },
        ];
        let scattered = [Run { offset: 1, length: 1, stride: 2, count: 23 }];
        let (t, b) = (traced.gather(&runs), bytes.gather(&runs));
        traced.scatter(&scattered, &t);
        bytes.scatter(&scattered, &b);
        let expanded: Vec<u8> = traced
            .freeze()
            .slice(1, 60)
            .segments()
            .iter()
            .flat_map(|s| (s.offset..s.offset + s.length).map(|o| o as u8))
            .collect();
        assert_eq!(expanded, bytes.freeze()[1..61].to_vec());
    }
}
