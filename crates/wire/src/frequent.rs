//! Fast codec of the most frequent messages: reads and writes of bytes of a block, and the answer
//! that a request is done.
//!
//! There are millions of these messages, and each is a few numbers. This codec takes a third of the
//! instructions of the general one.
//!
//! Invariants:
//! - The bytes and their meaning are those of `postcard`.
//! - All other messages and all other forms of bytes are left to `postcard`.

use crate::request::{READ, WRITE};
use crate::{Message, ReadRequest, Reply, Request, RequestId, WriteRequest};
use units::{FileId, RegionId};

// Numbers of the variants. A test compares them with the enums.
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const OK: u8 = 0;
const DONE: u8 = 0;

/// Largest size in bytes: two variants and seven numbers of ten bytes.
pub const FREQUENT_BYTES_MAX: usize = 72;

/// Frequent message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frequent {
    /// A client asks for bytes of a block.
    Read(RequestId, ReadRequest),
    /// A client sends bytes of a block.
    Write(RequestId, WriteRequest),
    /// A server has done what was asked.
    Done(RequestId),
}

impl Frequent {
    /// Encodes the message into `room` and returns its bytes.
    pub fn encode<'a>(&self, room: &'a mut [u8; FREQUENT_BYTES_MAX]) -> &'a [u8] {
        let mut written = Written { bytes: room, length: 0 };
        match self {
            Self::Read(id, read) => {
                written.variant(REQUEST).number(id.0).variant(READ);
                written.number(read.file.0).number(read.block).number(read.offset);
                written.number(read.length).number(read.region.0).number(read.region_offset);
            }
            Self::Write(id, write) => {
                written.variant(REQUEST).number(id.0).variant(WRITE);
                written.number(write.file.0).number(write.block).number(write.offset);
            }
            Self::Done(id) => {
                written.variant(REPLY).number(id.0).variant(OK).variant(DONE);
            }
        }
        let Written { bytes, length } = written;
        &bytes[..length]
    }

    /// Decodes `bytes`, if they are a frequent message.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut unread = Unread(bytes);
        let message = match unread.byte()? {
            REQUEST => {
                let id = RequestId(unread.number()?);
                match unread.byte()? {
                    READ => {
                        let read = ReadRequest {
                            file: FileId(unread.number()?),
                            block: unread.number()?,
                            offset: unread.number()?,
                            length: unread.number()?,
                            region: RegionId(unread.number()?),
                            region_offset: unread.number()?,
                        };
                        Self::Read(id, read)
                    }
                    WRITE => {
                        let write = WriteRequest {
                            file: FileId(unread.number()?),
                            block: unread.number()?,
                            offset: unread.number()?,
                        };
                        Self::Write(id, write)
                    }
                    _ => return None,
                }
            }
            REPLY => {
                let id = RequestId(unread.number()?);
                let is_done = unread.byte()? == OK && unread.byte()? == DONE;
                is_done.then_some(Self::Done(id))?
            }
            _ => return None,
        };
        unread.0.is_empty().then_some(message)
    }

    /// Converts a message, if it is a frequent one.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        match message {
            Message::Request { id, request: Request::Read(read) } => Some(Self::Read(*id, *read)),
            Message::Request { id, request: Request::Write(write) } => {
                Some(Self::Write(*id, *write))
            }
            Message::Reply { id, result: Ok(Reply::Done) } => Some(Self::Done(*id)),
            _ => None,
        }
    }
}

impl From<Frequent> for Message {
    fn from(frequent: Frequent) -> Self {
        match frequent {
            Frequent::Read(id, read) => Self::Request { id, request: Request::Read(read) },
            Frequent::Write(id, write) => Self::Request { id, request: Request::Write(write) },
            Frequent::Done(id) => Self::Reply { id, result: Ok(Reply::Done) },
        }
    }
}

struct Written<'a> {
    bytes: &'a mut [u8; FREQUENT_BYTES_MAX],
    length: usize,
}

impl Written<'_> {
    #[inline]
    fn variant(&mut self, number: u8) -> &mut Self {
        self.bytes[self.length] = number;
        self.length += 1;
        self
    }

    /// Writes LEB128: seven bits a byte, the lowest first. The highest bit of a byte is set when
    /// more bytes follow.
    #[inline]
    fn number(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.variant(value as u8 | 0x80);
            value >>= 7;
        }
        self.variant(value as u8)
    }
}

struct Unread<'a>(&'a [u8]);

impl Unread<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Reads a number below 2^63. Larger ones are rare and left to `postcard`.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let mut value = u64::from(first & 0x7f);
        if first < 0x80 {
            return Some(value);
        }
        for place in (7..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << place;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the bytes and their meaning are those of `postcard`.
    use super::*;
    use proptest::prelude::*;

    fn decode(bytes: &[u8]) -> Option<Message> {
        Frequent::decode(bytes).map(Message::from)
    }

    /// Numbers of each encoded length.
    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift)
    }

    fn message() -> impl Strategy<Value = Message> {
        let numbers = [number(), number(), number(), number(), number(), number(), number()];
        (0..3, numbers).prop_map(|(kind, [id, file, block, offset, length, region, at])| {
            let (id, file, region) = (RequestId(id), FileId(file), RegionId(region));
            let read = ReadRequest { file, block, offset, length, region, region_offset: at };
            match kind {
                0 => Message::Request { id, request: Request::Read(read) },
                1 => {
                    let write = WriteRequest { file, block, offset };
                    Message::Request { id, request: Request::Write(write) }
                }
                _ => Message::Reply { id, result: Ok(Reply::Done) },
            }
        })
    }

    proptest! {
        #[test]
        fn the_bytes_are_the_same(message in message()) {
            let expected = postcard::to_allocvec(&message).unwrap();
            let frequent = Frequent::of(&message).unwrap();
            let mut room = [0; FREQUENT_BYTES_MAX];
            prop_assert_eq!(frequent.encode(&mut room), &expected[..]);
            prop_assert!(decode(&expected).is_none_or(|decoded| decoded == message));
        }

        #[test]
        fn what_is_decoded_is_the_same(
            message in message(),
            damage in proptest::collection::vec((0_usize..72, any::<u8>()), 0..4),
            length in 0_usize..80,
        ) {
            let mut bytes = postcard::to_allocvec(&message).unwrap();
            let count = bytes.len();
            damage.into_iter().for_each(|(at, value)| bytes[at % count] = value);
            bytes.truncate(length);
            if let Some(decoded) = decode(&bytes) {
                prop_assert_eq!(postcard::take_from_bytes(&bytes), Ok((decoded, &[][..])));
            }
        }
    }

    #[test]
    fn ordinary_messages_are_decoded_here() {
        let write = WriteRequest { file: FileId(3), block: 1 << 40, offset: 8 };
        let message = Message::Request { id: RequestId(7), request: Request::Write(write) };
        assert_eq!(decode(&postcard::to_allocvec(&message).unwrap()), Some(message));
        let done = Message::Reply { id: RequestId(1 << 20), result: Ok(Reply::Done) };
        assert_eq!(decode(&postcard::to_allocvec(&done).unwrap()), Some(done));
    }
}
