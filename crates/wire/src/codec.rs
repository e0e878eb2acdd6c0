//! Encoding and decoding of messages and records.

use crate::frequent::{FREQUENT_BYTES_MAX, Frequent};
use crate::{Message, Persistence, Request, RequestId, ServerRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;
use thiserror::Error;

/// Error for bytes that are not a message of this version.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// The bytes do not have the form of a message.
    #[error("{bytes} bytes are not a message: {cause}")]
    Malformed {
        /// Number of bytes.
        bytes: usize,
        /// Error of the decoder.
        cause: String,
    },
    /// A message is followed by stray bytes.
    #[error("a message of {message} bytes is followed by {extra} stray bytes")]
    Trailing {
        /// Length of the message in bytes.
        message: usize,
        /// Number of bytes after the message.
        extra: usize,
    },
}

/// Largest size in bytes of a message that is encoded without an allocation.
const SMALL_BYTES: usize = 128;

/// Encodes a message. `B` is a type that holds bytes in memory.
pub fn encode<B: Default + Write + From<Vec<u8>>>(message: &Message) -> B {
    match Frequent::of(message) {
        Some(frequent) => hold(frequent.encode(&mut [0; FREQUENT_BYTES_MAX])),
        None => match postcard::to_slice(message, &mut [0; SMALL_BYTES]) {
            Ok(small) => hold(small),
            Err(_) => encode_record(message).into(),
        },
    }
}

/// Encoded request, to be sent to many servers. A request that names thousands of clients is then
/// encoded once.
pub struct PreparedRequest {
    bytes: Vec<u8>,
    persistence: Persistence,
}

impl PreparedRequest {
    /// Encodes a request that is not [`Frequent`].
    pub fn new(request: impl Into<Request>) -> Self {
        let request = request.into();
        Self { bytes: encode_record(&request), persistence: request.persistence() }
    }

    /// Bytes that [`encode`] makes of the request with the number `id`.
    pub fn encode<B: From<Vec<u8>>>(&self, id: RequestId) -> B {
        // The request is the last field of its message.
        let shortest = Request::from(ServerRequest::Stop);
        let stop_bytes = encode_record(&shortest).len();
        let mut bytes = encode_record(&Message::Request { id, request: shortest });
        bytes.truncate(bytes.len() - stop_bytes);
        bytes.reserve_exact(self.bytes.len());
        bytes.extend_from_slice(&self.bytes);
        bytes.into()
    }

    /// Treatment of the request when its server is lost.
    pub fn persistence(&self) -> Persistence {
        self.persistence
    }
}

/// Decodes a message, which must take all of `bytes`.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    Frequent::decode(bytes).map_or_else(|| decode_record(bytes), |frequent| Ok(frequent.into()))
}

/// Encodes a record that is stored.
pub fn encode_record<T: Serialize>(record: &T) -> Vec<u8> {
    let encoded = postcard::to_allocvec(record);
    encoded.expect("messages and records must have no fallible encoding")
}

/// Decodes a record, which must take all of `bytes`.
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
    //! Proves: decoding undoes encoding, and no bytes make the decoder panic.
    use super::*;
    use crate::{CollectiveRequest, Fault, ReadRequest, TransferName};
    use proptest::prelude::*;
    use units::{FileId, RegionId};

    #[test]
    fn a_prepared_request_is_encoded_as_any() {
        let cancel = CollectiveRequest::Cancel {
            transfer: TransferName::Part(1 << 40),
            cause: Box::new(Fault::ReadOnly),
        };
        let [stop, status] = [ServerRequest::Stop, ServerRequest::Status].map(Request::from);
        for request in [stop, status, cancel.into()] {
            let prepared = PreparedRequest::new(request.clone());
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
            let cause = "x".repeat(length);
            let result = Err(crate::Fault::BadRequest { cause });
            let message = Message::Reply { id: RequestId(1), result };
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
