//! Plans of collectives: what the servers would transfer, and in which order.

use crate::client::faults::unexpected;
use crate::client::state::Client;
use policy::{Access, Direction, DiskOrder};
use units::{DiskId, ServerId};
use wire::{CollectiveRequest, Fault, FileRecord, PlanRequest, PlannedBlock, Reply};
use world::World;

/// Block that a server would transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedTransfer {
    /// Server of the block.
    pub server: ServerId,
    /// Disk of the server.
    pub disk: DiskId,
    /// The block, and the bytes of each client in it.
    pub block: PlannedBlock,
}

/// Plan of a collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectivePlan {
    /// Blocks by server and disk, those of a disk in the order of their transfer. Disks work at the
    /// same time.
    pub transfers: Vec<PlannedTransfer>,
    /// False if a disk has more blocks than were asked for.
    pub is_complete: bool,
}

impl<W: World> Client<W> {
    /// Asks the servers of an open file what a collective of an access would transfer. Moves no
    /// data. Returns at most `blocks_max` blocks of each disk.
    pub async fn plan(
        &self,
        file: &FileRecord,
        (direction, access, order): (Direction, &Access, DiskOrder),
        blocks_max: u64,
    ) -> Result<CollectivePlan, Fault> {
        let mut plan = CollectivePlan { transfers: Vec::new(), is_complete: true };
        for server in file.servers() {
            for disk in (0..file.stripe.disks_per_server).map(DiskId) {
                let (mut skipped, mut found) = (0, 0);
                loop {
                    let (file, access) = (file.file, access.clone());
                    let request = PlanRequest { direction, file, access, order, disk, skipped };
                    let reply =
                        self.call(server, CollectiveRequest::Plan(Box::new(request))).await?;
                    let Reply::Plan { blocks, looked_at, more } = reply else {
                        return Err(unexpected(&reply));
                    };
                    let more = more || found + blocks.len() as u64 > blocks_max;
                    let of_disk = |block| PlannedTransfer { server, disk, block };
                    let room = usize::try_from(blocks_max - found).unwrap_or(usize::MAX);
                    found += blocks.len().min(room) as u64;
                    skipped += looked_at;
                    plan.transfers.extend(blocks.into_iter().take(room).map(of_disk));
                    if !more || looked_at == 0 || found >= blocks_max {
                        plan.is_complete &= !more;
                        break;
                    }
                }
            }
        }
        Ok(plan)
    }
}
