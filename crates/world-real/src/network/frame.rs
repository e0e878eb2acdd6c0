//! Frames: the units of transmission on a connection.
//!
//! A frame is 32 fixed bytes, little-endian, then a header, then a body:
//!
//! ```text
//! 0     2    3     4            8          16        24       32
//! | UN  |kind|flags|header bytes|body bytes| region  | number |  header … | body …
//! ```
//!
//! Invariants:
//!
//! - Every length is checked against a named maximum for its kind before any allocation.
//! - Bytes of a frame can be refused but never cause a panic.

use crate::arena::Sharing;
use units::{PieceRun, Run};
use world::HEADER_BYTES_MAX;

/// Size of the fixed part.
pub(crate) const FRAME_BYTES: usize = 32;

/// Maximum size of the body of a message, in bytes.
pub(crate) const BODY_BYTES_MAX: u64 = 64 << 20;

/// Maximum data of one framed transfer, in bytes; a larger one is cut.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of runs in one framed transfer.
pub(crate) const RUNS_MAX: usize = 16 << 10;

/// Maximum length of the text of a refusal, in bytes.
pub(crate) const CAUSE_BYTES_MAX: usize = 1024;

const MAGIC: u16 = u16::from_le_bytes(*b"UN");
const RUN_BYTES: usize = 32;
const PIECE_BYTES: usize = 48;

/// Kind of a frame.
// Sent: append only, pinned by the test below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Message of the program; `number` is its offset in `region` when it is placed.
    Message = 0,
    /// Exposes `region` to the receiver; header: [`Exposure`]. Answered by `Done`.
    Expose = 1,
    /// Withdraws `region`. Answered by `Done`, after which the peer sends nothing for it. With no
    /// region, asks for the answer only.
    Withdraw = 2,
    /// Writes the body into the runs (header) of `region`. Answered by `Done` or `Refused`.
    Put = 3,
    /// Requests the runs (header) of `region`. Answered by `Done` with a body, or `Refused`.
    Get = 4,
    /// Answer to request `number`.
    Done = 5,
    /// Answer to request `number`; header: the cause, as text.
    Refused = 6,
    /// Announces memory that the receiver can map; header: [`Sharing`]. Answered by `Done`, or by
    /// `Refused` when the receiver cannot map it.
    Share = 7,
    /// Message of the program whose body does not follow: it lies at `number` of the sender's
    /// shared memory, and is loan `region`.
    Lent = 8,
    /// Returns the loan `number`.
    Return = 9,
    /// Copies pieces of the sender's shared memory (header; their file sides count from its start)
    /// into `region`. Answered by `Done` or `Refused`.
    PutLent = 10,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        use Kind::{Done, Expose, Get, Lent, Message, Put, Refused, Return, Share, Withdraw};
        [Message, Expose, Withdraw, Put, Get, Done, Refused, Share, Lent, Return, Self::PutLent]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }

    /// Returns the maximum header and body of this kind, in bytes.
    fn limits(self) -> (usize, u64) {
        match self {
            Self::Message | Self::Lent => (HEADER_BYTES_MAX, BODY_BYTES_MAX),
            Self::Expose => (EXPOSURE_BYTES, 0),
            Self::Share => (PAIR_BYTES, 0),
            Self::PutLent => (RUNS_MAX * PIECE_BYTES, TRANSFER_BYTES_MAX),
            Self::Withdraw | Self::Return => (0, 0),
            Self::Put => (RUNS_MAX * RUN_BYTES, TRANSFER_BYTES_MAX),
            Self::Get => (RUNS_MAX * RUN_BYTES, 0),
            Self::Done => (0, TRANSFER_BYTES_MAX),
            Self::Refused => (CAUSE_BYTES_MAX, 0),
        }
    }
}

/// Fixed part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// Kind of the frame.
    pub(crate) kind: Kind,
    /// True for a message whose body lands in `region`.
    pub(crate) placed: bool,
    /// True for a message with a body, which may be empty.
    pub(crate) with_body: bool,
    /// Size of the header that follows.
    pub(crate) header_bytes: usize,
    /// Size of the body after it.
    pub(crate) body_bytes: u64,
    /// Id of the region, or 0.
    pub(crate) region: u64,
    /// Offset in the region, or number of a request.
    pub(crate) number: u64,
}

impl Frame {
    /// Returns a frame without header and body.
    pub(crate) fn new(kind: Kind, region: u64, number: u64) -> Self {
        let (placed, with_body) = (false, false);
        Self { kind, placed, with_body, header_bytes: 0, body_bytes: 0, region, number }
    }

    /// Encodes the frame.
    pub(crate) fn encode(&self) -> [u8; FRAME_BYTES] {
        let header_bytes = u32::try_from(self.header_bytes).expect("senders keep to the limits");
        let mut bytes = [0; FRAME_BYTES];
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2] = self.kind as u8;
        bytes[3] = u8::from(self.placed) | u8::from(self.with_body) << 1;
        bytes[4..8].copy_from_slice(&header_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.region.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// Decodes a frame; the error names the defect.
    pub(crate) fn decode(bytes: &[u8; FRAME_BYTES]) -> Result<Self, String> {
        let number = |at: usize| u64_at(bytes, at);
        if bytes[0..2] != MAGIC.to_le_bytes() {
            return Err("the received bytes are not a frame".into());
        }
        let Some(kind) = Kind::from_byte(bytes[2]) else {
            return Err(format!("the frame has the unknown kind {}", bytes[2]));
        };
        if bytes[3] > 3 {
            return Err(format!("the frame has the unknown flags {:#x}", bytes[3]));
        }
        let header_bytes = (number(0) >> 32) as usize;
        let body_bytes = number(8);
        let (header_max, body_max) = kind.limits();
        if header_bytes > header_max || body_bytes > body_max {
            return Err(format!(
                "a {kind:?} frame with a header of {header_bytes} and a body of {body_bytes} bytes \
                 is over the limits of {header_max} and {body_max}"
            ));
        }
        let (placed, with_body) = (bytes[3] & 1 != 0, bytes[3] & 2 != 0);
        let (region, number) = (number(16), number(24));
        Ok(Self { kind, placed, with_body, header_bytes, body_bytes, region, number })
    }
}

/// Address range of an exposed memory in its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exposure {
    /// Address of its first byte, for one-sided access.
    pub(crate) address: u64,
    /// Size of the memory.
    pub(crate) length: u64,
    /// True if the peer may write the memory one-sided; otherwise its owner copies for the peer.
    pub(crate) may_be_written: bool,
}

const PAIR_BYTES: usize = 16;
const EXPOSURE_BYTES: usize = PAIR_BYTES + 1;

impl Exposure {
    /// Encodes the exposure.
    pub(crate) fn encode(self) -> [u8; EXPOSURE_BYTES] {
        let mut bytes = [u8::from(self.may_be_written); EXPOSURE_BYTES];
        bytes[..PAIR_BYTES].copy_from_slice(&encode_pair(self.address, self.length));
        bytes
    }

    /// Decodes an exposure; the error names the defect.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (may_be_written, pair) = match bytes.split_last() {
            Some((flag @ (0 | 1), pair)) => (*flag == 1, pair),
            _ => return Err(format!("{} bytes are not an exposure", bytes.len())),
        };
        let (address, length) = decode_pair(pair)?;
        match address.checked_add(length) {
            Some(end) if end <= isize::MAX as u64 => Ok(Self { address, length, may_be_written }),
            _ => Err("an exposure goes past the end of the address space".into()),
        }
    }
}

impl Sharing {
    /// Encodes the description.
    pub(crate) fn encode(self) -> [u8; PAIR_BYTES] {
        encode_pair(self.descriptor, self.bytes)
    }

    /// Decodes a description; the error names the defect.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (descriptor, bytes) = decode_pair(bytes)?;
        Ok(Self { descriptor, bytes })
    }
}

fn encode_pair(first: u64, second: u64) -> [u8; PAIR_BYTES] {
    let mut bytes = [0; PAIR_BYTES];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

fn decode_pair(bytes: &[u8]) -> Result<(u64, u64), String> {
    if bytes.len() != PAIR_BYTES {
        return Err(format!("two numbers are encoded in {} bytes", bytes.len()));
    }
    Ok((u64_at(bytes, 0), u64_at(bytes, 8)))
}

/// Encodes `runs`.
pub(crate) fn encode_runs(runs: impl ExactSizeIterator<Item = Run>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(runs.len() * RUN_BYTES);
    for Run { offset, length, stride, count } in runs {
        for number in [offset, length, stride, count] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    bytes
}

/// Decodes runs, which may be any runs: check them against a memory before using them.
pub(crate) fn decode_runs(bytes: &[u8]) -> Result<Vec<Run>, String> {
    let (runs, rest) = bytes.as_chunks::<RUN_BYTES>();
    if !rest.is_empty() {
        return Err(format!("a list of runs is encoded in {} bytes", bytes.len()));
    }
    let decode = |run: &[u8; RUN_BYTES]| Run {
        offset: u64_at(run, 0),
        length: u64_at(run, 8),
        stride: u64_at(run, 16),
        count: u64_at(run, 24),
    };
    Ok(runs.iter().map(decode).collect())
}

/// Encodes pieces.
pub(crate) fn encode_pieces(pieces: impl ExactSizeIterator<Item = PieceRun>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pieces.len() * PIECE_BYTES);
    for piece in pieces {
        let PieceRun { offset, stride, memory_offset, memory_stride, length, count } = piece;
        for number in [offset, stride, memory_offset, memory_stride, length, count] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    bytes
}

/// Decodes pieces. They are not checked: check both sides before using them.
pub(crate) fn decode_pieces(bytes: &[u8]) -> Result<Vec<PieceRun>, String> {
    let (pieces, rest) = bytes.as_chunks::<PIECE_BYTES>();
    if !rest.is_empty() {
        return Err(format!("a list of pieces is encoded in {} bytes", bytes.len()));
    }
    let decode = |piece: &[u8; PIECE_BYTES]| PieceRun {
        offset: u64_at(piece, 0),
        stride: u64_at(piece, 8),
        memory_offset: u64_at(piece, 16),
        memory_stride: u64_at(piece, 24),
        length: u64_at(piece, 32),
        count: u64_at(piece, 40),
    };
    Ok(pieces.iter().map(decode).collect())
}

/// Reads the number at `at` in `bytes`, which has 8 bytes there.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    //! Proves: any bytes are a frame within its limits, or are refused. A fuzzing target, as that
    //! of the messages in `wire`. Each kind of frame keeps its number.
    use super::*;

    #[test]
    fn each_kind_of_frame_keeps_its_number() {
        use Kind::{
            Done, Expose, Get, Lent, Message, Put, PutLent, Refused, Return, Share, Withdraw,
        };
        let numbered = [
            (0, Message),
            (1, Expose),
            (2, Withdraw),
            (3, Put),
            (4, Get),
            (5, Done),
            (6, Refused),
            (7, Share),
            (8, Lent),
            (9, Return),
            (10, PutLent),
        ];
        for (number, kind) in numbered {
            let frame = Frame {
                kind,
                placed: false,
                with_body: false,
                header_bytes: 0,
                body_bytes: 0,
                region: 1,
                number: 2,
            };
            assert_eq!(frame.encode()[2], number, "{kind:?}");
            assert_eq!(Kind::from_byte(number), Some(kind));
        }
        assert_eq!(Kind::from_byte(numbered.len() as u8), None, "a kind has no row here");
    }

    #[test]
    fn any_bytes_are_a_frame_or_refused() {
        bolero::check!().with_type::<[u8; FRAME_BYTES]>().for_each(|bytes| {
            let mut bytes = *bytes;
            for magic in [false, true] {
                if magic {
                    bytes[..2].copy_from_slice(&MAGIC.to_le_bytes());
                    bytes[2] %= 12;
                }
                let Ok(frame) = Frame::decode(&bytes) else { continue };
                let (header_max, body_max) = frame.kind.limits();
                assert!(frame.header_bytes <= header_max && frame.body_bytes <= body_max);
                assert_eq!(frame.encode(), bytes);
            }
        });
    }

    #[test]
    fn any_bytes_are_runs_and_an_exposure_or_refused() {
        bolero::check!().for_each(|bytes: &[u8]| {
            if let Ok(runs) = decode_runs(bytes) {
                assert_eq!(encode_runs(runs.into_iter()), bytes);
            }
            if let Ok(pieces) = decode_pieces(bytes) {
                assert_eq!(encode_pieces(pieces.into_iter()), bytes);
            }
            if let Ok(exposure) = Exposure::decode(bytes) {
                assert_eq!(exposure.encode(), bytes);
            }
            if let Ok(sharing) = Sharing::decode(bytes) {
                assert_eq!(sharing.encode(), bytes);
            }
        });
    }
}
