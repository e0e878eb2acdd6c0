//! Groups whose members meet at the servers: the members that have joined a call, and the missing
//! ones.
//!
//! Each server waits for all members by itself and then directs the transfer of its blocks; no
//! member needs a connection to another. Figure 2c (TOCS 1997) has a barrier of the clients in
//! front of one request; here each member's request is its arrival at the barrier.
//!
//! Invariants:
//! - A call has one outcome, the same for every member that has joined it or joins it later.
//! - No call waits for a member that has left, nor longer than its timeout for a missing one.
//! - The state of a group goes with its last member.

use crate::server::group_locks::GroupLocks;
use crate::signal::Signal;
use policy::Direction;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::{ClientId, PeerId, RegionId};
use wire::{ClientKey, CollectiveCall, EnrolRequest, Fault, JoinRequest, PARTICIPANTS_MAX};

/// Maximum number of groups of a server.
const GROUPS_MAX: usize = 1 << 16;

/// Failed calls of a group that are remembered for members that join them late.
const FAILED_CALLS_MAX: usize = 64;

/// Maximum number of active calls of one group.
const CALLS_MAX: usize = 4096;

/// Groups and meetings of a server.
#[derive(Default)]
pub(crate) struct Rendezvous {
    pub(super) groups: RefCell<BTreeMap<u64, Group>>,
    pub(super) meetings: RefCell<BTreeMap<MeetingKey, Rc<Meeting>>>,
}

/// One group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) size: u32,
    pub(super) members: BTreeMap<ClientId, PeerId>,
    /// Members that have left of their own will.
    pub(super) left: Vec<ClientId>,
    /// Reason why no call can succeed any more.
    pub(super) broken: Option<Fault>,
    /// Calls that some member has joined and that have not ended.
    pub(super) calls: BTreeMap<u64, Rc<Call>>,
    pub(super) failed: VecDeque<(u64, Fault)>,
    /// Counter that the members share.
    pub(super) counter: u64,
    /// Locks that the members hold and wait for.
    pub(super) locks: GroupLocks,
}

/// One collective call of a group.
pub(super) struct Call {
    pub(super) description: String,
    pub(super) parameters: CollectiveCall,
    pub(super) arrivals: RefCell<BTreeMap<ClientId, Arrival>>,
    /// True from the moment at which the last member has joined.
    pub(super) is_complete: Cell<bool>,
    pub(super) outcome: RefCell<Option<Result<u64, Fault>>>,
    /// Notified when `is_complete` or `outcome` has changed.
    pub(super) changed: Signal,
}

/// One member in a call.
pub(super) struct Arrival {
    pub(super) key: ClientKey,
    pub(super) part: policy::OwnPart,
    pub(super) region: RegionId,
}

/// Group of the members, if they have enrolled, and name of the meeting.
pub(super) type MeetingKey = (Option<u64>, String);

/// An all-gather that waits for its members.
pub(super) struct Meeting {
    pub(super) name: String,
    pub(super) size: u32,
    pub(super) brought: RefCell<BTreeMap<ClientId, Vec<u8>>>,
    pub(super) outcome: RefCell<Option<Result<Vec<Vec<u8>>, Fault>>>,
    pub(super) changed: Signal,
}

impl Call {
    pub(super) fn end(&self, outcome: Result<u64, Fault>) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        self.changed.notify();
    }

    pub(super) fn missing(&self, size: u32) -> Vec<ClientId> {
        let arrivals = self.arrivals.borrow();
        (0..size).map(ClientId).filter(|rank| !arrivals.contains_key(rank)).collect()
    }
}

impl Meeting {
    pub(super) fn end(&self, outcome: Result<Vec<Vec<u8>>, Fault>) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        self.changed.notify();
    }
}

/// Ends a meeting when a member that waits in it leaves.
pub(super) struct Attendance<'a> {
    pub(super) rendezvous: &'a Rendezvous,
    pub(super) meeting: Rc<Meeting>,
    pub(super) key: &'a MeetingKey,
    pub(super) rank: ClientId,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if self.meeting.outcome.borrow().is_none() {
            let cause = "its connection to a server ended".to_owned();
            self.rendezvous.forget_meeting(self.key, &self.meeting);
            self.meeting.end(Err(Fault::ClientLeft { client: self.rank, cause }));
        }
    }
}

impl Rendezvous {
    /// Registers a client as a member of a group, or lets it leave.
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
            return bad(format!(
                "this server has {GROUPS_MAX} groups already; leave a group first"
            ));
        }
        let group = groups.entry(number).or_insert_with(|| Group { size, ..Group::default() });
        if group.size != size {
            return bad(format!("the group has {} members, not {size}", group.size));
        }
        match group.members.insert(rank, from) {
            Some(other) if other != from => {
                group.members.insert(rank, other);
                bad(format!("two clients have rank {} in one group", rank.0))
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
        group.locks.release_all(rank);
        for call in group.calls.values().filter(|call| !call.is_complete.get()) {
            if !call.arrivals.borrow().contains_key(&rank) {
                call.end(Err(missing_from(call, vec![rank], 0)));
            }
        }
        if group.members.is_empty() {
            groups.remove(&number);
        }
        drop(groups);
        self.end_meetings(number, |meeting| {
            let has_come = meeting.brought.borrow().contains_key(&rank);
            (!has_come).then(|| absent_from(&meeting.name, rank))
        });
    }

    /// Fails the calls that wait for a departed client, and those whose transfer runs in its name.
    pub(crate) fn peer_left(&self, peer: PeerId) {
        let mut broken = Vec::new();
        self.groups.borrow_mut().retain(|number, group| {
            let gone: Vec<ClientId> = group
                .members
                .iter()
                .filter(|(_, of)| **of == peer)
                .map(|(rank, _)| *rank)
                .collect();
            for client in gone {
                group.members.remove(&client);
                group.locks.release_all(client);
                let cause = "its connection to a server ended".to_owned();
                let fault = Fault::ClientLeft { client, cause };
                for call in group.calls.values() {
                    // The transfer of a complete call detects the departure itself, unless it went
                    // with the member in whose name it runs.
                    if !call.is_complete.get() || client == ClientId(0) {
                        call.end(Err(fault.clone()));
                    }
                }
                broken.push((*number, fault.clone()));
                group.broken.get_or_insert(fault);
            }
            !group.members.is_empty()
        });
        for (group, fault) in broken {
            self.end_meetings(group, |_| Some(fault.clone()));
        }
    }

    /// Ends the meetings of a group for which `reason` gives a fault.
    fn end_meetings(&self, group: u64, reason: impl Fn(&Meeting) -> Option<Fault>) {
        self.meetings.borrow_mut().retain(|(of, _), meeting| {
            let fault = if *of == Some(group) { reason(meeting) } else { None };
            let goes_on = fault.is_none();
            if let Some(fault) = fault {
                meeting.end(Err(fault));
            }
            goes_on
        });
    }

    /// Returns the reason why the members of a group cannot meet: one of them has gone.
    pub(super) fn why_apart(&self, (group, name): &MeetingKey) -> Option<Fault> {
        let groups = self.groups.borrow();
        let group = groups.get(group.as_ref()?)?;
        let absent = |first: &ClientId| absent_from(name, *first);
        group.broken.clone().or_else(|| group.left.first().map(absent))
    }

    /// Returns the member in whose name the transfer of a call runs, if `from` has joined the call.
    pub(crate) fn directed_for(&self, from: PeerId, collective: u64) -> Option<PeerId> {
        let groups = self.groups.borrow();
        groups.iter().find_map(|(number, group)| {
            let call = group.calls.get(&collective.wrapping_sub(*number))?;
            let is_member = |rank: &ClientId| group.members.get(rank) == Some(&from);
            let has_joined = call.arrivals.borrow().keys().any(is_member);
            group.members.get(&ClientId(0)).copied().filter(|_| has_joined)
        })
    }

    /// Cancels a call that is not complete, for a member of it.
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

    /// Gives `act` the group in which the client `from` is enrolled with this rank.
    pub(super) fn for_member<T>(
        &self,
        from: PeerId,
        (number, rank): (u64, ClientId),
        act: impl FnOnce(&mut Group) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut groups = self.groups.borrow_mut();
        let group = groups.get_mut(&number);
        match group.filter(|group| group.members.get(&rank) == Some(&from)) {
            Some(group) => act(group),
            None => bad(format!("this client is not enrolled as rank {} of its group", rank.0)),
        }
    }

    /// Enters a member into a call.
    pub(super) fn arrive(
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

    /// Ends a call for a member. The last one forgets it.
    pub(super) fn depart(&self, group: u64, number: u64, call: &Rc<Call>) {
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

    pub(super) fn forget_meeting(&self, key: &MeetingKey, meeting: &Rc<Meeting>) {
        let mut meetings = self.meetings.borrow_mut();
        if meetings.get(key).is_some_and(|known| Rc::ptr_eq(known, meeting)) {
            meetings.remove(key);
        }
    }
}

pub(super) fn bad<T>(cause: String) -> Result<T, Fault> {
    Err(Fault::BadRequest { cause })
}

/// Returns the fault of a meeting to which a member that has left cannot come.
fn absent_from(meeting: &str, member: ClientId) -> Fault {
    let call = format!("the meeting {meeting:?}");
    Fault::MembersMissing { missing: vec![member], call, waited_ms: 0 }
}

pub(super) fn missing_from(call: &Call, missing: Vec<ClientId>, waited_ms: u64) -> Fault {
    Fault::MembersMissing { missing, call: call.description.clone(), waited_ms }
}

/// Returns "collective write 17 of "T.h5"", counted from 0.
fn describe(call: &CollectiveCall, number: u64, file_name: &str) -> String {
    let verb = match call.direction {
        Direction::Read => "read",
        Direction::Write => "write",
    };
    format!("collective {verb} {number} of {file_name:?}")
}

/// Returns the description with the other parameters that may differ.
fn with_details(description: &str, call: &CollectiveCall) -> String {
    let sync = if call.sync { ", synced" } else { "" };
    format!("{description} ({:?} order{sync})", call.order)
}
