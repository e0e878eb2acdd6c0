//! Collective calls of one member of a group, on the I/O thread.

use super::cached_record::CachedRecord;
use super::collective_options::CollectiveOptions;
use super::connection::Shared;
use super::peers::Peers;
use super::plain::move_alone;
use super::user_memory::RawMemory;
use filesystem::collective::Strategy;
use filesystem::{Fault, Moved, PeerCall, PeerTurn};
use policy::{Direction, OwnPart};
use wire::{CollectiveCall, FileRecord};
use world_real::{RealMemory, RealWorld};

/// State of a member.
pub(super) struct Member {
    membership: filesystem::Group<RealWorld>,
    peers: Peers,
}

/// A member's part in a collective transfer of a file.
pub(super) struct FileCall {
    pub(super) direction: Direction,
    pub(super) options: CollectiveOptions,
    pub(super) known: CachedRecord,
    pub(super) part: OwnPart,
    pub(super) memory: RawMemory,
}

/// Place of a call in the order of the calls of a group.
pub(super) struct CallPlace {
    number: u64,
    /// Turn among the calls in which members exchange data with one another.
    turn: Option<PeerTurn>,
}

impl FileCall {
    pub(super) fn verb(&self) -> &'static str {
        match self.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }
}

impl Member {
    pub(super) fn new(membership: filesystem::Group<RealWorld>, peers: Peers) -> Self {
        Self { membership, peers }
    }

    pub(super) fn membership(&self) -> &filesystem::Group<RealWorld> {
        &self.membership
    }

    /// Takes the place of a call. Members take places in the same order.
    pub(super) fn begin_call(&self, strategy: Strategy) -> CallPlace {
        let is_directed = strategy == Strategy::DiskDirected;
        let turn = (!is_directed).then(|| self.peers.take_turn());
        CallPlace { number: self.membership.begin_call(), turn }
    }

    /// Makes a call. Returns the bytes of this member's part, and the number of the next calls that
    /// all members make alone.
    pub(super) async fn make(
        &self,
        shared: &Shared,
        place: CallPlace,
        call: FileCall,
        may_go_alone: bool,
    ) -> Result<Moved, Fault> {
        let FileCall { direction, options, known, part, memory } = call;
        let memory = memory.lend();
        let end = part.file_extent().map_or(0, |extent| extent.end);
        let bytes = part.bytes();
        let reached = match direction {
            Direction::Read => known.holding(&shared.client, end).await,
            Direction::Write => known.grown(&shared.client, end).await,
        };
        let (record, part) = match reached {
            Ok(record) => (record, Ok(part)),
            Err(fault) => (known.get(), Err(fault)),
        };
        let how = (direction, options, may_go_alone);
        let files = (&known, &*record);
        let moved = self.transfer_or_move_alone(shared, place, files, how, part, &memory).await;
        if let Err(Fault::PastEnd { .. }) = &moved {
            // Another program has truncated the file. The next call knows its size.
            let _ = known.caught_up(&shared.client).await;
        }
        moved.map(|calls_alone| Moved { bytes, calls_alone })
    }

    /// As [`Member::transfer`], also where a server of the file was lost since the group was
    /// formed: then each member moves its part alone, when the server is there again.
    async fn transfer_or_move_alone(
        &self,
        shared: &Shared,
        place: CallPlace,
        (known, file): (&CachedRecord, &FileRecord),
        how: (Direction, CollectiveOptions, bool),
        part: Result<OwnPart, Fault>,
        memory: &RealMemory,
    ) -> Result<u32, Fault> {
        let (direction, CollectiveOptions { sync, .. }, _) = how;
        let part = known.check(&shared.client).and(part);
        let waits = shared.client.awaits_lost_servers();
        if !waits || !self.membership.has_lost_server_of(file) {
            let losses = shared.client.losses(file.servers());
            let moved = self.transfer(place, file, how, part.clone(), memory).await;
            if !waits || !self.membership.has_lost_server_of(file) {
                if direction == Direction::Write && !sync {
                    known.unsynced().add(|| losses);
                }
                return moved;
            }
            match moved {
                // A server of this host may still use the memory.
                Err(fault @ Fault::ServerStalled { .. }) => return Err(fault),
                // Of earlier calls.
                Err(fault @ Fault::WritesLost { .. }) => return Err(fault),
                Ok(calls) if direction == Direction::Read => return Ok(calls),
                // What was written is written once more.
                Ok(_) | Err(_) => {}
            }
        }
        move_alone(shared, known, (direction, part?, sync), memory).await.map(|()| 0)
    }

    /// Returns the number of the next calls that all members make alone.
    async fn transfer(
        &self,
        CallPlace { number, turn }: CallPlace,
        file: &FileRecord,
        (direction, options, may_go_alone): (Direction, CollectiveOptions, bool),
        part: Result<OwnPart, Fault>,
        memory: &RealMemory,
    ) -> Result<u32, Fault> {
        let CollectiveOptions {
            strategy, order, outstanding_per_disk, node_group_size, sync, ..
        } = options;
        let Some(turn) = turn else {
            let call = CollectiveCall { direction, file: file.file, order, sync };
            let how = (number, may_go_alone);
            let moved = self.membership.transfer_in_order(how, file, call, part, memory).await?;
            return Ok(moved.calls_alone);
        };
        let call =
            PeerCall { strategy, direction, order, outstanding_per_disk, node_group_size, sync };
        let place = (number, turn);
        self.peers.transfer(&self.membership, place, file, call, part, memory).await?;
        Ok(0)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.membership.leave();
    }
}
