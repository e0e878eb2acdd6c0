//! Requests of members of a group: to register, to gather, and to join collective calls.

use super::call::Call;
use super::group::Joined;
use super::roster::Roster;
use crate::collective::disk_directed::server::DirectedCall;
use crate::scale::rare;
use crate::server::answer::Answer;
use crate::server::state::Server;
use futures_util::future::{Either, select};
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use tracing::{debug, warn};
use units::{Duration, PeerId};
use wire::{AllGatherRequest, CallId, Fault, GroupRequest, JoinRequest, Reply, RequestId};
use world::World;

/// Maximum timeout, in milliseconds: one year.
const TIMEOUT_MS_MAX: u64 = 365 * 24 * 3600 * 1000;

impl<W: World> Server<W> {
    /// Answers a request of a member of a group.
    pub(crate) async fn answer_group(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: GroupRequest,
    ) -> Result<(), Infallible> {
        self.answer(call, None, rare(self.serve_group(call.0, request))).await
    }

    async fn serve_group(
        &self,
        from: PeerId,
        request: GroupRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        let served = match request {
            GroupRequest::Register(request) => {
                self.groups().register(from, *request).map(|()| Reply::Done)
            }
            GroupRequest::Leave(request) => {
                self.groups().leave(from, request);
                Ok(Reply::Done)
            }
            GroupRequest::AllGather(request) => {
                let _wait = self.clients().bounded_wait(from);
                self.all_gather(*request).await
            }
            GroupRequest::Counter(request) => self.count(from, request),
            GroupRequest::Lock(request) => self.lock(from, request).await,
            GroupRequest::Unlock(request) => self.unlock(from, request),
        };
        served.map(Answer::from)
    }

    /// Takes part in an all-gather until all members have brought their bytes.
    async fn all_gather(&self, request: AllGatherRequest) -> Result<Reply, Fault> {
        let (group, timeout_ms) = (request.group, request.timeout_ms);
        if let Some(fault) = self.groups().why_incomplete(request.group, &request.name) {
            return Err(fault);
        }
        let gathering = self.groups().all_gathers().bring(request)?;
        let (ended, timeout) = (pin!(gathering.ended()), timeout_of(timeout_ms));
        let late = pin!(async {
            self.world().sleep(timeout).await;
            gathering.is_late().await;
            self.groups().silent_of(self.world(), group, gathering.missing(), timeout).await
        });
        let outcome = match select(ended, late).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right((silent, _)) => Err(gathering.end_without(silent, timeout_ms)),
        };
        outcome.map(Reply::Gathered)
    }

    /// Joins a collective call, and waits for its end. The last member to join starts the transfer.
    pub(crate) async fn join(
        self: &Rc<Self>,
        from: PeerId,
        request: JoinRequest,
    ) -> Result<Reply, Fault> {
        let (id, timeout_ms) = (request.call, request.timeout_ms);
        let file_name = self.files().get(request.parameters.file)?.name().clone();
        let Joined { call, complete } = self.groups().join(from, request, &file_name)?;
        if let Some(roster) = complete {
            self.direct(id, &call, (roster, timeout_of(timeout_ms)));
        }
        let outcome = self.outcome_of(from, (id.group, &call), timeout_ms).await;
        self.groups().forget(id, &call);
        outcome.map(|bytes| Reply::Moved { bytes })
    }

    /// Waits for the outcome of a call: for the members until the timeout, then for the transfer.
    async fn outcome_of(
        &self,
        from: PeerId,
        (group, call): (u64, &Call),
        timeout_ms: u64,
    ) -> Result<u64, Fault> {
        let wait = self.clients().bounded_wait(from);
        let (decided, timeout) = (pin!(call.decided()), timeout_of(timeout_ms));
        let late = pin!(async {
            self.world().sleep(timeout).await;
            call.is_late().await;
            self.groups().silent_of(self.world(), Some(group), call.missing(), timeout).await
        });
        if let Either::Right((silent, _)) = select(decided, late).await {
            call.end_without(silent, timeout_ms);
        }
        drop(wait);
        call.ended().await
    }

    /// Directs the transfer of a complete call. It belongs to no client: a client that departs
    /// aborts it.
    fn direct(
        self: &Rc<Self>,
        id: CallId,
        call: &Rc<Call>,
        (roster, timeout): (Rc<Roster>, Duration),
    ) {
        let (parameters, (members, access)) = (call.parameters(), call.take_access());
        let directed = DirectedCall { id, parameters, access, members, roster, timeout };
        let (server, call) = (Rc::clone(self), Rc::clone(call));
        self.collectives().spawn(async move {
            debug!(call = call.description(), "all members have joined");
            let begun = server.world().now();
            let served = rare(directed.serve(&server)).await;
            let seconds = server.world().now().since(begun).as_seconds();
            match &served {
                Ok(bytes) => {
                    debug!(call = call.description(), bytes, seconds, "the transfer is done")
                }
                Err(fault) => {
                    warn!(call = call.description(), seconds, %fault, "the transfer failed")
                }
            }
            call.end(served);
            Ok::<(), Infallible>(())
        });
    }
}

pub(super) fn timeout_of(timeout_ms: u64) -> Duration {
    Duration::from_ms(timeout_ms.min(TIMEOUT_MS_MAX))
}
