//! Messages between clients and servers, and their exact bytes.
//!
//! `postcard` encodes a message, in a published format: integers of variable length, enum variants
//! by number. A variant that is added at the end of an enum keeps old bytes valid. Any other change
//! needs a new [`PROTOCOL_VERSION`]; tests/pinned_bytes.rs finds it. A new [`Fault`] goes before
//! `Cancelled`, the least informative one, so it needs a new version too.
//!
//! Invariants:
//! - Decoding never panics, for any bytes.
//! - A decoded message can ask for anything. The program that serves it checks that.

mod client_cache;
mod client_key;
mod codec;
mod entry;
mod fault;
mod frequent;
mod group_roster;
mod message;
mod name;
mod rendezvous;
mod request_id;

pub use client_cache::{
    CacheAnswer, CacheCommand, CacheRequest, DROPPED_LINES_MAX, Enrolment, LINE_BYTES_MAX,
    LineName, LineReader, LineTaker, SentLine,
};
pub use client_key::ClientKey;
pub use codec::{DecodeError, PreparedRequest, decode, decode_record, encode, encode_record};
pub use entry::{Entry, EntryKind, FileDefaults, FileRecord, FileSize, Made};
pub use fault::Fault;
pub use frequent::{FREQUENT_BYTES_MAX, Frequent};
pub use group_roster::{Addresses, GroupRoster, Regions};
pub use message::{
    BufferStatistics, CollectiveRequest, DigestsRequest, FlushRequest, GroupCollective,
    GroupMessage, Message, NamedCollective, PARTICIPANTS_MAX, PartRequest, Participant,
    PlanRequest, PlannedBlock, PullRequest, ReadRequest, Reply, Request, ServerStatus,
    WriteRequest,
};
pub use name::{NAME_BYTES_MAX, SCHEME, instance_name, name_flaw};
pub use rendezvous::{
    CollectiveCall, CounterChange, CounterRequest, EnrolRequest, JoinRequest, LockRequest,
    MEETING_BYTES_MAX, MEETING_NAME_BYTES_MAX, MEETING_TOTAL_BYTES_MAX, MeetRequest, UnlockRequest,
    collective_number,
};
pub use request_id::RequestId;

/// Version of the messages. Both sides must have the same.
pub const PROTOCOL_VERSION: u16 = 15;
