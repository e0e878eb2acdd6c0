//! One collective call of a group: which members have joined it, and its outcome.

use super::late::Late;
use super::refusal::bad;
use crate::signal::Signal;
use policy::{Access, Direction, OwnPart};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::ClientId;
use wire::{CollectiveCall, Fault, MemberRun};

/// One collective call.
///
/// Invariant: it has one outcome, the same for every member that has joined it or joins it later.
pub(super) struct Call<M> {
    description: String,
    parameters: CollectiveCall,
    /// Number of members of the group.
    size: u32,
    /// Members that have joined, by the lowest rank of each run.
    joined: RefCell<BTreeMap<ClientId, MemberRun>>,
    /// Number of members that have joined.
    joined_count: Cell<u64>,
    /// Access of the members of each request, until the transfer begins.
    accesses: RefCell<Vec<(Vec<MemberRun>, Access)>>,
    /// Memories at this server, of members whose bytes go with the messages.
    staged: RefCell<BTreeMap<ClientId, M>>,
    /// Number of members that may make the next calls alone.
    may_go_alone: Cell<u32>,
    /// Number of the next calls that all members make alone, if this one succeeds.
    calls_alone: Cell<u32>,
    /// True from the moment at which the last member has joined.
    is_complete: Cell<bool>,
    outcome: RefCell<Option<Result<u64, Fault>>>,
    late: Late,
    /// Notified when `is_complete` or `outcome` has changed.
    changed: Signal,
}

impl<M> Call<M> {
    /// Begins the call `number` of a group of `size` members.
    pub(super) fn new(
        parameters: CollectiveCall,
        (number, size): (u64, u32),
        file_name: &str,
    ) -> Self {
        Self {
            description: describe(&parameters, number, file_name),
            parameters,
            size,
            joined: RefCell::default(),
            joined_count: Cell::new(0),
            accesses: RefCell::default(),
            staged: RefCell::default(),
            may_go_alone: Cell::new(0),
            calls_alone: Cell::new(0),
            is_complete: Cell::new(false),
            outcome: RefCell::default(),
            late: Late::default(),
            changed: Signal::default(),
        }
    }

    /// Returns `collective write 17 of "T.h5"`, counted from 0.
    pub(super) fn description(&self) -> &str {
        &self.description
    }

    pub(super) fn parameters(&self) -> CollectiveCall {
        self.parameters
    }

    /// Adds members with their access. Returns true when they were the last.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when one has joined before.
    pub(super) fn add(&self, members: Vec<MemberRun>, access: Access) -> Result<bool, Fault> {
        if let Some(again) = members.iter().find_map(|run| self.first_joined_of(run)) {
            return bad(format!("rank {} joined one call twice", again.0));
        }
        self.joined.borrow_mut().extend(members.iter().map(|run| (run.first, *run)));
        let joining: u64 = members.iter().map(|run| u64::from(run.count)).sum();
        let count = self.joined_count.get() + joining;
        self.joined_count.set(count);
        self.accesses.borrow_mut().push((members, access));
        let is_last = count == u64::from(self.size);
        if is_last {
            self.is_complete.set(true);
            self.changed.notify();
        }
        Ok(is_last)
    }

    /// Returns all members of a complete call, and the one access that their accesses amount to.
    /// Once.
    pub(super) fn take_access(&self) -> (Vec<MemberRun>, Access) {
        let mut accesses = std::mem::take(&mut *self.accesses.borrow_mut());
        if accesses.len() == 1
            && let Some((members, of_all)) = accesses.pop()
        {
            let access = match of_all {
                Access::Parts(parts) => Access::of_parts(parts),
                rule => rule,
            };
            return (members, access);
        }
        let members = self.joined.borrow().values().copied().collect();
        let mut parts = vec![OwnPart::NOTHING; self.size as usize];
        for (runs, access) in accesses {
            let ranks = runs.iter().flat_map(MemberRun::ranks);
            for (rank, part) in ranks.zip(access.into_parts()) {
                parts[rank.0 as usize] = part;
            }
        }
        (members, Access::of_parts(parts))
    }

    /// Notes that a member may make the next calls alone.
    pub(super) fn may_go_alone(&self) {
        self.may_go_alone.update(|members| members + 1);
    }

    /// True if all members may make the next calls alone.
    pub(super) fn all_may_go_alone(&self) -> bool {
        self.may_go_alone.get() == self.size
    }

    /// Sets the number of the next calls that all members make alone.
    pub(super) fn set_calls_alone(&self, calls: u32) {
        self.calls_alone.set(calls);
    }

    /// Number of the next calls that all members make alone, if this one succeeds.
    pub(super) fn calls_alone(&self) -> u32 {
        self.calls_alone.get()
    }

    /// Adds the memory of a member that has joined.
    pub(super) fn stage(&self, rank: ClientId, memory: M) {
        self.staged.borrow_mut().insert(rank, memory);
    }

    /// Returns the memories at this server. Once.
    pub(super) fn take_staged(&self) -> BTreeMap<ClientId, M> {
        self.staged.take()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.get()
    }

    pub(super) fn has_joined(&self, rank: ClientId) -> bool {
        let joined = self.joined.borrow();
        let before = joined.range(..=rank).next_back();
        before.is_some_and(|(_, run)| run.end() > u64::from(rank.0))
    }

    /// Returns the lowest rank of a run that has joined already.
    fn first_joined_of(&self, run: &MemberRun) -> Option<ClientId> {
        if self.has_joined(run.first) {
            return Some(run.first);
        }
        let next = self.joined.borrow().range(run.first..).next().map(|(next, _)| *next);
        next.filter(|next| u64::from(next.0) < run.end())
    }

    /// Ends the call, unless it has ended.
    pub(super) fn end(&self, outcome: Result<u64, Fault>) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        self.changed.notify();
    }

    /// Ends the call because members have not joined it, after they were waited for.
    pub(super) fn end_without(&self, missing: Vec<ClientId>, waited_ms: u64) {
        let call = self.description.clone();
        self.end(Err(Fault::MembersMissing { missing, call, waited_ms }));
    }

    /// Ends the call if a member is in another one: the first of those that join now has `rank`.
    pub(super) fn compare(
        &self,
        rank: ClientId,
        (number, parameters): (u64, CollectiveCall),
        file_name: &str,
    ) {
        if self.parameters == parameters {
            return;
        }
        let own = with_details(&describe(&parameters, number, file_name), &parameters);
        let first = self.joined.borrow().keys().next().map_or(0, |first| first.0);
        let other = with_details(&self.description, &self.parameters);
        let cause = format!("rank {first} is in {other}, rank {} in {own}", rank.0);
        self.end(Err(Fault::CallsDiffer { cause }));
    }

    /// Notes that a member has waited for as long as it may. Returns to the first only.
    pub(super) async fn is_late(&self) {
        self.late.first_only().await;
    }

    /// Members that have not joined.
    pub(super) fn missing(&self) -> Vec<ClientId> {
        (0..self.size).map(ClientId).filter(|rank| !self.has_joined(*rank)).collect()
    }

    pub(super) fn outcome(&self) -> Option<Result<u64, Fault>> {
        self.outcome.borrow().clone()
    }

    /// Waits until all members have joined, or the call has ended.
    pub(super) async fn decided(&self) {
        let is_decided = || self.is_complete() || self.outcome.borrow().is_some();
        self.changed.until(|| is_decided().then_some(())).await;
    }

    /// Waits for the outcome.
    pub(super) async fn ended(&self) -> Result<u64, Fault> {
        self.changed.until(|| self.outcome()).await
    }
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

#[cfg(test)]
mod tests {
    //! Proves: an access is the same however its members join, and no member joins twice.
    use super::*;
    use policy::DiskOrder;
    use units::{FileId, RegionId};

    const SIZE: u32 = 6;

    fn call() -> Call<()> {
        let (direction, order) = (Direction::Read, DiskOrder::Sorted);
        let parameters = CollectiveCall { direction, file: FileId(1), order, sync: false };
        Call::new(parameters, (0, SIZE), "f")
    }

    fn runs(runs: &[(u32, u32)]) -> Vec<MemberRun> {
        let run = |(first, count): &(u32, u32)| MemberRun {
            first: ClientId(*first),
            count: *count,
            region: RegionId(7),
        };
        runs.iter().map(run).collect()
    }

    fn parts(members: &[MemberRun]) -> Access {
        let ranks = members.iter().flat_map(MemberRun::ranks);
        Access::Parts(ranks.map(|rank| OwnPart::contiguous(u64::from(rank.0) * 8, 8)).collect())
    }

    #[test]
    fn an_access_is_the_same_however_members_join() {
        let joins: [&[&[(u32, u32)]]; 4] = [
            &[&[(0, 6)]],
            &[&[(3, 3)], &[(0, 3)]],
            &[&[(0, 1), (2, 1), (4, 1)], &[(1, 1), (3, 1), (5, 1)]],
            &[&[(5, 1)], &[(0, 1)], &[(1, 2), (4, 1)], &[(3, 1)]],
        ];
        let whole = Access::of_parts(parts(&runs(&[(0, 6)])).into_parts());
        for requests in joins {
            let call = call();
            for (number, request) in requests.iter().enumerate() {
                let members = runs(request);
                let access = parts(&members);
                let is_last = call.add(members, access).expect("each joins once");
                assert_eq!(is_last, number + 1 == requests.len(), "{requests:?}");
            }
            assert_eq!(call.missing(), []);
            let (members, access) = call.take_access();
            assert_eq!(access, whole, "{requests:?}");
            let ranks = members.iter().flat_map(MemberRun::ranks);
            assert!(ranks.eq((0..SIZE).map(ClientId)), "{requests:?}");
        }
    }

    #[test]
    fn a_member_that_joins_twice_changes_nothing() {
        let call = call();
        let add = |members: &[(u32, u32)]| {
            let members = runs(members);
            let access = parts(&members);
            call.add(members, access)
        };
        assert_eq!(add(&[(1, 2)]), Ok(false));
        for again in [&[(2, 1)][..], &[(0, 2)], &[(0, 6)], &[(3, 1), (1, 1)], &[(0, 1), (2, 2)]] {
            assert!(add(again).is_err(), "{again:?}");
        }
        let others = [0, 3, 4, 5].map(ClientId);
        assert_eq!(call.missing(), others);
        assert_eq!(add(&[(0, 1), (3, 3)]), Ok(true));
    }
}
