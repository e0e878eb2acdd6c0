//! Requests for transfers that servers direct: collective calls of groups, and parts of single
//! clients.

use crate::{Fault, SelectRequest};
use policy::{Access, Direction, DiskOrder};
use serde::{Deserialize, Serialize};
use units::{ClientId, DiskId, FileId, RegionId};

/// Largest number of clients in one collective.
pub const PARTICIPANTS_MAX: usize = 1 << 16;

/// Request for a transfer that the servers direct.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CollectiveRequest {
    /// Joins a collective call of a group. It is boxed because it is large and other requests are
    /// moved often.
    Join(Box<JoinRequest>),
    /// Requests the part of one client, without a collective.
    Part(Box<PartRequest>),
    /// Cancels a transfer of the sender, which has failed at another server.
    Cancel {
        /// Transfer to cancel.
        transfer: TransferName,
        /// Failure at the other server, for the other members of the call. Boxed as a join is.
        cause: Box<Fault>,
    },
    /// Asks what a collective would do on one disk, without doing it.
    Plan(Box<PlanRequest>),
    /// Joins a collective call for one member with a small part. Its bytes go with the messages:
    /// those that it writes are the body of the request, those that it reads the body of the
    /// answer. The region of its run means nothing. A server without room for the bytes answers
    /// [`Reply::NoRoom`](crate::Reply::NoRoom); then the member joins with a memory.
    JoinWithData(Box<JoinRequest>),
    /// As [`CollectiveRequest::JoinWithData`], of a member that makes no other call of the group
    /// before this one ends, and whose parts in the calls that members made alone were small.
    JoinInOrder(Box<JoinRequest>),
    /// Request for the records of a file that match a predicate.
    Select(Box<SelectRequest>),
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

/// Name of a collective call: its group, and its number within the group. Members make the same
/// calls in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CallId {
    /// Number of the group.
    pub group: u64,
    /// Number of the call.
    pub number: u64,
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

/// Disk-directed, non-collective: transfer between one client and this server. Written data stays
/// in the server's cache until a [`FlushRequest`](crate::FlushRequest).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartRequest {
    /// Number among the active parts of the sender.
    pub number: u64,
    /// Read or write.
    pub direction: Direction,
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Bytes of each client.
    pub access: Access,
    /// Client of the access that the sender is.
    pub client: ClientId,
    /// Memory that the sender exposed to the servers.
    pub region: RegionId,
    /// Order in which each disk serves its blocks.
    pub order: DiskOrder,
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

/// Disk-directed: question for the blocks that a collective would transfer on one disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlanRequest {
    /// Read or write.
    pub direction: Direction,
    /// Number of the file, which must be open.
    pub file: FileId,
    /// Bytes of each client.
    pub access: Access,
    /// Order in which each disk serves its blocks.
    pub order: DiskOrder,
    /// Disk of the server.
    pub disk: DiskId,
    /// Number of blocks to leave out, which the server looked at before.
    pub skipped: u64,
}

/// Block that a collective would transfer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedBlock {
    /// Number of the block in the file.
    pub block: u64,
    /// Physical address of the block, of which only the order counts.
    pub address: u64,
    /// Clients that have bytes of the block, and how many, in the order in which the server asks
    /// them.
    pub shares: Vec<(ClientId, u64)>,
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
