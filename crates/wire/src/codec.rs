//! Bytes from messages and messages from bytes.

use crate::frequent::{FREQUENT_BYTES_MAX, Frequent};
use crate::{Message, Request, RequestId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;
use thiserror::Error;

/// The bytes are not a message of this version.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// They do not have the form of a message.
    #[error("{bytes} bytes are not a message: {cause}")]
    Malformed {
        /// How many bytes there were.
        bytes: usize,
        /// What the decoder said.
        cause: String,
    },
    /// A message was followed by bytes that belong to nothing.
    #[error("a message of {message} bytes is followed by {extra} stray bytes")]
    Trailing {
        /// Length of the message.
        message: usize,
        /// Length of what follows.
        extra: usize,
    },
}

/// Bytes of messages that need no memory of their own while they are encoded.
const SMALL_BYTES: usize = 128;

/// The bytes of a message. `B` is something that holds bytes in memory.
pub fn encode<B: Default + Write + From<Vec<u8>>>(message: &Message) -> B {
    match Frequent::of(message) {
        Some(frequent) => hold(frequent.encode(&mut [0; FREQUENT_BYTES_MAX])),
        None => match postcard::to_slice(message, &mut [0; SMALL_BYTES]) {
            Ok(small) => hold(small),
            Err(_) => encode_record(message).into(),
        },
    }
}

/// A request as it travels, for whoever asks many servers the same: one that names thousands of
/// clients is encoded once.
pub struct PreparedRequest(Vec<u8>);

impl PreparedRequest {
    /// For requests that are not [`Frequent`].
    pub fn new(request: &Request) -> Self {
        Self(encode_record(request))
    }

    /// What [`encode`] makes of it as request number `id`.
    pub fn encode<B: From<Vec<u8>>>(&self, id: RequestId) -> B {
        // A request comes last in its message.
        let mut bytes = encode_record(&Message::Request { id, request: Request::Stop });
        bytes.truncate(bytes.len() - encode_record(&Request::Stop).len());
        bytes.reserve_exact(self.0.len());
        bytes.extend_from_slice(&self.0);
        bytes.into()
    }
}

/// The message that `bytes` are, all of them.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    Frequent::decode(bytes).map_or_else(|| decode_record(bytes), |frequent| Ok(frequent.into()))
}

/// The bytes of a record that is kept.
pub fn encode_record<T: Serialize>(record: &T) -> Vec<u8> {
    let encoded = postcard::to_allocvec(record);
    encoded.expect("messages and records must have no fallible encoding")
}

/// The record that `bytes` are, all of them.
pub fn decode_record<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let malformed = |error: postcard::Error| DecodeError::Malformed {
        bytes: bytes.len(),
        cause: error.to_string(),
    };
    let (record, rest) = postcard::take_from_bytes(bytes).map_err(malformed)?;
    match rest.len() {
        0 => Ok(record),
        extra => Err(DecodeError::Trailing { message: bytes.len() - extra, extra }),
    }
}

fn hold<B: Default + Write>(bytes: &[u8]) -> B {
    let mut held = B::default();
    held.write_all(bytes).expect("memory must take all bytes of a message");
    held
}

#[cfg(test)]
mod tests {
    //! Proves: decoding undoes encoding, and no bytes whatever make the decoder panic.
    use super::*;
    use crate::ReadRequest;
    use proptest::prelude::*;
    use units::{FileId, RegionId};

    #[test]
    fn a_prepared_request_is_encoded_as_any() {
        let cancel = Request::Cancel { collective: 1 << 40 };
        for request in [Request::Stop, Request::Status, cancel] {
            let prepared = PreparedRequest::new(&request);
            for id in [0, 127, 128, u64::MAX].map(RequestId) {
                let message = Message::Request { id, request: request.clone() };
                assert_eq!(prepared.encode::<Vec<u8>>(id), encode::<Vec<u8>>(&message));
            }
        }
    }

    fn read_request() -> Message {
        Message::Request {
            id: RequestId(7),
            request: Request::Read(ReadRequest {
                file: FileId(3),
                block: 1 << 40,
                offset: 8,
                length: 8,
                region: RegionId(5),
                region_offset: 64,
            }),
        }
    }

    #[test]
    fn a_message_comes_back() {
        let bytes: Vec<u8> = encode(&read_request());
        assert_eq!(decode(&bytes), Ok(read_request()));
    }

    #[test]
    fn messages_of_any_length_are_encoded_alike() {
        for length in 0..2 * SMALL_BYTES {
            let message = Message::CollectiveFailed {
                collective: 1,
                fault: crate::Fault::BadRequest { cause: "x".repeat(length) },
            };
            assert_eq!(encode::<Vec<u8>>(&message), encode_record(&message), "{length}");
        }
    }

    #[test]
    fn an_eight_byte_request_is_small() {
        let bytes: Vec<u8> = encode(&read_request());
        assert!(bytes.len() <= 32, "{} bytes", bytes.len());
    }

    #[test]
    fn stray_bytes_are_told() {
        let mut bytes: Vec<u8> = encode(&read_request());
        bytes.push(0);
        assert!(matches!(decode(&bytes), Err(DecodeError::Trailing { extra: 1, .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn a_damaged_message_decodes_or_fails(at in 0usize..24, value in any::<u8>()) {
            let mut bytes: Vec<u8> = encode(&read_request());
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = decode(&bytes);
        }
    }
}
