//! Requests of clients to servers, by the part of the server that serves them.
//!
//! Each part has an enum of its own, and still a request begins with one byte: its tag.
//!
//! | tag | request |
//! |---|---|
//! | 0, 1 | [`ReadRequest`], [`WriteRequest`] |
//! | 2 | [`CacheRequest`], which has tags of its own |
//! | 3 | [`ObjectRequest`], which has tags of its own |
//! | 16.. | [`BlockRequest`] |
//! | 32.. | [`CollectiveRequest`] |
//! | 48.. | [`FileRequest`] |
//! | 64.. | [`CatalogueRequest`] |
//! | 80.. | [`GroupRequest`] |
//! | 96.. | [`ServerRequest`] |
//! | 112.. | [`NodeRequest`] |
//!
//! The tag of a request in a part is 16 times the number of the part, plus the position of the
//! request in it. For example, [`ServerRequest::Stop`] is the second request of part 6: its tag is
//! 97.
//!
//! Invariants:
//! - A tag takes one byte. Simulated times depend on the lengths of messages.
//! - A part that gets one more request leaves the tags of the others as they are.

use crate::part::{PART_TAGS, PartSerializer, decode_part};
use crate::{
    BlockRequest, CacheRequest, CatalogueRequest, CollectiveRequest, FileRequest, GroupRequest,
    NodeRequest, ObjectRequest, ReadRequest, ServerRequest, WriteRequest,
};
use serde::de::{EnumAccess, Error, Unexpected, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

// Tags of requests that are parts by themselves. They are numbered as the requests of a part 0.
pub(crate) const READ: u8 = 0;
pub(crate) const WRITE: u8 = 1;
const CACHE: u8 = 2;
const OBJECT: u8 = 3;

// Numbers of the other parts.
const BLOCK: u8 = 1;
const COLLECTIVE: u8 = 2;
const FILE: u8 = 3;
const CATALOGUE: u8 = 4;
const GROUP: u8 = 5;
const SERVER: u8 = 6;
const NODE: u8 = 7;

/// Name of the enum for encoders, of which `postcard` takes no notice.
const NAME: &str = "Request";

/// Request of a client to a server.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Caching: reads bytes of one block into the sender's memory.
    Read(ReadRequest),
    /// Caching: writes bytes of one block. The data is the body of the message.
    Write(WriteRequest),
    /// Request of a client with a cache.
    Cache(Box<CacheRequest>),
    /// Request of another server for a copy.
    Object(ObjectRequest),
    /// Request to the block cache.
    Block(BlockRequest),
    /// Request for a transfer that the servers direct.
    Collective(CollectiveRequest),
    /// Request for a file at this server.
    File(FileRequest),
    /// Request for the catalogue.
    Catalogue(CatalogueRequest),
    /// Request of a member of a group.
    Group(GroupRequest),
    /// Request for the server as a whole.
    Server(ServerRequest),
    /// Request for an entry of the catalogue by its number.
    Node(NodeRequest),
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(read) => to.serialize_newtype_variant(NAME, READ.into(), "Read", read),
            Self::Write(write) => to.serialize_newtype_variant(NAME, WRITE.into(), "Write", write),
            Self::Cache(cache) => to.serialize_newtype_variant(NAME, CACHE.into(), "Cache", cache),
            Self::Object(request) => {
                to.serialize_newtype_variant(NAME, OBJECT.into(), "Object", request)
            }
            Self::Block(request) => request.serialize(PartSerializer::new(BLOCK, to)),
            Self::Collective(request) => request.serialize(PartSerializer::new(COLLECTIVE, to)),
            Self::File(request) => request.serialize(PartSerializer::new(FILE, to)),
            Self::Catalogue(request) => request.serialize(PartSerializer::new(CATALOGUE, to)),
            Self::Group(request) => request.serialize(PartSerializer::new(GROUP, to)),
            Self::Server(request) => request.serialize(PartSerializer::new(SERVER, to)),
            Self::Node(request) => request.serialize(PartSerializer::new(NODE, to)),
        }
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_enum(NAME, &[], RequestVisitor)
    }
}

struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = Request;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the tag of a request")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, request: A) -> Result<Request, A::Error> {
        let (tag, fields) = request.variant::<u8>()?;
        let position = tag % PART_TAGS;
        match (tag / PART_TAGS, tag) {
            (0, READ) => fields.newtype_variant().map(Request::Read),
            (0, WRITE) => fields.newtype_variant().map(Request::Write),
            (0, CACHE) => fields.newtype_variant().map(Request::Cache),
            (0, OBJECT) => fields.newtype_variant().map(Request::Object),
            (BLOCK, _) => decode_part(position, fields).map(Request::Block),
            (COLLECTIVE, _) => decode_part(position, fields).map(Request::Collective),
            (FILE, _) => decode_part(position, fields).map(Request::File),
            (CATALOGUE, _) => decode_part(position, fields).map(Request::Catalogue),
            (GROUP, _) => decode_part(position, fields).map(Request::Group),
            (SERVER, _) => decode_part(position, fields).map(Request::Server),
            (NODE, _) => decode_part(position, fields).map(Request::Node),
            _ => Err(A::Error::invalid_value(Unexpected::Unsigned(tag.into()), &self)),
        }
    }
}

/// Makes a request of each request of a part.
macro_rules! from_parts {
    ($($part:ident($request:ty)),+) => {
        $(impl From<$request> for Request {
            fn from(request: $request) -> Self {
                Self::$part(request)
            }
        })+
    };
}

from_parts!(
    Read(ReadRequest),
    Write(WriteRequest),
    Object(ObjectRequest),
    Block(BlockRequest),
    Collective(CollectiveRequest),
    File(FileRequest),
    Catalogue(CatalogueRequest),
    Group(GroupRequest),
    Server(ServerRequest),
    Node(NodeRequest)
);

impl From<CacheRequest> for Request {
    fn from(request: CacheRequest) -> Self {
        Self::Cache(Box::new(request))
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a tag is one byte and names one request, and all other tags are refused.
    use super::*;
    use crate::{decode_record, encode_record};
    use std::collections::BTreeSet;

    /// Every tag that any byte can be, in front of fields that are all zeros, is refused or the
    /// tag of a request that is encoded by it.
    #[test]
    fn a_tag_names_one_request() {
        let mut parts = [0; 8];
        for tag in 0..=u8::MAX {
            // A varint takes two bytes from 128 on.
            let start = if tag < 128 { vec![tag] } else { vec![tag, 1] };
            let found = (0..64).find_map(|fields| {
                let bytes = [&start[..], &vec![0; fields]].concat();
                decode_record::<Request>(&bytes).ok()
            });
            let Some(request) = found else { continue };
            assert!(tag < 128, "the tag of {request:?} takes two bytes");
            assert_eq!(encode_record(&request)[0], tag, "{request:?}");
            parts[usize::from(tag / PART_TAGS)] += 1;
        }
        assert_eq!(parts, [4, 6, 7, 15, 16, 6, 5, 8], "requests of each part");
    }

    #[test]
    fn other_tags_are_refused() {
        let known: BTreeSet<u8> = [0..4, 16..22, 32..39, 48..63, 64..80, 80..86, 96..101, 112..120]
            .into_iter()
            .flatten()
            .collect();
        for tag in (0..128).filter(|tag| !known.contains(tag)) {
            for fields in 0..64 {
                let bytes = [&[tag][..], &vec![0; fields]].concat();
                assert!(decode_record::<Request>(&bytes).is_err(), "{tag} and {fields} zeros");
            }
        }
        // A tag that does not fit a byte is not cut to one that is known.
        for too_large in [[0x81, 0x02], [0xe1, 0x7e]] {
            assert!(decode_record::<Request>(&too_large).is_err());
        }
        assert_eq!(decode_record(&[97]), Ok(Request::from(ServerRequest::Stop)));
    }
}
