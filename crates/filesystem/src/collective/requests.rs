//! Requests for transfers that this server directs: collective calls, and parts of single clients.

use super::{disk_directed, noncollective, select};
use crate::scale::rare;
use crate::server::Server;
use crate::server::answer::Answer;
use crate::server::transfers::active_transfers::TransferKey;
use crate::server::transfers::answer_pools::{LARGE_ANSWER_BYTES, Source};
use std::convert::Infallible;
use std::rc::Rc;
use units::PeerId;
use wire::{CollectiveRequest, Fault, Reply, RequestId, TransferName};
use world::World;

impl<W: World> Server<W> {
    /// Answers a request for a transfer that this server directs.
    pub(crate) async fn answer_collective(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: CollectiveRequest,
        body: Option<W::Payload>,
    ) -> Result<(), Infallible> {
        let large = match &request {
            CollectiveRequest::Plan(plan) => Some((Source::Disk(plan.disk), LARGE_ANSWER_BYTES)),
            _ => None,
        };
        self.answer(call, large, rare(self.serve_collective(call.0, request, body))).await
    }

    async fn serve_collective(
        self: &Rc<Self>,
        from: PeerId,
        request: CollectiveRequest,
        body: Option<W::Payload>,
    ) -> Result<Answer<W::Payload>, Fault> {
        match request {
            CollectiveRequest::Join(request) => {
                self.join(from, *request, None).await.map(Answer::from)
            }
            CollectiveRequest::JoinWithData(request) => {
                self.join_with_data(from, (*request, false), body).await
            }
            CollectiveRequest::JoinInOrder(request) => {
                self.join_with_data(from, (*request, true), body).await
            }
            CollectiveRequest::Part(request) => {
                noncollective::server::serve(self, from, *request).await
            }
            CollectiveRequest::Cancel { transfer, cause } => {
                Ok(self.cancel(from, transfer, *cause).into())
            }
            CollectiveRequest::Plan(request) => disk_directed::plan::serve(self, *request).await,
            CollectiveRequest::Select(request) => {
                select::requests::serve(self, from, *request, body).await
            }
        }
    }

    /// Aborts an active transfer of this client, if there is one of this name. All its members are
    /// told the cause.
    fn cancel(&self, from: PeerId, transfer: TransferName, cause: Fault) -> Reply {
        let active = match transfer {
            TransferName::Call(call) => {
                self.groups().cancel(from, call, &cause).then_some(TransferKey::Call(call))
            }
            TransferName::Part(number) => Some(TransferKey::Part(from, number)),
        };
        if let Some(active) = active {
            self.active_transfers().abort(active, cause);
        }
        Reply::Done
    }
}
