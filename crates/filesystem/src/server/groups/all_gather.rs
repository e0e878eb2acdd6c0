//! All-gathers: each member brings some bytes and gets those of all.
//!
//! Invariants:
//! - An all-gather has one outcome, the same for all of its members.
//! - None waits for a member that has left, nor longer than its timeout for a missing one.

use super::late::Late;
use super::refusal::bad;
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::ClientId;
use wire::{
    AllGatherRequest, Fault, GATHER_BYTES_MAX, GATHER_NAME_BYTES_MAX, GATHER_TOTAL_BYTES_MAX,
    PARTICIPANTS_MAX,
};

/// Maximum number of all-gathers that wait for members.
const ALL_GATHERS_MAX: usize = 1 << 16;

/// All-gathers that wait for members.
#[derive(Default)]
pub(super) struct AllGathers(RefCell<BTreeMap<Key, Rc<AllGather>>>);

/// Group of the members, if they have registered, and name.
type Key = (Option<u64>, String);

/// One all-gather.
struct AllGather {
    name: String,
    size: u32,
    brought: RefCell<BTreeMap<ClientId, Vec<u8>>>,
    outcome: RefCell<Option<Result<Vec<Vec<u8>>, Fault>>>,
    late: Late,
    changed: Signal,
}

/// A member in an all-gather. Dropping it before the end fails the all-gather: the member is gone.
pub(super) struct Gathering<'a> {
    all: &'a AllGathers,
    key: Key,
    rank: ClientId,
    all_gather: Rc<AllGather>,
}

impl AllGather {
    fn new(name: &str, size: u32) -> Self {
        Self {
            name: name.to_owned(),
            size,
            brought: RefCell::default(),
            outcome: RefCell::default(),
            late: Late::default(),
            changed: Signal::default(),
        }
    }

    fn end(&self, outcome: Result<Vec<Vec<u8>>, Fault>) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        self.changed.notify();
    }

    fn missing(&self) -> Vec<ClientId> {
        let brought = self.brought.borrow();
        (0..self.size).map(ClientId).filter(|rank| !brought.contains_key(rank)).collect()
    }
}

impl AllGathers {
    /// Brings the bytes of a member. The last member ends the all-gather.
    pub(super) fn bring(&self, request: AllGatherRequest) -> Result<Gathering<'_>, Fault> {
        check(&request)?;
        let AllGatherRequest { name, group, rank, size, bytes, .. } = request;
        let key = (group, name);
        let all_gather = {
            let mut all = self.0.borrow_mut();
            if all.len() >= ALL_GATHERS_MAX && !all.contains_key(&key) {
                return bad(format!("{ALL_GATHERS_MAX} all-gathers already wait for members"));
            }
            let begin = || Rc::new(AllGather::new(&key.1, size));
            Rc::clone(all.entry(key.clone()).or_insert_with(begin))
        };
        if all_gather.size != size || all_gather.brought.borrow().contains_key(&rank) {
            return bad(format!(
                "rank {} of {size} cannot take part in the all-gather {:?}, which has {} members \
                 and perhaps this rank already; use a name that no other group uses",
                rank.0, key.1, all_gather.size
            ));
        }
        all_gather.brought.borrow_mut().insert(rank, bytes);
        let gathering = Gathering { all: self, key, rank, all_gather };
        gathering.end_if_complete();
        Ok(gathering)
    }

    /// Ends the all-gathers of a group to which a member that has left did not bring its bytes.
    pub(super) fn member_left(&self, group: u64, rank: ClientId) {
        self.end_of_group(group, |all_gather| {
            let has_brought = all_gather.brought.borrow().contains_key(&rank);
            (!has_brought).then(|| without(&all_gather.name, rank))
        });
    }

    /// Ends the all-gathers of a group that can make no call any more.
    pub(super) fn group_broke(&self, group: u64, fault: &Fault) {
        self.end_of_group(group, |_| Some(fault.clone()));
    }

    /// Ends the all-gathers of a group for which `reason` gives a fault.
    fn end_of_group(&self, group: u64, reason: impl Fn(&AllGather) -> Option<Fault>) {
        self.0.borrow_mut().retain(|(of, _), all_gather| {
            let fault = if *of == Some(group) { reason(all_gather) } else { None };
            let goes_on = fault.is_none();
            if let Some(fault) = fault {
                all_gather.end(Err(fault));
            }
            goes_on
        });
    }
}

impl Gathering<'_> {
    fn end_if_complete(&self) {
        if self.all_gather.brought.borrow().len() == self.all_gather.size as usize {
            self.forget();
            let brought = std::mem::take(&mut *self.all_gather.brought.borrow_mut());
            self.all_gather.end(Ok(brought.into_values().collect()));
        }
    }

    /// Waits for the outcome.
    pub(super) async fn ended(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let outcome = || self.all_gather.outcome.borrow().clone();
        self.all_gather.changed.until(outcome).await
    }

    /// Notes that a member has waited for as long as it may. Returns to the first only.
    pub(super) async fn is_late(&self) {
        self.all_gather.late.first_only().await;
    }

    /// Members that have not brought their bytes.
    pub(super) fn missing(&self) -> Vec<ClientId> {
        self.all_gather.missing()
    }

    /// Fails the all-gather, after `missing` were waited for; returns the fault.
    pub(super) fn end_without(&self, missing: Vec<ClientId>, waited_ms: u64) -> Fault {
        let fault = missing_from(&self.key.1, missing, waited_ms);
        self.forget();
        self.all_gather.end(Err(fault.clone()));
        fault
    }

    /// Makes the name free.
    fn forget(&self) {
        let mut all = self.all.0.borrow_mut();
        if all.get(&self.key).is_some_and(|known| Rc::ptr_eq(known, &self.all_gather)) {
            all.remove(&self.key);
        }
    }
}

impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        if self.all_gather.outcome.borrow().is_none() {
            let cause = "its connection to a server ended".to_owned();
            self.forget();
            self.all_gather.end(Err(Fault::ClientLeft { client: self.rank, cause }));
        }
    }
}

/// Returns the fault of an all-gather to which a member that has left cannot bring its bytes.
pub(super) fn without(all_gather: &str, member: ClientId) -> Fault {
    missing_from(all_gather, vec![member], 0)
}

fn missing_from(all_gather: &str, missing: Vec<ClientId>, waited_ms: u64) -> Fault {
    let call = format!("the all-gather {all_gather:?}");
    Fault::MembersMissing { missing, call, waited_ms }
}

fn check(request: &AllGatherRequest) -> Result<(), Fault> {
    let AllGatherRequest { name, rank, size, bytes, .. } = request;
    if *size == 0 || *size as usize > PARTICIPANTS_MAX || rank.0 >= *size {
        return bad(format!("an all-gather of {size} members has no rank {}", rank.0));
    }
    let total = bytes.len().saturating_mul(*size as usize);
    if name.len() > GATHER_NAME_BYTES_MAX
        || bytes.len() > GATHER_BYTES_MAX
        || total > GATHER_TOTAL_BYTES_MAX
    {
        return bad(format!(
            "an all-gather has a name of at most {GATHER_NAME_BYTES_MAX} bytes, and members bring \
             at most {GATHER_BYTES_MAX} bytes, {GATHER_TOTAL_BYTES_MAX} together"
        ));
    }
    Ok(())
}
