//! One request to several servers. No server works on it after the call has ended.

use crate::client::Client;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use units::ServerId;
use wire::{Fault, PreparedRequest, Request};
use world::World;

/// Sends servers one request and waits until all have ended, so that no data arrives in a memory
/// later. When one fails, sends the others a cancellation of the transfer `number`. Returns the
/// first fault.
pub(super) async fn call_to_the_end<W: World>(
    client: &Client<W>,
    servers: &[ServerId],
    request: &Request,
    number: u64,
) -> Result<(), Fault> {
    let request = PreparedRequest::new(request);
    let calls = servers.iter().map(|server| client.call_prepared(*server, &request));
    let mut calls: FuturesUnordered<_> = calls.collect();
    let mut outcome = Ok(());
    while let Some(ended) = calls.next().await {
        if let Err(fault) = ended
            && outcome.is_ok()
        {
            outcome = Err(fault);
            let cancel = Request::Cancel { collective: number };
            let cancels = servers.iter().map(|server| client.call(*server, cancel.clone()));
            // A server that cannot be reached has left, and its call ends for that reason.
            join_all(cancels).await;
        }
    }
    outcome
}
