//! The transfer of a group: checks and agreements around every strategy.

use super::access_checks::{check_access, check_client};
use super::strategy::Strategy;
use super::transfer::Transfer;
use super::{caching, disk_directed, global_barrier, node_grouping, noncollective, two_phase};
use crate::client::{PeerMesh, SharedMemory};
use policy::{Access, Direction, ListEntry};
use units::{ClientId, ServerId};
use wire::Fault;
use world::{Memory, World};

impl<W: World> PeerMesh<W> {
    /// Transfers data between the file and every member's shared memory. Collective: returns when
    /// all of it is done, or the same fault to all members.
    pub async fn transfer(
        &self,
        transfer: &Transfer,
        memory: &SharedMemory<W>,
    ) -> Result<(), Fault> {
        let collective = self.next_collective();
        // Barrier of every strategy: from here on all memory is ready. It carries the fault that a
        // member finds in its own part, so that no member begins without the others.
        let mut checked = self.check(transfer, memory);
        let settled = self.client().settle_for(transfer.direction, transfer.file.file).await;
        checked = settled.and(checked);
        if checked.is_ok() {
            checked = self.reach(transfer).await;
        }
        if checked.is_ok() && transfer.sync && transfer.direction == Direction::Write {
            checked = self.client().keep_owed_size(&transfer.file).await;
        }
        self.agree(checked).await?;
        let moved = match transfer.strategy {
            Strategy::Caching => caching::client::transfer(self, transfer, memory).await,
            Strategy::TwoPhase => two_phase::client::transfer(self, transfer, memory).await,
            Strategy::DiskDirected => {
                disk_directed::client::transfer(self, transfer, memory, collective).await
            }
            Strategy::Noncollective => {
                noncollective::client::transfer(self, transfer, memory, collective).await
            }
            Strategy::GlobalBarrier => {
                global_barrier::client::transfer(self, transfer, memory).await
            }
            Strategy::NodeGrouping => node_grouping::client::transfer(self, transfer, memory).await,
        };
        self.client().world().compute(self.client().costs().collective).await;
        moved
    }

    /// Connects this member to the servers of its part of a transfer, unless it is connected to all
    /// servers. With servers that direct the transfer, member 0 registers all members. A transfer
    /// does this itself; call it before to keep it out of a timed region.
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when a server cannot be reached, [`Fault::BadAccess`] for an invalid
    /// access. The other members do not learn of it.
    pub async fn reach(&self, transfer: &Transfer) -> Result<(), Fault> {
        check_access(transfer.direction, &transfer.access, transfer.file.bytes)?;
        check_client(self.rank(), &transfer.access)?;
        self.client().reach(|| self.servers_for(transfer)).await?;
        match (transfer.strategy, self.rank()) {
            (Strategy::DiskDirected, ClientId(0)) => {
                self.register_at(transfer.file.servers()).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the servers that move bytes of this member.
    fn servers_for(&self, transfer: &Transfer) -> Vec<ServerId> {
        let Transfer { file, access, .. } = transfer;
        let places = match transfer.strategy {
            Strategy::TwoPhase => {
                let own = two_phase::client::segment_of(self, transfer);
                let (file_offset, memory_offset, length) = (own.start, 0, own.length());
                let own = ListEntry { file_offset, memory_offset, length };
                let all = Some(own).filter(|own| own.length > 0).into_iter().collect();
                Access::lists(vec![all]).servers_of(ClientId(0), &file.stripe)
            }
            // It joins the call for all.
            Strategy::DiskDirected if self.rank() == ClientId(0) => {
                return file.servers().collect();
            }
            Strategy::DiskDirected
            | Strategy::Caching
            | Strategy::Noncollective
            | Strategy::GlobalBarrier
            | Strategy::NodeGrouping => access.servers_of(self.rank(), &file.stripe),
        };
        places.into_iter().map(|place| file.pool.server(place)).collect()
    }

    /// Checks a transfer and this member's memory, before anything moves.
    fn check(&self, transfer: &Transfer, memory: &SharedMemory<W>) -> Result<(), Fault> {
        let bad = |cause: String| Err(Fault::BadAccess { cause });
        let access = &transfer.access;
        check_access(transfer.direction, access, transfer.file.bytes)?;
        if access.clients() != self.size() {
            return bad(format!(
                "it is for {} clients, and the group has {}",
                access.clients(),
                self.size()
            ));
        }
        let (needed, given) = (access.memory_bytes(self.rank()), memory.memory.length());
        if given < needed {
            return bad(format!("{} needs {needed} bytes of memory and has {given}", self.rank()));
        }
        Ok(())
    }
}
