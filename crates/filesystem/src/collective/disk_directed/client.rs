//! Client side of disk-directed I/O: CollectiveReadCP of Figure 2c (TOCS 1997).

use super::super::call_servers::call_to_the_end;
use super::super::transfer::Transfer;
use crate::client::{Expected, Group, SharedMemory};
use futures_util::future::{Either, select};
use units::{ClientId, ServerId};
use wire::{CollectiveRequest, Fault, GroupCollective, NamedCollective, Participant, Request};
use world::World;

/// Carries out a collective. Every member has shared its memory, so the servers can reach it.
pub(crate) async fn transfer<W: World>(
    group: &Group<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
    collective: &Expected<'_>,
) -> Result<(), Fault> {
    let directed = match group.rank() {
        ClientId(0) => direct(group, transfer, memory, collective.number()).await,
        _ => Ok(()),
    };
    let agreement = std::pin::pin!(group.agree(directed));
    let failure = std::pin::pin!(collective.failure());
    // A server may know of a failure before the members do.
    match select(agreement, failure).await {
        Either::Left((agreed, _)) => agreed,
        Either::Right((fault, agreement)) => agreement.await.and(Err(fault)),
    }
}

/// Sends the one request to each server and waits for all of them.
async fn direct<W: World>(
    group: &Group<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
    collective: u64,
) -> Result<(), Fault> {
    let request = CollectiveRequest {
        collective,
        direction: transfer.direction,
        file: transfer.file.file,
        access: transfer.access.clone(),
        order: transfer.order,
        sync: transfer.sync,
    };
    let regions = memory.at_servers.iter().map(|at| at.region);
    let request = if memory.needs_roster() {
        let (group, regions) = (group.number(), regions.collect());
        Request::GroupCollective(Box::new(GroupCollective { request, group, regions }))
    } else {
        let members = group.keys().iter().zip(regions);
        let participants = members.map(|(&key, region)| Participant { key, region }).collect();
        Request::Collective(Box::new(NamedCollective { request, participants }))
    };
    let servers: Vec<ServerId> = transfer.file.servers().collect();
    call_to_the_end(group.client(), &servers, &request, collective).await
}
