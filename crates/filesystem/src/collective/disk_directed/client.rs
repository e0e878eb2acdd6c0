//! The client's side of disk-directed I/O: CollectiveReadCP of Figure 2c (TOCS 1997).

use super::super::Transfer;
use crate::client::{Expected, Group, SharedMemory};
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use units::{ClientId, ServerId};
use wire::{CollectiveRequest, Fault, Participant, Request};
use world::World;

/// The whole collective. Every member's memory was shared before, so the servers know it.
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
    let members = group.keys().zip(&memory.regions);
    let participants = members.map(|(key, &region)| Participant { key, region }).collect();
    let request = Request::Collective(Box::new(CollectiveRequest {
        collective,
        direction: transfer.direction,
        file: transfer.file.file,
        access: transfer.access.clone(),
        participants,
        order: transfer.order,
        sync: transfer.sync,
    }));
    call_to_the_end(group, &request, collective).await
}

/// Asks every server and waits until all have ended, so that nothing lands in anyone's memory
/// later. When one fails, the others are told to give up. Returns the first fault.
async fn call_to_the_end<W: World>(
    group: &Group<W>,
    request: &Request,
    collective: u64,
) -> Result<(), Fault> {
    let client = group.client();
    let mut calls: FuturesUnordered<_> = (0..client.servers())
        .map(|server| client.call(ServerId(server), request.clone()))
        .collect();
    let mut outcome = Ok(());
    while let Some(ended) = calls.next().await {
        if let Err(fault) = ended
            && outcome.is_ok()
        {
            outcome = Err(fault);
            let cancels = (0..client.servers())
                .map(|server| client.call(ServerId(server), Request::Cancel { collective }));
            // A server that cannot be told has left, and its call ends for that reason.
            futures_util::future::join_all(cancels).await;
        }
    }
    outcome
}
