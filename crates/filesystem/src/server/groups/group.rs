//! One group and its calls; all groups of a server.
//!
//! Invariants:
//! - No call waits for a member that has left, nor longer than its timeout for a missing one.
//! - The state of a group goes with its last member.

use super::all_gather::AllGathers;
use super::call::Call;
use super::locks::GroupLocks;
use super::refusal::bad;
use super::roster::{Member, Roster};
use policy::Access;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use tracing::debug;
use units::{ClientId, PeerId};
use wire::{
    CallId, Fault, JoinRequest, LeaveRequest, MemberRun, PARTICIPANTS_MAX, RegisterRequest,
};

/// Maximum number of groups of a server.
const GROUPS_MAX: usize = 1 << 16;

/// Maximum number of members of all groups of a server.
const MEMBERS_MAX: usize = 1 << 20;

/// Failed calls of a group that are remembered for members that join them late.
const FAILED_CALLS_MAX: usize = 64;

/// Maximum number of active calls of one group.
const CALLS_MAX: usize = 4096;

/// Number of calls with small parts in a row after which members make some alone.
const SMALL_CALLS_MIN: u32 = 4;

/// Number of calls that members make alone at first. It doubles each time that all parts of these
/// calls were small.
const CALLS_ALONE_MIN: u32 = 8;

/// Largest number of calls that members make alone.
const CALLS_ALONE_MAX: u32 = 256;

/// Groups and all-gathers of a server.
pub(crate) struct Groups<M> {
    groups: RefCell<BTreeMap<u64, Group<M>>>,
    all_gathers: AllGathers,
}

/// One group.
pub(super) struct Group<M> {
    size: u32,
    roster: Rc<Roster>,
    /// Members that have left of their own will.
    left: BTreeSet<ClientId>,
    /// Reason why no call can succeed any more.
    broken: Option<Fault>,
    /// Calls that some member has joined and that have not ended.
    calls: BTreeMap<u64, Rc<Call<M>>>,
    failed: VecDeque<(u64, Fault)>,
    /// Number of calls in a row after which all members could make others alone.
    small_calls: u32,
    /// Counter that the members share.
    pub(super) counter: u64,
    /// Locks that the members hold and wait for.
    pub(super) locks: GroupLocks,
}

/// Member whose bytes go with the messages.
pub(crate) struct Staged<M> {
    pub(super) memory: M,
    /// True if the member may make the next calls alone.
    pub(super) may_go_alone: bool,
    /// True at the one server of the file that decides for all members.
    pub(super) decides: bool,
}

/// A call that some members have joined.
pub(super) struct Joined<M> {
    pub(super) call: Rc<Call<M>>,
    /// Members of the group, when these were the last to join: then the transfer begins.
    pub(super) complete: Option<Rc<Roster>>,
}

impl<M> Group<M> {
    fn new(size: u32) -> Self {
        Self {
            size,
            roster: Rc::default(),
            left: BTreeSet::new(),
            broken: None,
            calls: BTreeMap::new(),
            failed: VecDeque::new(),
            small_calls: 0,
            counter: 0,
            locks: GroupLocks::default(),
        }
    }

    /// Returns the call of this number, which begins now if no member has joined it.
    fn call(&mut self, request: &JoinRequest, file_name: &str) -> Result<Rc<Call<M>>, Fault> {
        let JoinRequest { call: CallId { number, .. }, parameters, .. } = *request;
        if let Some((_, fault)) = self.failed.iter().find(|(failed, _)| *failed == number) {
            return Err(fault.clone());
        }
        if let Some(fault) = &self.broken {
            return Err(fault.clone());
        }
        if self.calls.len() >= CALLS_MAX && !self.calls.contains_key(&number) {
            return bad(format!("a group has at most {CALLS_MAX} collective calls under way"));
        }
        let size = self.size;
        let begin = || Rc::new(Call::new(parameters, (number, size), file_name));
        Ok(Rc::clone(self.calls.entry(number).or_insert_with(begin)))
    }

    /// Checks that a request joins for members that its sender has registered.
    fn check_members(&self, from: PeerId, request: &JoinRequest) -> Result<(), Fault> {
        let mut next = 0;
        for run in &request.members {
            if u64::from(run.first.0) < next || run.count == 0 || run.end() > u64::from(self.size) {
                return bad("the ranks that join a call must ascend within the group".to_owned());
            }
            next = run.end();
            if let Some(rank) = run.ranks().find(|rank| !self.roster.is_joined_by(*rank, from)) {
                return bad(not_registered(rank));
            }
        }
        let joining: u64 = request.members.iter().map(|run| u64::from(run.count)).sum();
        match &request.access {
            _ if joining == 0 => bad("no member joins the call".to_owned()),
            Ok(access) if u64::from(access.clients()) != joining => {
                let clients = access.clients();
                bad(format!("{joining} members join with an access of {clients} clients"))
            }
            _ => Ok(()),
        }
    }

    /// Decides how many calls the members make alone after one that all of them have joined.
    fn calls_alone_after(&mut self, call: &Call<M>) -> u32 {
        self.small_calls = match call.all_may_go_alone() {
            true => self.small_calls.saturating_add(1),
            false => 0,
        };
        match self.small_calls.checked_sub(SMALL_CALLS_MIN) {
            Some(doublings) => (CALLS_ALONE_MIN << doublings.min(8)).min(CALLS_ALONE_MAX),
            None => 0,
        }
    }

    fn end_calls_without(&self, rank: ClientId) {
        for call in self.calls.values().filter(|call| !call.is_complete()) {
            if !call.has_joined(rank) {
                call.end_without(vec![rank], 0);
            }
        }
    }

    /// Removes the members of a client that has departed. Returns the reason, and the calls that
    /// cannot end without it.
    fn depart(&mut self, peer: PeerId) -> Option<(Fault, Vec<u64>)> {
        let gone = self.roster.remove_all_of(peer);
        let cause = "its connection to a server ended".to_owned();
        let fault = Fault::ClientLeft { client: *gone.first()?, cause };
        gone.iter().for_each(|rank| self.locks.release_all(*rank));
        let mut aborted = Vec::new();
        for (number, call) in &self.calls {
            if !call.is_complete() {
                call.end(Err(fault.clone()));
            } else if gone.iter().any(|rank| call.has_joined(*rank)) {
                aborted.push(*number);
            }
        }
        self.broken.get_or_insert(fault.clone());
        Some((fault, aborted))
    }
}

impl<M> Default for Groups<M> {
    fn default() -> Self {
        Self { groups: RefCell::default(), all_gathers: AllGathers::default() }
    }
}

impl<M> Groups<M> {
    pub(super) fn all_gathers(&self) -> &AllGathers {
        &self.all_gathers
    }

    /// Registers members of a group, which the sender will join calls for.
    pub(crate) fn register(&self, from: PeerId, request: RegisterRequest) -> Result<(), Fault> {
        let RegisterRequest { group: number, size, members } = request;
        let outside = members.iter().find(|(rank, _)| rank.0 >= size);
        if size == 0 || size as usize > PARTICIPANTS_MAX || outside.is_some() {
            let rank = outside.map_or(0, |(rank, _)| rank.0);
            return bad(format!("a group of {size} members has no rank {rank}"));
        }
        if members.is_empty() {
            return bad("a registration must have members".to_owned());
        }
        let mut groups = self.groups.borrow_mut();
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&number) {
            return bad(format!(
                "this server has {GROUPS_MAX} groups already; leave a group first"
            ));
        }
        let known: usize = groups.values().map(|group| group.roster.count()).sum();
        if known + members.len() > MEMBERS_MAX {
            return bad(format!(
                "the groups of this server have {known} members, of at most {MEMBERS_MAX}; leave a \
                 group first"
            ));
        }
        let group = groups.entry(number).or_insert_with(|| Group::new(size));
        if group.size != size {
            return bad(format!("the group has {} members, not {size}", group.size));
        }
        let count = members.len();
        for (rank, key) in members {
            if !group.roster.add(rank, Member { key, joiner: from }) {
                return bad(format!("two clients have rank {} in one group", rank.0));
            }
        }
        debug!(group = number, client = from.0, count, size, "members have registered");
        Ok(())
    }

    /// Ends the registration of members that the sender has registered.
    pub(crate) fn leave(&self, from: PeerId, request: LeaveRequest) {
        let LeaveRequest { group: number, first, count } = request;
        let mut groups = self.groups.borrow_mut();
        let Some(group) = groups.get_mut(&number) else { return };
        let end = first.0.saturating_add(count).min(group.size);
        let leaving = (first.0..end).map(ClientId);
        let left: Vec<ClientId> = leaving.filter(|rank| group.roster.remove(*rank, from)).collect();
        for rank in &left {
            group.left.insert(*rank);
            group.locks.release_all(*rank);
            group.end_calls_without(*rank);
        }
        if group.roster.is_empty() {
            groups.remove(&number);
        }
        drop(groups);
        left.iter().for_each(|rank| self.all_gathers.member_left(number, *rank));
    }

    /// Removes a client that has departed from all groups. Returns the complete calls that it had
    /// joined, with the reason why they must end.
    pub(crate) fn peer_left(&self, peer: PeerId) -> Vec<(CallId, Fault)> {
        let (mut broken, mut aborted) = (Vec::new(), Vec::new());
        self.groups.borrow_mut().retain(|number, group| {
            if let Some((fault, calls)) = group.depart(peer) {
                let of_group = |call| (CallId { group: *number, number: call }, fault.clone());
                aborted.extend(calls.into_iter().map(of_group));
                broken.push((*number, fault));
            }
            !group.roster.is_empty()
        });
        for (group, fault) in broken {
            self.all_gathers.group_broke(group, &fault);
        }
        aborted
    }

    /// Returns the reason why no all-gather of a group can succeed: a member of it has gone.
    pub(super) fn why_incomplete(&self, group: Option<u64>, all_gather: &str) -> Option<Fault> {
        let groups = self.groups.borrow();
        let group = groups.get(&group?)?;
        let left = || group.left.first().map(|rank| super::all_gather::without(all_gather, *rank));
        group.broken.clone().or_else(left)
    }

    /// Returns the connections of the clients that join calls for members, without those that have
    /// not registered.
    pub(crate) fn joiners_of(&self, group: u64, members: &[ClientId]) -> Vec<Option<PeerId>> {
        let groups = self.groups.borrow();
        let roster = groups.get(&group).map(|group| &group.roster);
        members.iter().map(|rank| roster?.joiner_of(*rank)).collect()
    }

    /// Gives `act` the group in which the client `from` has registered this rank.
    pub(super) fn for_member<T>(
        &self,
        from: PeerId,
        (number, rank): (u64, ClientId),
        act: impl FnOnce(&mut Group<M>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut groups = self.groups.borrow_mut();
        let group = groups.get_mut(&number);
        match group.filter(|group| group.roster.is_joined_by(rank, from)) {
            Some(group) => act(group),
            None => bad(not_registered(rank)),
        }
    }

    /// Joins a call for some members. If their bytes go with the messages, the first has the memory
    /// `staged`.
    pub(super) fn join(
        &self,
        from: PeerId,
        (request, staged): (JoinRequest, Option<Staged<M>>),
        file_name: &str,
    ) -> Result<Joined<M>, Fault> {
        let mut groups = self.groups.borrow_mut();
        let first = request.members.first().map_or(ClientId(0), |run| run.first);
        let Some(group) = groups.get_mut(&request.call.group) else {
            return bad(not_registered(first));
        };
        group.check_members(from, &request)?;
        let call = group.call(&request, file_name)?;
        let JoinRequest { call: CallId { number, .. }, parameters, members, access, .. } = request;
        call.compare(first, (number, parameters), file_name);
        let access = access.unwrap_or_else(|fault| {
            call.end(Err(fault));
            Access::Parts(Vec::new())
        });
        debug!(
            call = call.description(),
            client = from.0,
            ranks = listed(&members),
            "members join"
        );
        let is_last = call.add(members, access)?;
        let mut decides = false;
        if let Some(staged) = staged {
            call.stage(first, staged.memory);
            if staged.may_go_alone {
                call.may_go_alone();
            }
            decides = staged.decides;
        }
        if is_last {
            let calls_alone = group.calls_alone_after(&call);
            call.set_calls_alone(if decides { calls_alone } else { 0 });
        }
        if let Some(absent) = group.left.iter().find(|rank| !call.has_joined(**rank)) {
            call.end_without(vec![*absent], 0);
        }
        let begins = is_last && call.outcome().is_none();
        Ok(Joined { call, complete: begins.then(|| Rc::clone(&group.roster)) })
    }

    /// Forgets a call that has ended. A member that joins it later gets its fault.
    pub(super) fn forget(&self, CallId { group, number }: CallId, call: &Rc<Call<M>>) {
        let mut groups = self.groups.borrow_mut();
        let Some(group) = groups.get_mut(&group) else { return };
        if group.calls.get(&number).is_some_and(|known| Rc::ptr_eq(known, call)) {
            group.calls.remove(&number);
            if let Some(Err(fault)) = call.outcome() {
                group.failed.push_back((number, fault));
                if group.failed.len() > FAILED_CALLS_MAX {
                    group.failed.pop_front();
                }
            }
        }
    }

    /// Cancels a call for a client that has joined it, and tells the other members the cause.
    /// Returns true if its transfer has begun, so that it must be aborted.
    pub(crate) fn cancel(
        &self,
        from: PeerId,
        CallId { group, number }: CallId,
        cause: &Fault,
    ) -> bool {
        let groups = self.groups.borrow();
        let Some(group) = groups.get(&group) else { return false };
        let Some(call) = group.calls.get(&number) else { return false };
        let mut ranks = (0..group.size).map(ClientId);
        if !ranks.any(|rank| call.has_joined(rank) && group.roster.is_joined_by(rank, from)) {
            return false;
        }
        if !call.is_complete() {
            call.end(Err(cause.clone()));
        }
        call.is_complete()
    }
}

/// Returns the ranks of members as text: "0 to 3, 7".
fn listed(members: &[MemberRun]) -> String {
    let run = |run: &MemberRun| match run.count {
        1 => run.first.0.to_string(),
        _ => format!("{} to {}", run.first.0, run.end().saturating_sub(1)),
    };
    members.iter().map(run).collect::<Vec<_>>().join(", ")
}

fn not_registered(rank: ClientId) -> String {
    format!("this client has not registered rank {} of its group", rank.0)
}
