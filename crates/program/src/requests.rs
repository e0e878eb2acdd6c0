//! Operations of a rank that have begun and that it has not waited for.

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use trace::RequestNumber;

/// Operations under way, by the numbers of their requests.
pub(crate) struct Requests<E> {
    under_way: FuturesUnordered<LocalBoxFuture<'static, (RequestNumber, Result<(), E>)>>,
    ended: BTreeMap<RequestNumber, Result<(), E>>,
}

impl<E: 'static> Requests<E> {
    pub(crate) fn new() -> Self {
        Self { under_way: FuturesUnordered::new(), ended: BTreeMap::new() }
    }

    /// Adds an operation, and lets it begin.
    pub(crate) async fn add(
        &mut self,
        number: RequestNumber,
        operation: impl Future<Output = Result<(), E>> + 'static,
    ) {
        self.under_way.push(Box::pin(async move { (number, operation.await) }));
        self.progressing(std::future::ready(())).await;
    }

    /// Waits for `present`; operations under way go on meanwhile.
    pub(crate) async fn progressing<T>(&mut self, present: impl Future<Output = T>) -> T {
        let mut present = pin!(present);
        poll_fn(|context| {
            self.progress(context);
            present.as_mut().poll(context)
        })
        .await
    }

    fn progress(&mut self, context: &mut Context<'_>) {
        // An empty set costs a waker all the same.
        if self.under_way.is_empty() {
            return;
        }
        while let Poll::Ready(Some((number, ended))) = self.under_way.poll_next_unpin(context) {
            self.ended.insert(number, ended);
        }
    }

    /// Waits until the operation of a request has ended. A request without an operation, which the
    /// program freed or never began, has ended.
    pub(crate) async fn wait(&mut self, number: RequestNumber) -> Result<(), E> {
        loop {
            if let Some(ended) = self.ended.remove(&number) {
                return ended;
            }
            match self.under_way.next().await {
                Some((number, ended)) => drop(self.ended.insert(number, ended)),
                None => return Ok(()),
            }
        }
    }

    /// Waits until all operations have ended.
    pub(crate) async fn wait_for_all(&mut self) -> Result<(), E> {
        while let Some((_, ended)) = self.under_way.next().await {
            ended?;
        }
        std::mem::take(&mut self.ended).into_values().collect()
    }
}
