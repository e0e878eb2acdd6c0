//! Pieces of one block, with offsets from its start.

use units::{ByteRange, PieceRun};

/// Returns the smallest range of the block that holds all pieces; `None` if there is no piece.
pub(super) fn hull<'a>(pieces: impl Iterator<Item = &'a PieceRun> + Clone) -> Option<ByteRange> {
    let start = pieces.clone().map(|piece| piece.offset).min()?;
    let end = pieces.filter_map(|piece| piece.file_side().checked_end()).max()?;
    Some(ByteRange::new(start, end))
}

/// Returns the pieces with offsets from `start`.
pub(super) fn relative_to(start: u64, pieces: &[PieceRun]) -> Vec<PieceRun> {
    pieces.iter().map(|piece| PieceRun { offset: piece.offset - start, ..*piece }).collect()
}

/// Returns the pieces as they lie in a memory without gaps, from the offset `at` on.
pub(super) fn packed(mut at: u64, pieces: &[PieceRun]) -> Vec<PieceRun> {
    let packed = |piece: &PieceRun| {
        let placed = PieceRun { offset: at, stride: piece.length, ..*piece };
        at += piece.bytes();
        placed
    };
    pieces.iter().map(packed).collect()
}

/// Number of bytes of pieces.
pub(super) fn bytes_of(pieces: &[PieceRun]) -> u64 {
    pieces.iter().map(|piece| piece.bytes()).sum()
}
