//! Requests of members of groups: registration, all-gathers, counters and locks.

use crate::ClientKey;
use policy::LockKind;
use serde::{Deserialize, Serialize};
use units::ClientId;

/// Longest name of an all-gather, in bytes.
pub const GATHER_NAME_BYTES_MAX: usize = 1024;

/// Maximum number of bytes that one member brings to an all-gather.
pub const GATHER_BYTES_MAX: usize = 4096;

/// Maximum number of bytes that all members bring to an all-gather together: they must fit an
/// answer.
pub const GATHER_TOTAL_BYTES_MAX: usize = 3 << 20;

/// Request of a member of a group.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum GroupRequest {
    /// Registers members of a group.
    Register(Box<RegisterRequest>),
    /// Ends the registration of members of a group.
    Leave(LeaveRequest),
    /// Brings bytes to an all-gather, and waits for those of the others.
    AllGather(Box<AllGatherRequest>),
    /// Returns and changes the counter of a group.
    Counter(CounterRequest),
    /// Requests a lock of a byte range for a member of a group, and waits until it is held.
    Lock(LockRequest),
    /// Releases a lock, or withdraws the request for it.
    Unlock(UnlockRequest),
}

/// Brings some bytes to an all-gather of `size` members, and waits for what the others bring.
/// Members may use a name again after its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AllGatherRequest {
    /// Name of the all-gather, at most [`GATHER_NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// Group of the members, if they have registered: then none waits for one that has left.
    pub group: Option<u64>,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Number of members, the same at all of them.
    pub size: u32,
    /// Time to wait for the others, in milliseconds.
    pub timeout_ms: u64,
    /// Bytes of the sender, at most [`GATHER_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// Registers members of a group. The sender will join calls for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RegisterRequest {
    /// Number of the group, drawn at random by one of its members.
    pub group: u64,
    /// Number of members of the group, the same in all its registrations.
    pub size: u32,
    /// Rank of each member, and the key of the client that has its memory.
    pub members: Vec<(ClientId, ClientKey)>,
}

/// Ends the registration of members with consecutive ranks, by the client that registered them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaveRequest {
    /// Number of the group.
    pub group: u64,
    /// Lowest rank.
    pub first: ClientId,
    /// Number of members.
    pub count: u32,
}

/// Operation on the counter of a group.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CounterChange {
    /// Returns the value.
    Get,
    /// Replaces the value.
    Set(u64),
    /// Adds to the value. A sum of 2^64 and more is refused.
    Add(u64),
}

/// Returns the counter of a group, and changes it. It is 0 when the first member registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CounterRequest {
    /// Number of the group.
    pub group: u64,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Change of the counter.
    pub change: CounterChange,
}

/// Requests a lock of a byte range, and waits until no other member holds a lock that conflicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockRequest {
    /// Number of the group.
    pub group: u64,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Number of the lock among those of the sender.
    pub number: u64,
    /// Sharing of the range.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Time to wait for the lock, in milliseconds.
    pub timeout_ms: u64,
}

/// Releases a lock, or withdraws the request for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnlockRequest {
    /// Number of the group.
    pub group: u64,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Number of the lock among those of the sender.
    pub number: u64,
}
