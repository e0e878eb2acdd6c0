//! The head of a stream: 64 bytes at fixed places, integers in little-endian order.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `unitrace` |
//! | 8..12 | version: 1 |
//! | 12..16 | 0 while the stream is written, 1 when it was closed |
//! | 16..24 | bytes of whole records behind the head |
//! | 24..28 | CRC-32C of these records, when the stream was closed |
//! | 28..64 | zeros |

/// Bytes of the head.
pub(crate) const HEAD_BYTES: usize = 64;

/// First bytes of a stream.
const MAGIC: [u8; 8] = *b"unitrace";
/// Version of the format.
const VERSION: u32 = 1;
/// Place of the word that says whether the stream was closed.
pub(crate) const CLOSED_AT: usize = 12;
/// Place of the number of bytes of whole records.
pub(crate) const LENGTH_AT: usize = 16;
/// Place of the checksum.
pub(crate) const CHECKSUM_AT: usize = 24;

/// Head of a stream that was not closed yet and has no records.
pub(crate) fn new_head() -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// Content of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// Bytes of whole records.
    pub(crate) length: u64,
    /// Checksum of these, if the stream was closed.
    pub(crate) checksum: Option<u32>,
}

/// Reason that a head was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BadHead {
    /// The stream ends before its head does.
    Cut,
    /// The stream is of another version.
    Version(u32),
    /// The bytes are no head.
    Damaged(&'static str),
}

/// Reads a head from the front of a file.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Head, BadHead> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
        let known = &bytes[..bytes.len().min(CLOSED_AT)];
        return match new_head().starts_with(known) {
            true => Err(BadHead::Cut),
            false => Err(BadHead::Damaged("it does not begin as a stream")),
        };
    };
    if *head == [0; HEAD_BYTES] {
        // The file had its size before it had its head.
        return Err(BadHead::Cut);
    }
    if head[..8] != MAGIC {
        return Err(BadHead::Damaged("it does not begin as a stream"));
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if word(8) != VERSION {
        return Err(BadHead::Version(word(8)));
    }
    if head[CHECKSUM_AT + 4..].iter().any(|byte| *byte != 0) {
        return Err(BadHead::Damaged("reserved bytes of its head are not zero"));
    }
    let checksum = match word(CLOSED_AT) {
        0 => None,
        1 => Some(word(CHECKSUM_AT)),
        _ => return Err(BadHead::Damaged("its head does not tell if it was closed")),
    };
    let length = u64::from(word(LENGTH_AT + 4)) << 32 | u64::from(word(LENGTH_AT));
    Ok(Head { length, checksum })
}
