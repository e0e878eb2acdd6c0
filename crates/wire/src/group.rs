//! The messages of groups: registration of members, their calls, counters and locks.

use crate::{ClientKey, Fault};
use policy::{Access, Direction, DiskOrder, LockKind};
use serde::{Deserialize, Serialize};
use units::{ClientId, FileId, RegionId};

/// Longest name of an all-gather, in bytes.
pub const GATHER_NAME_BYTES_MAX: usize = 1024;

/// Maximum number of bytes that one member brings to an all-gather.
pub const GATHER_BYTES_MAX: usize = 4096;

/// Maximum number of bytes that all members bring to an all-gather together: they must fit an
/// answer.
pub const GATHER_TOTAL_BYTES_MAX: usize = 3 << 20;

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

/// Name of a collective call: its group, and its number within the group. Members make the same
/// calls in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CallId {
    /// Number of the group.
    pub group: u64,
    /// Number of the call.
    pub number: u64,
}

/// Name of an active transfer.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TransferName {
    /// Collective call that the sender has joined.
    Call(CallId),
    /// Part that the sender transfers by itself, by [`crate::PartRequest::number`].
    Part(u64),
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

/// Members with consecutive ranks, whose memories have equal names. In simulations most members
/// have one name; names that are drawn at random make one run each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberRun {
    /// Lowest rank.
    pub first: ClientId,
    /// Number of members.
    pub count: u32,
    /// Region of the memory of each of them, exposed to this server.
    pub region: RegionId,
}

impl MemberRun {
    /// Returns the runs of some members, whose ranks ascend.
    pub fn of(members: impl IntoIterator<Item = (ClientId, RegionId)>) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for (rank, region) in members {
            match runs.last_mut() {
                Some(last) if last.region == region && last.end() == u64::from(rank.0) => {
                    last.count += 1;
                }
                _ => runs.push(Self { first: rank, count: 1, region }),
            }
        }
        runs
    }

    /// One past the highest rank.
    pub fn end(&self) -> u64 {
        u64::from(self.first.0) + u64::from(self.count)
    }

    /// Ranks of the members that fit a number.
    pub fn ranks(&self) -> impl Iterator<Item = ClientId> + use<> {
        let end = u32::try_from(self.end()).unwrap_or(u32::MAX);
        (self.first.0..end).map(ClientId)
    }
}

/// Disk-directed: joins a collective call for one or more members of a group, with their parts. The
/// servers begin when all members have joined.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Name of the call.
    pub call: CallId,
    /// Parameters of the call.
    pub parameters: CollectiveCall,
    /// Members that join, which the sender has registered; their ranks ascend.
    pub members: Vec<MemberRun>,
    /// Access of these members, in the order of their ranks, or the reason why they cannot take
    /// part: then no member does.
    pub access: Result<Access, Fault>,
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

#[cfg(test)]
mod tests {
    //! Proves: runs have the members of which they were made, and hostile runs do not panic.
    use super::*;

    #[test]
    fn runs_have_the_members_that_they_were_made_of() {
        for members in [
            &[][..],
            &[(0, 7)],
            &[(0, 7), (1, 7), (2, 7)],
            &[(0, 7), (1, 8), (2, 8), (3, 7)],
            &[(3, 7), (5, 7), (6, 7), (9, 1)],
        ] {
            let members = members.iter().map(|(rank, region)| (ClientId(*rank), RegionId(*region)));
            let runs = MemberRun::of(members.clone());
            let listed = runs.iter().flat_map(|run| run.ranks().map(|rank| (rank, run.region)));
            assert!(listed.eq(members), "{runs:?}");
        }
        let same = (0..65_536).map(|rank| (ClientId(rank), RegionId(3)));
        let region = RegionId(3);
        assert_eq!(MemberRun::of(same), [MemberRun { first: ClientId(0), count: 65_536, region }]);
        let hostile = MemberRun { first: ClientId(u32::MAX - 1), count: u32::MAX, region };
        assert_eq!(hostile.ranks().count(), 1);
    }
}
