//! Client side of non-collective disk-directed I/O.

use super::super::access_checks::{check_access, check_client};
use super::super::caching;
use super::super::call_servers::call_to_the_end;
use super::super::transfer::Transfer;
use super::part::Part;
use crate::client::{Client, PeerMesh, SharedMemory, WithdrawnOnDrop};
use policy::Direction;
use units::{RegionId, ServerId};
use wire::{CollectiveRequest, Fault, PartRequest, TransferName};
use world::{Memory, World};

/// Transfers the part of one member of a group. Members wait for one another only to agree on the
/// outcome.
pub(crate) async fn transfer<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
    collective: u64,
) -> Result<(), Fault> {
    let part = Part::of(transfer, mesh.rank());
    let moved = ask(mesh.client(), &part, memory.region, collective).await;
    caching::client::finish_without_prefetches(mesh, transfer, moved).await
}

impl<W: World> Client<W> {
    /// Transfers data between the file and this client's `memory`. No other client need take part.
    /// When it returns, all data is in its place, and written data is on the disks. A read may or
    /// may not see bytes that others write at the same time.
    ///
    /// # Errors
    /// Faults of the servers. They have ended their work then, and any of the bytes may have moved.
    /// As every flush does, a write reports failures of write-behind of the file since this
    /// client's last flush, or since it opened the file.
    pub async fn transfer_part(&self, part: &Part, memory: &W::Memory) -> Result<(), Fault> {
        self.move_part(part, memory).await?;
        match part.direction {
            Direction::Read => Ok(()),
            Direction::Write => self.flush(&part.file, part.sync).await,
        }
    }

    /// [`Client::transfer_part`], but what was written may still be in the caches of the servers.
    pub async fn move_part(&self, part: &Part, memory: &W::Memory) -> Result<(), Fault> {
        check_client(part.client, &part.access)?;
        let part = &part.alone();
        check(part, memory.length())?;
        match part.direction {
            Direction::Read => self.settle(part.file.file, false).await,
            Direction::Write => self.settle_writes(part.file.file, false).await?,
        }
        // No server gets the end of a transfer before its beginning.
        self.reach(|| servers_of(part)).await?;
        let region = self.expose_at_once(memory).await;
        let withdrawn_if_dropped = WithdrawnOnDrop { world: self.world(), region };
        let number = self.world().random();
        let moved = ask(self, part, region, number).await;
        std::mem::forget(withdrawn_if_dropped);
        self.world().withdraw(region).await;
        self.world().compute(self.costs().collective).await;
        moved
    }
}

/// Sends one request to each server that has blocks of the part, and waits for all of them.
async fn ask<W: World>(
    client: &Client<W>,
    part: &Part,
    region: RegionId,
    number: u64,
) -> Result<(), Fault> {
    let servers = servers_of(part);
    let request = CollectiveRequest::Part(Box::new(PartRequest {
        number,
        direction: part.direction,
        file: part.file.file,
        access: part.access.clone(),
        client: part.client,
        region,
        order: part.order,
    }));
    call_to_the_end(client, &servers, request, TransferName::Part(number)).await.map(|_| ())
}

/// Returns the servers that have blocks of a part.
fn servers_of(part: &Part) -> Vec<ServerId> {
    let places = part.access.servers_of(part.client, &part.file.stripe);
    places.into_iter().map(|place| part.file.pool.server(place)).collect()
}

/// Checks a part and the memory for it, before anything moves.
fn check(part: &Part, memory_bytes: u64) -> Result<(), Fault> {
    check_access(part.direction, &part.access, part.file.bytes)?;
    let needed = part.access.memory_bytes(part.client);
    if memory_bytes < needed {
        let cause = format!("it needs {needed} bytes of memory and has {memory_bytes}");
        return Err(Fault::BadAccess { cause });
    }
    Ok(())
}
