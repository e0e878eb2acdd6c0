//! The part of an access that one client describes by itself, as a formula or a list.
//!
//! Clients of a library or of MPI know their own part only. Each sends its part to the servers,
//! which combine them as [`Access::Parts`](crate::Access::Parts).
//!
//! Invariants of a valid part:
//! - All pieces lie inside the file.
//! - The pieces of each nest, of a list and of a dealt array ascend in the file and do not overlap,
//!   there or in memory.
//! - Pieces of two nests of one union may interleave; if they overlap, it is undefined which of
//!   them counts.

use super::distribution::Distribution;
use super::error::AccessError;
use super::footprint::{Footprint, FootprintPieces};
use super::limits::{BYTES_MAX, LIST_ENTRIES_MAX};
use super::list::{self, ListEntry, ListPieces};
use super::nested::Nested;
use serde::{Deserialize, Serialize};
use units::{ByteRange, ClientId, PieceRun};

/// The largest number of nests in one union.
pub const NESTS_MAX: usize = 1 << 16;

/// One client's part of a file, and where each of its bytes lies in the client's memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OwnPart {
    /// A union of nested strides. Without any, the client owns nothing.
    Nested(Vec<Nested>),
    /// Part of client `client` of an array that begins at `file_offset`, packed in its memory in
    /// row-major order.
    Dealt {
        /// The array and its distribution.
        distribution: Distribution,
        /// Index of the client in the grid, row-major.
        client: ClientId,
        /// First byte of the array in the file.
        file_offset: u64,
    },
    /// A list of pieces without regular structure.
    List(Vec<ListEntry>),
}

impl OwnPart {
    /// An empty part.
    pub const NOTHING: Self = Self::Nested(Vec::new());

    /// Makes a part of `length` bytes at `file_offset`, from the start of the memory.
    pub fn contiguous(file_offset: u64, length: u64) -> Self {
        Self::Nested(vec![Nested { file_offset, memory_offset: 0, length, levels: Vec::new() }])
    }

    /// Returns the part with all file offsets increased by `bytes`.
    pub fn shifted(&self, bytes: u64) -> Self {
        let mut part = self.clone();
        match &mut part {
            Self::Nested(nests) => nests.iter_mut().for_each(|nest| nest.file_offset += bytes),
            Self::Dealt { file_offset, .. } => *file_offset += bytes,
            Self::List(entries) => entries.iter_mut().for_each(|one| one.file_offset += bytes),
        }
        part
    }

    /// Refuses a part that leaves a file of `file_bytes`, has no meaning, or breaks a limit.
    /// Errors name it as the part of `client`.
    pub fn validate(&self, client: ClientId, file_bytes: u64) -> Result<(), AccessError> {
        match self {
            Self::Nested(nests) if nests.len() > NESTS_MAX => {
                Err(AccessError::Entries { entries: nests.len(), most: NESTS_MAX })
            }
            Self::Nested(nests) => {
                nests.iter().try_for_each(|nest| nest.validate(client, file_bytes))?;
                // Nests of a union may overlap, so that together they may have more than a file.
                let all = ByteRange::new(0, BYTES_MAX);
                let bytes = |nest: &Nested| nest.footprint().count_bytes(all);
                let total = nests.iter().map(bytes).try_fold(0, u64::checked_add);
                match total {
                    Some(total) if total <= BYTES_MAX => Ok(()),
                    Some(_) | None => Err(AccessError::MemoryTooLarge { client }),
                }
            }
            Self::Dealt { distribution, file_offset, .. } => {
                let (entry, room) = (0, BYTES_MAX.checked_sub(*file_offset));
                let outside = AccessError::OutsideFile { client, entry, file_bytes };
                distribution.validate(room.ok_or(outside.clone())?)?;
                // The file may end before the array does, but not before this client's part.
                match self.end() {
                    Some(end) if end > file_bytes => Err(outside),
                    Some(_) | None => Ok(()),
                }
            }
            Self::List(entries) if entries.len() > LIST_ENTRIES_MAX => {
                Err(AccessError::Entries { entries: entries.len(), most: LIST_ENTRIES_MAX })
            }
            Self::List(entries) => list::validate(client, entries, file_bytes),
        }
    }

    /// Returns the bytes of memory that the client needs: one past the last byte that has a place
    /// there.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Nested(nests) => nests.iter().map(Nested::memory_bytes).max().unwrap_or(0),
            Self::Dealt { distribution, client, .. } => distribution.footprint(*client).bytes(),
            Self::List(entries) => list::memory_bytes(entries),
        }
    }

    /// Returns the bytes in all pieces.
    pub fn bytes(&self) -> u64 {
        self.count_bytes(ByteRange::new(0, BYTES_MAX))
    }

    /// Returns the smallest range of the file that holds every piece; `None` without any.
    pub fn file_extent(&self) -> Option<ByteRange> {
        let end = self.end()?;
        Some(ByteRange::new(self.first_from(0)?, end))
    }

    /// Returns the number of levels or dimensions in which pieces repeat: divisions that it takes
    /// to find a piece.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Self::Nested(nests) => {
                nests.iter().map(|nest| nest.levels.len() as u32).max().unwrap_or(0)
            }
            Self::Dealt { distribution, .. } => {
                distribution.grid.iter().filter(|clients| **clients > 1).count() as u32
            }
            Self::List(_) => 1,
        }
    }

    /// True when two of its pieces may own the same byte.
    pub(super) fn may_overlap(&self) -> bool {
        matches!(self, Self::Nested(nests) if nests.len() > 1)
    }

    /// Counts the bytes of the part in `range`.
    pub(crate) fn count_bytes(&self, range: ByteRange) -> u64 {
        match self {
            Self::List(entries) => list::pieces(entries, range).map(|piece| piece.length).sum(),
            _ => self.footprints().map(|footprint| footprint.count_bytes(range)).sum(),
        }
    }

    /// Returns the pieces in `range`: those of one nest after those of another, each ascending.
    pub(crate) fn pieces(&self, range: ByteRange) -> OwnPieces<'_> {
        if let Self::List(entries) = self {
            return OwnPieces::List(list::pieces(entries, range));
        }
        if let Some(footprint) = self.footprint() {
            return OwnPieces::Footprint(footprint.pieces(range));
        }
        let mut all: Vec<_> = self.footprints().map(|footprint| footprint.pieces(range)).collect();
        all.reverse();
        OwnPieces::Nests(all)
    }

    /// Returns the first byte at or after `position`.
    pub(crate) fn first_from(&self, position: u64) -> Option<u64> {
        match self {
            Self::List(entries) => list::first_from(entries, position),
            _ => self.footprints().filter_map(|footprint| footprint.first_from(position)).min(),
        }
    }

    /// Returns the offset one past the last byte.
    pub(crate) fn end(&self) -> Option<u64> {
        match self {
            Self::List(entries) => list::file_extent(entries).map(|extent| extent.end),
            _ => self.footprints().filter_map(|footprint| footprint.end()).max(),
        }
    }

    /// Returns the footprint of the part. A list has none, nor has a union of several nests.
    pub(super) fn footprint(&self) -> Option<Footprint> {
        match self {
            Self::Nested(nests) if nests.len() > 1 => None,
            Self::Nested(nests) => {
                Some(nests.first().map_or_else(Footprint::nothing, Nested::footprint))
            }
            Self::Dealt { distribution, client, file_offset } => {
                let mut footprint = distribution.footprint(*client);
                footprint.shift(*file_offset);
                Some(footprint)
            }
            Self::List(_) => None,
        }
    }

    /// Returns the footprint of each nest, or of the dealt part. A list has no footprint.
    fn footprints(&self) -> impl Iterator<Item = Footprint> + '_ {
        let (nests, dealt) = match self {
            Self::Nested(nests) => (&nests[..], None),
            Self::Dealt { .. } => (&[][..], self.footprint()),
            Self::List(_) => (&[][..], None),
        };
        nests.iter().map(Nested::footprint).chain(dealt)
    }
}

/// The pieces of one part in a range of the file. See [`OwnPart::pieces`].
#[derive(Clone, Debug)]
pub(crate) enum OwnPieces<'a> {
    Footprint(FootprintPieces),
    /// Pieces of each nest that is left, in reverse order: the last entry is taken first.
    Nests(Vec<FootprintPieces>),
    List(ListPieces<'a>),
}

impl Iterator for OwnPieces<'_> {
    type Item = PieceRun;

    fn next(&mut self) -> Option<PieceRun> {
        match self {
            Self::Footprint(pieces) => pieces.next(),
            Self::List(pieces) => pieces.next(),
            Self::Nests(nests) => loop {
                if let Some(piece) = nests.last_mut()?.next() {
                    return Some(piece);
                }
                nests.pop();
            },
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a part has the same bytes as the access to which it belongs, also when it is a
    //! union, or an array that does not begin at the start of the file.
    use super::*;
    use crate::{Access, Dimension, Level};

    fn dealt() -> Distribution {
        Distribution {
            shape: vec![6, 10],
            record_bytes: 8,
            dimensions: vec![Dimension::Block, Dimension::Cyclic(3)],
            grid: vec![2, 2],
            clients: 4,
        }
    }

    fn bytes_of(pieces: impl Iterator<Item = PieceRun>) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = pieces
            .flat_map(|run| {
                (0..run.count).flat_map(move |i| {
                    let (file, memory) =
                        (run.offset + i * run.stride, run.memory_offset + i * run.memory_stride);
                    (0..run.length).map(move |byte| (file + byte, memory + byte))
                })
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn parts_of_a_dealt_array_are_those_of_the_whole_access() {
        let whole = Access::Distribution(dealt());
        let parts: Vec<_> = (0..4)
            .map(|client| OwnPart::Dealt {
                distribution: dealt(),
                client: ClientId(client),
                file_offset: 100,
            })
            .collect();
        let access = Access::Parts(parts);
        assert_eq!(access.validate(580), Ok(()));
        assert!(access.validate(579).is_err());
        assert_eq!(access.file_extent(), ByteRange::new(100, 580));
        for client in (0..4).map(ClientId) {
            assert_eq!(access.memory_bytes(client), whole.memory_bytes(client));
            for (start, end) in [(0, 480), (7, 8), (50, 333)] {
                let own = bytes_of(access.pieces(client, ByteRange::new(start + 100, end + 100)));
                let own: Vec<_> = own.into_iter().map(|(file, at)| (file - 100, at)).collect();
                assert_eq!(own, bytes_of(whole.pieces(client, ByteRange::new(start, end))));
            }
        }
    }

    #[test]
    fn a_part_of_an_array_needs_the_file_as_far_as_its_own_pieces() {
        let part = |client, file_offset| OwnPart::Dealt {
            distribution: dealt(),
            client: ClientId(client),
            file_offset,
        };
        // The upper half of the rows ends in the middle of the array, which has 480 bytes.
        for (client, end) in [(0, 240), (1, 240 - 24), (2, 480), (3, 480 - 24)] {
            let extent = part(client, 100).file_extent().map_or(0, |extent| extent.end);
            assert_eq!(part(client, 100).validate(ClientId(client), extent), Ok(()));
            assert!(part(client, 100).validate(ClientId(client), extent - 1).is_err());
            assert!(extent <= 100 + end + 24, "client {client} ends at {extent}");
        }
        assert!(part(0, BYTES_MAX - 479).validate(ClientId(0), BYTES_MAX).is_err());
        assert!(part(0, u64::MAX).validate(ClientId(0), BYTES_MAX).is_err());
    }

    #[test]
    fn a_union_has_no_more_bytes_than_a_file() {
        let whole =
            Nested { file_offset: 0, memory_offset: 0, length: BYTES_MAX, levels: Vec::new() };
        let union = |count| OwnPart::Nested(vec![whole.clone(); count]);
        assert_eq!(union(1).validate(ClientId(0), BYTES_MAX), Ok(()));
        for count in [2, 3, 5] {
            assert!(union(count).validate(ClientId(0), BYTES_MAX).is_err());
        }
    }

    #[test]
    fn a_union_has_the_bytes_of_all_its_nests() {
        let level = Level { count: 4, file_stride: 20, memory_stride: 10 };
        let first = Nested { file_offset: 3, memory_offset: 0, length: 4, levels: vec![level] };
        let second = Nested { file_offset: 9, memory_offset: 4, ..first.clone() };
        let union = Access::Parts(vec![
            OwnPart::NOTHING,
            OwnPart::Nested(vec![second.clone(), first.clone()]),
        ]);
        let mut apart = bytes_of(
            Access::nested(vec![first.clone()]).pieces(ClientId(0), ByteRange::new(0, 100)),
        );
        apart.extend(bytes_of(
            Access::nested(vec![second]).pieces(ClientId(0), ByteRange::new(0, 100)),
        ));
        apart.sort_unstable();
        assert_eq!(bytes_of(union.pieces(ClientId(1), ByteRange::new(0, 100))), apart);
        assert_eq!(union.count_bytes(ClientId(1), ByteRange::new(0, 100)), 32);
        assert_eq!(union.extent_of(ClientId(1)), ByteRange::new(3, 73));
        assert_eq!(union.extent_of(ClientId(0)), ByteRange::new(0, 0));
        assert_eq!(union.clients_in(ByteRange::new(0, 9)).collect::<Vec<_>>(), [ClientId(1)]);
        assert_eq!(union.clients_in(ByteRange::new(0, 3)).count(), 0);
    }
}
