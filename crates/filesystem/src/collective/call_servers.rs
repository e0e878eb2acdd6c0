//! One request to several servers. No server works on it after the call has ended.

use crate::client::{Client, unexpected};
use futures_util::stream::{FuturesUnordered, StreamExt};
use units::ServerId;
use wire::{CollectiveRequest, Fault, PreparedRequest, Reply, TransferName};
use world::World;

/// Sends servers one request and waits until all have ended, so that no data arrives in a memory
/// later. Returns the number of bytes that they have moved. When one fails, sends the others a
/// cancellation of the transfer with the fault, and returns the smallest fault.
pub(crate) async fn call_to_the_end<W: World>(
    client: &Client<W>,
    servers: &[ServerId],
    request: CollectiveRequest,
    transfer: TransferName,
) -> Result<u64, Fault> {
    let request = PreparedRequest::new(request);
    let calls = servers.iter().map(|server| client.call_prepared(*server, &request));
    all_to_the_end(client, servers, calls, transfer).await
}

/// As [`call_to_the_end`], for calls of the servers that are made already.
pub(crate) async fn all_to_the_end<W: World>(
    client: &Client<W>,
    servers: &[ServerId],
    calls: impl Iterator<Item = impl Future<Output = Result<Reply, Fault>>>,
    transfer: TransferName,
) -> Result<u64, Fault> {
    let mut calls: FuturesUnordered<_> = calls.collect();
    let (mut bytes, mut failure) = (0, None);
    while let Some(answer) = calls.next().await {
        let fault = match answer {
            Ok(Reply::Moved { bytes: moved }) => {
                bytes += moved;
                continue;
            }
            Ok(other) => unexpected(&other),
            Err(fault) => fault,
        };
        if failure.is_none() {
            // Another member may have all answers of the server that failed, so it learns the cause
            // from the others.
            let cause = Box::new(fault.clone());
            let cancel = CollectiveRequest::Cancel { transfer, cause };
            client.notify_servers(servers.iter().copied(), cancel);
        }
        failure = Some(failure.map_or(fault.clone(), |first: Fault| first.min(fault)));
    }
    failure.map_or(Ok(bytes), Err)
}
