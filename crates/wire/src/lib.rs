//! The messages between clients and servers, and their exact bytes.
//!
//! A message is encoded by `postcard` (a published format: variable-length integers, enum variants
//! by number), so adding a variant at the end of an enum keeps old bytes valid, and anything else
//! is a new [`PROTOCOL_VERSION`]. Decoding never panics, whatever the bytes; what a decoded message
//! *asks for* is checked by the program that serves it. A new [`Fault`] goes before `Cancelled`,
//! the least telling of them, and so is a new version too.

mod codec;
mod entry;
mod fault;
mod frequent;
mod introduction;
mod message;
mod rendezvous;

pub use codec::{DecodeError, PreparedRequest, decode, decode_record, encode, encode_record};
pub use entry::{
    Entry, EntryKind, FileDefaults, FileRecord, FileSize, Made, NAME_BYTES_MAX, name_flaw,
};
pub use fault::Fault;
pub use frequent::{FREQUENT_BYTES_MAX, Frequent};
pub use introduction::{Addresses, Introduction, Regions};
pub use message::{
    BufferStatistics, ClientKey, CollectiveRequest, DigestsRequest, FlushRequest, GroupCollective,
    GroupMessage, Message, NamedCollective, PARTICIPANTS_MAX, PartRequest, Participant,
    PullRequest, ReadRequest, Reply, Request, RequestId, ServerStatus, WriteRequest,
};

pub use rendezvous::{
    CollectiveCall, EnrolRequest, JoinRequest, MEETING_BYTES_MAX, MEETING_NAME_BYTES_MAX,
    MEETING_TOTAL_BYTES_MAX, MeetRequest, collective_number,
};

/// The version of the messages; both sides must speak the same.
pub const PROTOCOL_VERSION: u16 = 11;
