//! The messages of groups whose members meet at the servers.

use crate::Fault;
use policy::{Direction, DiskOrder, LockKind, OwnPart};
use serde::{Deserialize, Serialize};
use units::{ClientId, FileId, RegionId};

/// The longest name of a meeting, in bytes.
pub const MEETING_NAME_BYTES_MAX: usize = 1024;

/// The most bytes that one member brings to a meeting.
pub const MEETING_BYTES_MAX: usize = 4096;

/// The most bytes that all members bring to a meeting together: they must fit an answer.
pub const MEETING_TOTAL_BYTES_MAX: usize = 3 << 20;

/// Brings some bytes to a meeting of `size` members, and waits for what the others bring
/// (an all-gather). Members that meet again use the name again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeetRequest {
    /// Name of the meeting, at most [`MEETING_NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// Group whose members meet, if they have enrolled: then nobody waits for one that has left.
    pub group: Option<u64>,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Number of members, the same at all of them.
    pub size: u32,
    /// Time to wait for the others, in milliseconds.
    pub timeout_ms: u64,
    /// Bytes of the sender, at most [`MEETING_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// Makes the sender known as a member of a group, or ends that when `size` is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EnrolRequest {
    /// Number of the group, drawn at random by its first member.
    pub group: u64,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Number of members; 0 when the sender leaves.
    pub size: u32,
}

/// Parameters of one collective call; the same at every member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CollectiveCall {
    /// Direction of the transfer.
    pub direction: Direction,
    /// File; it must be open.
    pub file: FileId,
    /// Order in which each disk is used.
    pub order: DiskOrder,
    /// True when written data must be on stable storage at the end.
    pub sync: bool,
}

/// Disk-directed: one member joins a collective call with its own part. The servers begin when all
/// members have joined.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Number of the group.
    pub group: u64,
    /// Number of the call within the group: members make the same calls in the same order.
    pub number: u64,
    /// Rank of the sender.
    pub rank: ClientId,
    /// Parameters of the call.
    pub call: CollectiveCall,
    /// Part of the sender, or the reason why it cannot take part: then nobody does.
    pub part: Result<OwnPart, Fault>,
    /// Memory of the sender, exposed to this server.
    pub region: RegionId,
    /// Time to wait for the other members, in milliseconds.
    pub timeout_ms: u64,
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

/// Returns the counter of a group, and changes it. The counter is 0 when the first member enrols.
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

/// Number by which a collective call of a group is cancelled.
pub fn collective_number(group: u64, number: u64) -> u64 {
    group.wrapping_add(number)
}
