//! The client's side of non-collective disk-directed I/O.

use super::super::access_checks::{check_access, check_client};
use super::super::caching;
use super::super::call_servers::call_to_the_end;
use super::super::transfer::Transfer;
use super::part::Part;
use crate::client::{Client, Group, SharedMemory};
use policy::Direction;
use units::{RegionId, ServerId};
use wire::{Fault, PartRequest, Request};
use world::{Memory, World};

/// The part of one member of a group. Nobody waits for the others until all that is left to do is
/// to agree on the outcome.
pub(crate) async fn transfer<W: World>(
    group: &Group<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
    collective: u64,
) -> Result<(), Fault> {
    let part = Part::of(transfer, group.rank());
    let moved = ask(group.client(), &part, memory.region, collective).await;
    match transfer.direction {
        Direction::Read => group.agree(moved).await,
        Direction::Write => caching::client::finish(group, transfer, moved).await,
    }
}

impl<W: World> Client<W> {
    /// Makes a transfer between the file and this client's `memory`, alone: no other client need
    /// take part or know. When it returns, everything is in its place; what was written is with the
    /// disks. Bytes that others write at the same time may be seen or not.
    ///
    /// # Errors
    /// What the servers answer; they have then ended what they had begun of it, and which of the
    /// bytes have moved is not known. As every flush does, a write reports what went wrong with the
    /// file behind anyone's back since this client's last one, or since it opened the file.
    pub async fn transfer_part(&self, part: &Part, memory: &W::Memory) -> Result<(), Fault> {
        check_client(part.client, &part.access)?;
        let part = &part.alone();
        check(part, memory.length())?;
        // So that none of them hears of the end of a transfer before its beginning.
        self.reach(|| servers_of(part)).await?;
        let region = self.expose_to_servers(memory).await?.region;
        let number = self.world().random();
        let moved = ask(self, part, region, number).await;
        self.world().withdraw(region).await;
        self.world().compute(self.costs().collective).await;
        moved?;
        match part.direction {
            Direction::Read => Ok(()),
            Direction::Write => self.flush(&part.file, part.sync).await,
        }
    }
}

/// Sends one request to each server that has some of the part, and waits for all of them.
async fn ask<W: World>(
    client: &Client<W>,
    part: &Part,
    region: RegionId,
    number: u64,
) -> Result<(), Fault> {
    let servers = servers_of(part);
    let request = Request::Part(Box::new(PartRequest {
        number,
        direction: part.direction,
        file: part.file.file,
        access: part.access.clone(),
        client: part.client,
        region,
        order: part.order,
    }));
    call_to_the_end(client, &servers, &request, number).await
}

/// The servers that have some of a part.
fn servers_of(part: &Part) -> Vec<ServerId> {
    let places = part.access.servers_of(part.client, &part.file.stripe);
    places.into_iter().map(|place| part.file.pool.server(place)).collect()
}

/// Finds, before anything moves, what is wrong with a part or with the memory for it.
fn check(part: &Part, memory_bytes: u64) -> Result<(), Fault> {
    check_access(part.direction, &part.access, part.file.bytes)?;
    let needed = part.access.memory_bytes(part.client);
    if memory_bytes < needed {
        let cause = format!("it needs {needed} bytes of memory and has {memory_bytes}");
        return Err(Fault::BadAccess { cause });
    }
    Ok(())
}
