//! Meetings and collective calls of members that meet at the servers.

use crate::collective::disk_directed;
use crate::scale::rare;
use crate::server::rendezvous::{Arrival, Attendance, Call, Meeting, bad, missing_from};
use crate::server::state::Server;
use crate::signal::Signal;
use futures_util::future::{Either, select};
use policy::Access;
use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, PeerId};
use wire::{
    CollectiveCall, CollectiveRequest, Fault, JoinRequest, MEETING_BYTES_MAX,
    MEETING_NAME_BYTES_MAX, MEETING_TOTAL_BYTES_MAX, MeetRequest, NamedCollective,
    PARTICIPANTS_MAX, Participant, Reply, collective_number,
};
use world::World;

/// Maximum number of meetings that wait for members.
const MEETINGS_MAX: usize = 1 << 16;

/// Maximum timeout, in milliseconds: one year.
const TIMEOUT_MS_MAX: u64 = 365 * 24 * 3600 * 1000;

impl<W: World> Server<W> {
    /// Takes part in a meeting until all members have come.
    pub(crate) async fn meet(&self, request: MeetRequest) -> Result<Reply, Fault> {
        let MeetRequest { name, group, rank, size, timeout_ms, bytes } = request;
        if size == 0 || size as usize > PARTICIPANTS_MAX || rank.0 >= size {
            return bad(format!("a meeting of {size} members has no rank {}", rank.0));
        }
        let total = bytes.len().saturating_mul(size as usize);
        if name.len() > MEETING_NAME_BYTES_MAX
            || bytes.len() > MEETING_BYTES_MAX
            || total > MEETING_TOTAL_BYTES_MAX
        {
            return bad(format!(
                "a meeting has a name of at most {MEETING_NAME_BYTES_MAX} bytes, and members bring \
                 at most {MEETING_BYTES_MAX} bytes, {MEETING_TOTAL_BYTES_MAX} together"
            ));
        }
        let rendezvous = &self.rendezvous;
        let key = (group, name);
        if let Some(fault) = rendezvous.why_apart(&key) {
            return Err(fault);
        }
        let name = &key.1;
        let meeting = {
            let mut meetings = rendezvous.meetings.borrow_mut();
            if meetings.len() >= MEETINGS_MAX && !meetings.contains_key(&key) {
                return bad(format!("{MEETINGS_MAX} meetings already wait for members"));
            }
            let new = || {
                Rc::new(Meeting {
                    name: name.clone(),
                    size,
                    brought: RefCell::default(),
                    outcome: RefCell::default(),
                    changed: Signal::default(),
                })
            };
            Rc::clone(meetings.entry(key.clone()).or_insert_with(new))
        };
        if meeting.size != size || meeting.brought.borrow().contains_key(&rank) {
            return bad(format!(
                "rank {} of {size} cannot join the meeting {name:?}, which has {} members and \
                 perhaps this rank already; use a name that no other group uses",
                rank.0, meeting.size
            ));
        }
        meeting.brought.borrow_mut().insert(rank, bytes);
        if meeting.brought.borrow().len() == size as usize {
            rendezvous.forget_meeting(&key, &meeting);
            let brought = std::mem::take(&mut *meeting.brought.borrow_mut());
            meeting.end(Ok(brought.into_values().collect()));
        }
        let attendance = Attendance { rendezvous, meeting, key: &key, rank };
        let meeting = &attendance.meeting;
        let met = pin!(meeting.changed.until(|| meeting.outcome.borrow().clone()));
        let limit = pin!(self.world.sleep(timeout_of(timeout_ms)));
        let outcome = match select(met, limit).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => {
                let brought = meeting.brought.borrow();
                let missing = (0..size).map(ClientId).filter(|rank| !brought.contains_key(rank));
                let missing = missing.collect();
                drop(brought);
                let call = format!("the meeting {name:?}");
                let fault = Fault::MembersMissing { missing, call, waited_ms: timeout_ms };
                rendezvous.forget_meeting(&key, meeting);
                meeting.end(Err(fault.clone()));
                Err(fault)
            }
        };
        outcome.map(Reply::Met)
    }

    /// Joins a collective call, and waits for its end. The last member to join starts the transfer.
    pub(crate) async fn join(
        self: &Rc<Self>,
        from: PeerId,
        request: JoinRequest,
    ) -> Result<Reply, Fault> {
        let (group, number, timeout_ms) = (request.group, request.number, request.timeout_ms);
        let key = {
            let sessions = self.sessions.borrow();
            let session = sessions.get(from);
            session.map(|session| session.key).ok_or_else(|| Fault::BadRequest {
                cause: "the client has no session".to_owned(),
            })?
        };
        let file_name = self.files.get(request.call.file)?.name().clone();
        let call = self.rendezvous.arrive((from, key), request, &file_name)?;
        if call.is_complete.get() && call.outcome.borrow().is_none() {
            self.start_call(group, number, &call);
        }
        let outcome = self.outcome_of(from, &call, group, timeout_ms).await;
        self.rendezvous.depart(group, number, &call);
        outcome.map(|bytes| Reply::Moved { bytes })
    }

    /// Waits for the outcome of a call: for the members until the timeout, then for the transfer.
    async fn outcome_of(
        &self,
        from: PeerId,
        call: &Rc<Call>,
        group: u64,
        timeout_ms: u64,
    ) -> Result<u64, Fault> {
        let wait = self.bounded_wait(from);
        let outcome = || call.outcome.borrow().clone();
        let is_decided = || (call.is_complete.get() || outcome().is_some()).then_some(());
        let decided = pin!(call.changed.until(is_decided));
        let limit = pin!(self.world.sleep(timeout_of(timeout_ms)));
        if let Either::Right(_) = select(decided, limit).await {
            let size = self.rendezvous.groups.borrow().get(&group).map_or(0, |group| group.size);
            call.end(Err(missing_from(call, call.missing(size), timeout_ms)));
        }
        drop(wait);
        call.changed.until(outcome).await
    }

    /// Directs the transfer of a complete call, in the name of its member 0.
    fn start_call(self: &Rc<Self>, group: u64, number: u64, call: &Rc<Call>) {
        let first = {
            let groups = self.rendezvous.groups.borrow();
            groups.get(&group).and_then(|group| group.members.get(&ClientId(0)).copied())
        };
        let sessions = self.sessions.borrow();
        let Some((from, session)) = first.and_then(|from| Some((from, sessions.get(from)?))) else {
            let cause = "its connection to a server ended".to_owned();
            return call.end(Err(Fault::ClientLeft { client: ClientId(0), cause }));
        };
        let arrivals = std::mem::take(&mut *call.arrivals.borrow_mut());
        let participants: Vec<_> = arrivals
            .values()
            .map(|arrival| Participant { key: arrival.key, region: arrival.region })
            .collect();
        // Members that cancel must still be found.
        let left_behind = arrivals.iter().map(|(rank, arrival)| {
            let Arrival { key, region, .. } = *arrival;
            (*rank, Arrival { key, region, part: policy::OwnPart::NOTHING })
        });
        *call.arrivals.borrow_mut() = left_behind.collect();
        let parts = arrivals.into_values().map(|arrival| arrival.part).collect();
        let CollectiveCall { direction, file, order, sync } = call.parameters;
        let collective = collective_number(group, number);
        let access = Access::of_parts(parts);
        let request = CollectiveRequest { collective, direction, file, access, order, sync };
        let (server, call) = (Rc::clone(self), Rc::clone(call));
        session.scope.spawn(async move {
            let named = NamedCollective { request, participants };
            let served = rare(disk_directed::server::serve(&server, from, named)).await;
            call.end(served.map(|answer| match answer.reply {
                Reply::Moved { bytes } => bytes,
                _ => 0,
            }));
            Ok::<(), Infallible>(())
        });
    }
}

pub(super) fn timeout_of(timeout_ms: u64) -> Duration {
    Duration::from_ms(timeout_ms.min(TIMEOUT_MS_MAX))
}
