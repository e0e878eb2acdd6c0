//! The messages of which there are millions, without the general machinery: requests for bytes of
//! a block, and the answer that they are done. Each is a few numbers; to write and read them as
//! such takes a third of the instructions that it takes to find that out.
//!
//! Invariant: the bytes are those of `postcard`, and so is what they mean. Every other message, and
//! every other form of bytes, is left to it.

use crate::{Message, ReadRequest, Reply, Request, RequestId, WriteRequest};
use units::{FileId, RegionId};

// Numbers of the variants, in the order of their enums; a test compares them.
const REQUEST: u8 = 1;
const READ: u8 = 10;
const WRITE: u8 = 11;
const REPLY: u8 = 2;
const OK: u8 = 0;
const DONE: u8 = 0;

/// Room for the longest: two variants, and seven numbers of ten bytes.
pub(crate) const BYTES_MAX: usize = 72;

/// Writes a message of these kinds to the start of `bytes`; says how long it is.
pub(crate) fn encode(message: &Message, bytes: &mut [u8; BYTES_MAX]) -> Option<usize> {
    let mut written = Written { bytes, length: 0 };
    match message {
        Message::Request { id, request: Request::Read(read) } => {
            written.variant(REQUEST).number(id.0).variant(READ);
            written.number(read.file.0).number(read.block).number(read.offset);
            written.number(read.length).number(read.region.0).number(read.region_offset);
        }
        Message::Request { id, request: Request::Write(write) } => {
            written.variant(REQUEST).number(id.0).variant(WRITE);
            written.number(write.file.0).number(write.block).number(write.offset);
        }
        Message::Reply { id, result: Ok(Reply::Done) } => {
            written.variant(REPLY).number(id.0).variant(OK).variant(DONE);
        }
        _ => return None,
    }
    Some(written.length)
}

/// The message that `bytes` are, if it is of these kinds.
pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
    let mut unread = Unread(bytes);
    let message = match unread.byte()? {
        REQUEST => {
            let id = RequestId(unread.number()?);
            let request = match unread.byte()? {
                READ => Request::Read(ReadRequest {
                    file: FileId(unread.number()?),
                    block: unread.number()?,
                    offset: unread.number()?,
                    length: unread.number()?,
                    region: RegionId(unread.number()?),
                    region_offset: unread.number()?,
                }),
                WRITE => Request::Write(WriteRequest {
                    file: FileId(unread.number()?),
                    block: unread.number()?,
                    offset: unread.number()?,
                }),
                _ => return None,
            };
            Message::Request { id, request }
        }
        REPLY => {
            let id = RequestId(unread.number()?);
            let is_done = unread.byte()? == OK && unread.byte()? == DONE;
            is_done.then_some(Message::Reply { id, result: Ok(Reply::Done) })?
        }
        _ => return None,
    };
    unread.0.is_empty().then_some(message)
}

struct Written<'a> {
    bytes: &'a mut [u8; BYTES_MAX],
    length: usize,
}

impl Written<'_> {
    fn variant(&mut self, number: u8) -> &mut Self {
        self.bytes[self.length] = number;
        self.length += 1;
        self
    }

    /// Seven bits a byte, the lowest first; the highest bit says that there are more.
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
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A number below 2^63; larger ones are rare enough to be left.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for place in (0..63).step_by(7) {
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
    //! Proves: the bytes, and what any bytes mean, are the same as without this file.
    use super::*;
    use proptest::prelude::*;

    /// Numbers of every length.
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
            let mut bytes = [0; BYTES_MAX];
            let length = encode(&message, &mut bytes);
            let expected = postcard::to_allocvec(&message).unwrap();
            prop_assert_eq!(length.map(|length| &bytes[..length]), Some(&expected[..]));
            let decoded = decode(&expected);
            prop_assert!(decoded.is_none_or(|decoded| decoded == message));
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
