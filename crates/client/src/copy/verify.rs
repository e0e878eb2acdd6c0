//! Verification of a copy: compares checksums of the copied data with those of the servers, piece
//! by piece.

use crate::library::File;
use interface::{ExitCode, UserError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::KIB;
use world_real::digest;

/// Size of a piece in bytes, if it divides the block size.
const PIECE_BYTES: u64 = 64 * KIB;

/// Blocks whose digests are asked for at the same time.
const BLOCKS_AT_ONCE: usize = 16;

/// Digests of the data copied, by the offset of each piece in the file.
#[derive(Default)]
pub(super) struct Moved(BTreeMap<u64, u32>);

impl Moved {
    /// Adds the digests of `bytes`, which lie at `offset` of the file, a multiple of `piece_bytes`.
    pub(super) fn add(&mut self, bytes: &[u8], offset: u64, piece_bytes: u64) {
        let starts = (offset..).step_by(piece_bytes as usize);
        self.0.extend(starts.zip(bytes.chunks(piece_bytes as usize).map(digest)));
    }

    /// Returns the offset of the first copied piece at or after `offset` whose digest differs from
    /// the server's (`held`).
    fn first_difference(&self, offset: u64, piece_bytes: u64, held: Vec<u32>) -> Option<u64> {
        let differs = |(start, digest): &(u64, u32)| {
            self.0.get(start).is_some_and(|expected| expected != digest)
        };
        (offset..).step_by(piece_bytes as usize).zip(held).find(differs).map(|(start, _)| start)
    }
}

/// Size of a piece of this file in bytes, such that no piece crosses a block boundary.
pub(super) fn piece_bytes(file: &File) -> u64 {
    let block_bytes = file.page_bytes();
    if block_bytes.is_multiple_of(PIECE_BYTES) { PIECE_BYTES } else { block_bytes }
}

/// Compares the copied pieces with the data that the servers hold of an open file.
pub(super) fn verify(file: &File, moved: &Moved, what: &str) -> Result<(), UserError> {
    let (block_bytes, piece_bytes) = (file.page_bytes(), piece_bytes(file));
    let blocks: BTreeSet<u64> = moved.0.keys().map(|offset| offset / block_bytes).collect();
    let mut asked = VecDeque::new();
    let mut blocks = blocks.into_iter();
    loop {
        while asked.len() < BLOCKS_AT_ONCE
            && let Some(block) = blocks.next()
        {
            asked.push_back((block, file.start_digests(block, piece_bytes)));
        }
        let Some((block, held)) = asked.pop_front() else { return Ok(()) };
        let held = held.wait().map_err(|error| error.doing(what))?;
        let offset = block * block_bytes;
        if let Some(start) = moved.first_difference(offset, piece_bytes, held) {
            let server = file.record().server_of(start / block_bytes);
            return Err(UserError::new(
                ExitCode::DataCheck,
                what,
                format!("the data on {server} differs from the source, from byte {start} on"),
                "copy it again; if it fails again, check that server's disk and memory",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a piece that differs is found, in the middle of a block or at its end, and a piece
    //! that was not moved does not count.
    use super::*;

    #[test]
    fn a_piece_that_differs_is_found() {
        let mut moved = Moved::default();
        moved.add(&[1; 25], 100, 10);
        let held = |bytes: &[u8]| bytes.chunks(10).map(digest).collect::<Vec<u32>>();
        assert_eq!(moved.first_difference(100, 10, held(&[1; 25])), None);
        let mut damaged = [1; 25];
        damaged[24] = 2;
        assert_eq!(moved.first_difference(100, 10, held(&damaged)), Some(120));
        damaged[13] = 2;
        assert_eq!(moved.first_difference(100, 10, held(&damaged)), Some(110));
        assert_eq!(moved.first_difference(200, 10, held(&damaged)), None);
    }
}
