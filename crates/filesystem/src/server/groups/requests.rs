//! Requests of members of a group: to register, to gather, and to join collective calls.

use super::call::Call;
use super::group::{Joined, Staged};
use super::refusal::bad;
use super::roster::Roster;
use crate::collective::disk_directed::carried::{bytes_of, carried_runs};
use crate::collective::disk_directed::participants::Members;
use crate::collective::disk_directed::server::DirectedCall;
use crate::scale::rare;
use crate::server::answer::Answer;
use crate::server::state::Server;
use futures_util::future::{Either, select};
use policy::{Access, Direction};
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use tracing::{debug, warn};
use units::{Duration, PeerId, Run, ServerId};
use wire::{
    AllGatherRequest, CallId, CollectiveCall, Fault, GroupRequest, JoinRequest, MemberRun, Reply,
    RequestId,
};
use world::{Memory, Payload, World};

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
    /// The memory `staged` is that of a member whose bytes go with the messages.
    pub(crate) async fn join(
        self: &Rc<Self>,
        from: PeerId,
        mut request: JoinRequest,
        staged: Option<Staged<W::Memory>>,
    ) -> Result<Reply, Fault> {
        let (id, timeout_ms) = (request.call, request.timeout_ms);
        let CollectiveCall { file, direction, .. } = request.parameters;
        let file_name = self.files().get(file)?.name().clone();
        // An earlier failure of write-behind is told instead, to all members: none waits then.
        let earlier = match direction {
            Direction::Write if request.access.is_ok() => {
                self.write_failures().unreported_to(file, from)
            }
            Direction::Read | Direction::Write => None,
        };
        if let Some(fault) = &earlier {
            request.access = Err(fault.clone());
        }
        let joined = self.groups().join(from, (request, staged), &file_name);
        let Joined { call, complete } = joined?;
        if earlier.is_some() {
            let _ = self.write_failures().report_to(file, from);
        }
        if let Some(roster) = complete {
            self.direct(id, &call, (roster, timeout_of(timeout_ms)));
        }
        let outcome = self.outcome_of(from, (id.group, &call), timeout_ms).await;
        self.groups().forget(id, &call);
        outcome.map(|bytes| match call.calls_alone() {
            0 => Reply::Moved { bytes },
            calls_alone => Reply::MovedTogether { bytes, calls_alone },
        })
    }

    /// Joins a call for a member whose bytes go with the messages.
    pub(crate) async fn join_with_data(
        self: &Rc<Self>,
        from: PeerId,
        (mut request, may_go_alone): (JoinRequest, bool),
        body: Option<W::Payload>,
    ) -> Result<Answer<W::Payload>, Fault> {
        if !matches!(request.members[..], [MemberRun { count: 1, .. }]) {
            return bad("one member joins a call with its data".to_owned());
        }
        let runs = match self.carried_here(&request) {
            Ok(runs) => runs,
            // So that the other members do not wait for this one.
            Err(fault) => {
                request.access = Err(fault);
                Vec::new()
            }
        };
        let length = runs.iter().filter_map(|run| run.checked_end()).max().unwrap_or(0);
        let Some(permit) = self.memory().keep_written(length) else {
            return Ok(Reply::NoRoom.into());
        };
        let memory = self.world().memory(length);
        let is_read = request.parameters.direction == Direction::Read;
        let (brought, wanted) = (body.as_ref().map_or(0, Payload::length), bytes_of(&runs));
        match body.filter(|_| brought > 0) {
            Some(body) if !is_read && brought == wanted => memory.scatter(&runs, &body),
            None if is_read || wanted == 0 => {}
            _ => {
                let cause = format!("a part came with {brought} bytes of data");
                request.access = request.access.and(Err(Fault::BadRequest { cause }));
            }
        }
        let CollectiveCall { file, sync, .. } = request.parameters;
        let is_first = self.files().get(file).is_ok_and(|it| self.place_in(&it) == Ok(ServerId(0)));
        let may_go_alone = may_go_alone && !sync && request.access.is_ok();
        let staged = Staged { memory: memory.clone(), may_go_alone, decides: is_first };
        let reply = self.join(from, request, Some(staged)).await?;
        let data = (is_read && length > 0).then(|| (memory.gather(&runs), None));
        Ok(Answer { reply, data, permit: Some(permit) })
    }

    /// Returns the pieces of a member's memory whose bytes go with the messages of this server.
    fn carried_here(&self, request: &JoinRequest) -> Result<Vec<Run>, Fault> {
        let access = request.access.as_ref().map_err(Fault::clone)?;
        let file = self.files().get(request.parameters.file)?;
        let place = self.place_in(&file)?;
        file.check_access(request.parameters.direction, access)?;
        let part = match access {
            Access::Parts(parts) if parts.len() == 1 => &parts[0],
            _ => return bad("one member has one part".to_owned()),
        };
        match carried_runs(part, &file.stripe) {
            Some(mut runs) => Ok(runs.remove(&place).unwrap_or_default()),
            None => bad("the part is too large to go with its messages".to_owned()),
        }
    }

    /// Waits for the outcome of a call: for the members until the timeout, then for the transfer.
    async fn outcome_of(
        &self,
        from: PeerId,
        (group, call): (u64, &Call<W::Memory>),
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
        call: &Rc<Call<W::Memory>>,
        (roster, timeout): (Rc<Roster>, Duration),
    ) {
        let (parameters, (members, access)) = (call.parameters(), call.take_access());
        let members = Members { roster, runs: members, staged: call.take_staged() };
        let directed = DirectedCall { id, parameters, access, members, timeout };
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
