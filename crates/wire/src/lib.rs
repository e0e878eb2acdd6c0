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

mod block;
mod catalogue;
mod client_cache;
mod client_key;
mod codec;
mod collective;
mod entry;
mod fault;
mod file;
mod frequent;
mod group;
mod message;
mod name;
mod node;
mod object;
mod part;
mod persistence;
mod request;
mod request_id;
mod scrub;
mod select;
mod server;

pub use block::{
    BlockRequest, DigestsRequest, FlushRequest, PullRequest, ReadRequest, WriteRequest,
};
pub use catalogue::{CatalogueChange, CatalogueRequest};
pub use client_cache::{
    CacheAnswer, CacheCommand, CacheRegistration, CacheRequest, DROPPED_LINES_MAX, LINE_BYTES_MAX,
    LineName, LineReader, LineTaker, SentLine,
};
pub use client_key::ClientKey;
pub use codec::{DecodeError, PreparedRequest, decode, decode_record, encode, encode_record};
pub use collective::{
    CallId, CollectiveCall, CollectiveRequest, JoinRequest, MemberRun, PARTICIPANTS_MAX,
    PartRequest, PlanRequest, PlannedBlock, TransferName,
};
pub use entry::{Entry, EntryKind, FileDefaults, FileRecord, FileSize, Made, Special};
pub use fault::Fault;
pub use file::{FileRequest, GATHERED_BYTES_MAX, GATHERED_WRITES_MAX, WriteGathered};
pub use frequent::{FREQUENT_BYTES_MAX, Frequent};
pub use group::{
    AllGatherRequest, CounterChange, CounterRequest, GATHER_BYTES_MAX, GATHER_NAME_BYTES_MAX,
    GATHER_TOTAL_BYTES_MAX, GroupRequest, LeaveRequest, LockRequest, RegisterRequest,
    UnlockRequest,
};
pub use message::{BufferStatistics, GroupMessage, Message, Reply};
pub use name::{NAME_BYTES_MAX, SCHEME, instance_name, name_flaw, part_flaw};
pub use node::{
    AttributeChanges, Attributes, LINK_BYTES_MAX, MODE_BITS, NewKind, NewNode, NodeEntry,
    NodeRequest, Place, ROOT, RenameManner,
};
pub use object::{ObjectRequest, RowRequest};
pub use persistence::Persistence;
pub use request::Request;
pub use request_id::RequestId;
pub use scrub::{ScrubRequest, Scrubbed};
pub use select::{COUNTED_BLOCKS_MAX, HEADS_BYTES_MAX, SelectReply, SelectRequest, TakenRecords};
pub use server::{ProcessorUse, RefillStatus, ServerRequest, ServerStatus, UnprotectedFiles};

/// Version of the messages. Both sides must have the same.
pub const PROTOCOL_VERSION: u16 = 30;
