//! Groups whose members meet at the servers: who has joined a call, and who is missing.
//!
//! Each server waits for all members by itself and then directs the transfer of what it has; no
//! member needs a connection to another. Figure 2c (TOCS 1997) has a barrier of the clients in front
//! of one request; here each member's request is its arrival at the barrier.
//!
//! Invariants:
//! - A call has one outcome, the same for every member that has joined it or joins it later.
//! - Nobody waits for a member that has left, nor longer than it has said for one that is missing.
//! - What a group holds here goes with its last member.

use crate::collective::disk_directed;
use crate::server::Server;
use crate::signal::Signal;
use futures_util::future::{Either, select};
use policy::{Access, Direction};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, PeerId, RegionId};
use wire::{
    ClientKey, CollectiveCall, CollectiveRequest, EnrolRequest, Fault, JoinRequest,
    MEETING_BYTES_MAX, MEETING_NAME_BYTES_MAX, MEETING_TOTAL_BYTES_MAX, MeetRequest,
    NamedCollective, PARTICIPANTS_MAX, Participant, Reply, collective_number,
};
use world::World;

/// The most groups that a server knows at a time.
const GROUPS_MAX: usize = 1 << 16;

/// The most meetings that wait for members at a time.
const MEETINGS_MAX: usize = 1 << 16;

/// Failed calls of a group that are remembered for members that join them late.
const FAILED_CALLS_MAX: usize = 64;

/// The most calls of one group that are under way at a time.
const CALLS_MAX: usize = 4096;

/// The longest time-out, in milliseconds: a year.
const TIMEOUT_MS_MAX: u64 = 365 * 24 * 3600 * 1000;

/// What a server knows of groups and meetings.
#[derive(Default)]
pub(crate) struct Rendezvous {
    groups: RefCell<BTreeMap<u64, Group>>,
    meetings: RefCell<BTreeMap<String, Rc<Meeting>>>,
}

/// One group.
#[derive(Default)]
struct Group {
    size: u32,
    members: BTreeMap<ClientId, PeerId>,
    /// Members that have left of their own will.
    left: Vec<ClientId>,
    /// Reason why no call can succeed any more.
    broken: Option<Fault>,
    /// Calls that some member has joined and that have not ended.
    calls: BTreeMap<u64, Rc<Call>>,
    failed: VecDeque<(u64, Fault)>,
}

/// One collective call of a group.
struct Call {
    description: String,
    parameters: CollectiveCall,
    arrivals: RefCell<BTreeMap<ClientId, Arrival>>,
    /// True from the moment at which the last member has joined.
    is_complete: Cell<bool>,
    outcome: RefCell<Option<Result<u64, Fault>>>,
    /// Rung when one of the two has changed.
    changed: Signal,
}

/// One member in a call.
struct Arrival {
    key: ClientKey,
    part: policy::OwnPart,
    region: RegionId,
}

/// An all-gather that waits for its members.
struct Meeting {
    size: u32,
    brought: RefCell<BTreeMap<ClientId, Vec<u8>>>,
    outcome: RefCell<Option<Result<Vec<Vec<u8>>, Fault>>>,
    changed: Signal,
}

impl Call {
    fn end(&self, outcome: Result<u64, Fault>) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        self.changed.notify();
    }

    fn missing(&self, size: u32) -> Vec<ClientId> {
        let arrivals = self.arrivals.borrow();
        (0..size).map(ClientId).filter(|rank| !arrivals.contains_key(rank)).collect()
    }
}

impl Meeting {
    fn end(&self, outcome: Result<Vec<Vec<u8>>, Fault>) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        self.changed.notify();
    }
}

/// Ends a meeting when a member that waits in it leaves.
struct Attendance<'a> {
    rendezvous: &'a Rendezvous,
    meeting: Rc<Meeting>,
    name: &'a str,
    rank: ClientId,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if self.meeting.outcome.borrow().is_none() {
            let cause = "its connection to a server ended".to_owned();
            self.rendezvous.forget_meeting(self.name, &self.meeting);
            self.meeting.end(Err(Fault::ClientLeft { client: self.rank, cause }));
        }
    }
}

impl Rendezvous {
    /// A client makes itself known as a member of a group, or leaves it.
    pub(crate) fn enrol(&self, from: PeerId, request: EnrolRequest) -> Result<(), Fault> {
        let EnrolRequest { group: number, rank, size } = request;
        if size == 0 {
            self.leave(from, number, rank);
            return Ok(());
        }
        if size as usize > PARTICIPANTS_MAX || rank.0 >= size {
            return bad(format!("a group of {size} members has no rank {}", rank.0));
        }
        let mut groups = self.groups.borrow_mut();
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&number) {
            return bad(format!("this server knows {GROUPS_MAX} groups already; leave some"));
        }
        let group = groups.entry(number).or_insert_with(|| Group { size, ..Group::default() });
        if group.size != size {
            return bad(format!("the group has {} members, not {size}", group.size));
        }
        match group.members.insert(rank, from) {
            Some(other) if other != from => {
                group.members.insert(rank, other);
                bad(format!("two clients are rank {} of one group", rank.0))
            }
            _ => Ok(()),
        }
    }

    fn leave(&self, from: PeerId, number: u64, rank: ClientId) {
        let mut groups = self.groups.borrow_mut();
        let Some(group) = groups.get_mut(&number) else { return };
        if group.members.get(&rank) != Some(&from) {
            return;
        }
        group.members.remove(&rank);
        group.left.push(rank);
        for call in group.calls.values().filter(|call| !call.is_complete.get()) {
            if !call.arrivals.borrow().contains_key(&rank) {
                call.end(Err(missing_from(call, vec![rank], 0)));
            }
        }
        if group.members.is_empty() {
            groups.remove(&number);
        }
    }

    /// A client has left: calls that wait for it, or whose transfer it asked for, fail.
    pub(crate) fn peer_left(&self, peer: PeerId) {
        self.groups.borrow_mut().retain(|_, group| {
            let gone: Vec<ClientId> = group
                .members
                .iter()
                .filter(|(_, of)| **of == peer)
                .map(|(rank, _)| *rank)
                .collect();
            for client in gone {
                group.members.remove(&client);
                let cause = "its connection to a server ended".to_owned();
                let fault = Fault::ClientLeft { client, cause };
                for call in group.calls.values() {
                    // The transfer of a complete call finds it out by itself, unless it went with
                    // the member in whose name it runs.
                    if !call.is_complete.get() || client == ClientId(0) {
                        call.end(Err(fault.clone()));
                    }
                }
                group.broken.get_or_insert(fault);
            }
            !group.members.is_empty()
        });
    }

    /// The member in whose name the transfer of a call runs, if `from` has joined the call.
    pub(crate) fn directed_for(&self, from: PeerId, collective: u64) -> Option<PeerId> {
        let groups = self.groups.borrow();
        groups.iter().find_map(|(number, group)| {
            let call = group.calls.get(&collective.wrapping_sub(*number))?;
            let is_member = |rank: &ClientId| group.members.get(rank) == Some(&from);
            let has_joined = call.arrivals.borrow().keys().any(is_member);
            group.members.get(&ClientId(0)).copied().filter(|_| has_joined)
        })
    }

    /// A member gives up a call that is not complete.
    pub(crate) fn cancel(&self, from: PeerId, collective: u64) {
        if self.directed_for(from, collective).is_none() {
            return;
        }
        for (number, group) in self.groups.borrow().iter() {
            if let Some(call) = group.calls.get(&collective.wrapping_sub(*number))
                && !call.is_complete.get()
            {
                call.end(Err(Fault::Cancelled));
            }
        }
    }

    /// Enters a member into a call.
    fn arrive(
        &self,
        (from, key): (PeerId, ClientKey),
        request: JoinRequest,
        file_name: &str,
    ) -> Result<Rc<Call>, Fault> {
        let JoinRequest { number, rank, call: parameters, part, region, .. } = request;
        let mut groups = self.groups.borrow_mut();
        let group = groups.get_mut(&request.group);
        let Some(group) = group.filter(|group| group.members.get(&rank) == Some(&from)) else {
            return bad(format!("this client is not enrolled as rank {} of its group", rank.0));
        };
        if let Some((_, fault)) = group.failed.iter().find(|(failed, _)| *failed == number) {
            return Err(fault.clone());
        }
        if let Some(fault) = &group.broken {
            return Err(fault.clone());
        }
        if group.calls.len() >= CALLS_MAX && !group.calls.contains_key(&number) {
            return bad(format!("a group has at most {CALLS_MAX} collective calls under way"));
        }
        let call = group.calls.entry(number).or_insert_with(|| {
            Rc::new(Call {
                description: describe(&parameters, number, file_name),
                parameters,
                arrivals: RefCell::default(),
                is_complete: Cell::new(false),
                outcome: RefCell::default(),
                changed: Signal::default(),
            })
        });
        let call = Rc::clone(call);
        if call.parameters != parameters {
            let own = with_details(&describe(&parameters, number, file_name), &parameters);
            let first = call.arrivals.borrow().keys().next().map_or(0, |first| first.0);
            let other = with_details(&call.description, &call.parameters);
            let cause = format!("rank {first} is in {other}, rank {} in {own}", rank.0);
            call.end(Err(Fault::CallsDiffer { cause }));
        }
        let part = part.unwrap_or_else(|fault| {
            call.end(Err(fault));
            policy::OwnPart::NOTHING
        });
        let again = call.arrivals.borrow_mut().insert(rank, Arrival { key, part, region });
        if again.is_some() {
            return bad(format!("rank {} joined one call twice", rank.0));
        }
        if let Some(absent) =
            group.left.iter().find(|rank| !call.arrivals.borrow().contains_key(rank))
        {
            call.end(Err(missing_from(&call, vec![*absent], 0)));
        }
        if call.arrivals.borrow().len() == group.size as usize {
            call.is_complete.set(true);
            call.changed.notify();
        }
        Ok(call)
    }

    /// A call has ended for a member: the last one forgets it.
    fn depart(&self, group: u64, number: u64, call: &Rc<Call>) {
        let mut groups = self.groups.borrow_mut();
        let Some(group) = groups.get_mut(&group) else { return };
        if group.calls.get(&number).is_some_and(|known| Rc::ptr_eq(known, call)) {
            group.calls.remove(&number);
            if let Some(Err(fault)) = &*call.outcome.borrow() {
                group.failed.push_back((number, fault.clone()));
                if group.failed.len() > FAILED_CALLS_MAX {
                    group.failed.pop_front();
                }
            }
        }
    }

    fn forget_meeting(&self, name: &str, meeting: &Rc<Meeting>) {
        let mut meetings = self.meetings.borrow_mut();
        if meetings.get(name).is_some_and(|known| Rc::ptr_eq(known, meeting)) {
            meetings.remove(name);
        }
    }
}

impl<W: World> Server<W> {
    /// Takes part in a meeting until all members have come.
    pub(crate) async fn meet(&self, request: MeetRequest) -> Result<Reply, Fault> {
        let MeetRequest { name, rank, size, timeout_ms, bytes } = request;
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
        let meeting = {
            let mut meetings = rendezvous.meetings.borrow_mut();
            if meetings.len() >= MEETINGS_MAX && !meetings.contains_key(&name) {
                return bad(format!("{MEETINGS_MAX} meetings wait for members already"));
            }
            let new = || {
                Rc::new(Meeting {
                    size,
                    brought: RefCell::default(),
                    outcome: RefCell::default(),
                    changed: Signal::default(),
                })
            };
            Rc::clone(meetings.entry(name.clone()).or_insert_with(new))
        };
        if meeting.size != size || meeting.brought.borrow().contains_key(&rank) {
            return bad(format!(
                "rank {} of {size} came to the meeting {name:?}, which has {} members and may have \
                 that rank already; use a name that no other group uses",
                rank.0, meeting.size
            ));
        }
        meeting.brought.borrow_mut().insert(rank, bytes);
        if meeting.brought.borrow().len() == size as usize {
            rendezvous.forget_meeting(&name, &meeting);
            let brought = std::mem::take(&mut *meeting.brought.borrow_mut());
            meeting.end(Ok(brought.into_values().collect()));
        }
        let attendance = Attendance { rendezvous, meeting, name: &name, rank };
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
                rendezvous.forget_meeting(&name, meeting);
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
        let outcome = self.outcome_of(&call, group, timeout_ms).await;
        self.rendezvous.depart(group, number, &call);
        outcome.map(|bytes| Reply::Moved { bytes })
    }

    /// Waits for the outcome of a call: for the members until the time-out, then for the transfer.
    async fn outcome_of(&self, call: &Rc<Call>, group: u64, timeout_ms: u64) -> Result<u64, Fault> {
        let outcome = || call.outcome.borrow().clone();
        let is_decided = || (call.is_complete.get() || outcome().is_some()).then_some(());
        let decided = pin!(call.changed.until(is_decided));
        let limit = pin!(self.world.sleep(timeout_of(timeout_ms)));
        if let Either::Right(_) = select(decided, limit).await {
            let size = self.rendezvous.groups.borrow().get(&group).map_or(0, |group| group.size);
            call.end(Err(missing_from(call, call.missing(size), timeout_ms)));
        }
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
            let served = Box::pin(disk_directed::server::serve(&server, from, named)).await;
            call.end(served.map(|answer| match answer.reply {
                Reply::Moved { bytes } => bytes,
                _ => 0,
            }));
            Ok::<(), Infallible>(())
        });
    }
}

fn bad<T>(cause: String) -> Result<T, Fault> {
    Err(Fault::BadRequest { cause })
}

fn timeout_of(timeout_ms: u64) -> Duration {
    Duration::from_ms(timeout_ms.min(TIMEOUT_MS_MAX))
}

fn missing_from(call: &Call, missing: Vec<ClientId>, waited_ms: u64) -> Fault {
    Fault::MembersMissing { missing, call: call.description.clone(), waited_ms }
}

/// "collective write 17 of "T.h5"", counted from 0.
fn describe(call: &CollectiveCall, number: u64, file_name: &str) -> String {
    let verb = match call.direction {
        Direction::Read => "read",
        Direction::Write => "write",
    };
    format!("collective {verb} {number} of {file_name:?}")
}

/// The same with what else may differ.
fn with_details(description: &str, call: &CollectiveCall) -> String {
    let sync = if call.sync { ", synced" } else { "" };
    format!("{description} ({:?} order{sync})", call.order)
}
