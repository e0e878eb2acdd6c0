//! Collective operations: all members of a communicator, and all that opened a file together, make
//! the same calls in the same order.

use super::communicators::Communicators;
use super::contradiction;
use crate::describe::call;
use crate::event::{Collective, Communicator, Direction, Operation, RankTrace};
use interface::UserError;
use std::collections::BTreeMap;

/// Group that makes calls together: the members of a communicator, or those of them that opened its
/// n-th file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    communicator: u32,
    file: Option<u32>,
}

/// Properties of a call in which members must agree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Collective(Collective, u32),
    Open,
    Close,
    Sync,
    SetSize(u64, bool),
    Transfer(Direction),
}

/// Calls of one member in one group.
type Calls = Vec<(usize, Kind)>;

/// Compares the calls of all members of all groups.
pub(super) fn check(ranks: &[RankTrace], known: &Communicators) -> Result<(), UserError> {
    let mut groups: BTreeMap<Group, BTreeMap<u32, Calls>> = BTreeMap::new();
    for (rank, trace) in (0_u32..).zip(ranks) {
        for (group, calls) in calls_of(rank, trace, known) {
            groups.entry(group).or_default().insert(rank, calls);
        }
    }
    for (group, calls) in &groups {
        let members = known.members(ranks, group.communicator);
        compare(ranks, *group, members, calls)?;
    }
    Ok(())
}

/// Collective calls of a rank, by group.
fn calls_of(rank: u32, trace: &RankTrace, known: &Communicators) -> BTreeMap<Group, Calls> {
    let mut all: BTreeMap<Group, Calls> = BTreeMap::new();
    // Group of each file.
    let mut files: Vec<Option<Group>> = vec![None; trace.files.len()];
    let mut opened: BTreeMap<u32, u32> = BTreeMap::new();
    let of_communicator = |communicator: Communicator| Group {
        communicator: known.number(rank, communicator),
        file: None,
    };
    for (index, event) in trace.events.iter().enumerate() {
        let (group, kind) = match &event.operation {
            Operation::Collective { kind, communicator, root, .. } => {
                let root = if kind.has_root() { *root } else { 0 };
                (Some(of_communicator(*communicator)), Kind::Collective(*kind, root))
            }
            Operation::Open { file, communicator, .. } => {
                let group = of_communicator(*communicator);
                let nth = opened.entry(group.communicator).or_default();
                files[file.0 as usize] = Some(Group { file: Some(*nth), ..group });
                *nth += 1;
                (Some(group), Kind::Open)
            }
            Operation::Close { file } => (files[file.0 as usize], Kind::Close),
            Operation::Sync { file } => (files[file.0 as usize], Kind::Sync),
            Operation::SetSize { file, bytes, only_grows } => {
                (files[file.0 as usize], Kind::SetSize(*bytes, *only_grows))
            }
            Operation::Transfer { file, direction, is_collective: true, .. } => {
                (files[file.0 as usize], Kind::Transfer(*direction))
            }
            _ => continue,
        };
        if let Some(group) = group {
            all.entry(group).or_default().push((index, kind));
        }
    }
    all
}

/// Compares the calls of each member with those of the first one.
fn compare(
    ranks: &[RankTrace],
    group: Group,
    members: &[u32],
    calls: &BTreeMap<u32, Calls>,
) -> Result<(), UserError> {
    let Some((first, others)) = members.split_first() else { return Ok(()) };
    let of = |rank: &u32| calls.get(rank).map_or(&[][..], Vec::as_slice);
    let expected = of(first);
    for other in others {
        let theirs = of(other);
        let count = expected.len().max(theirs.len());
        for k in 0..count {
            let (ours, theirs) = (expected.get(k), theirs.get(k));
            let is_same = ours.map(|(_, kind)| kind) == theirs.map(|(_, kind)| kind)
                && names_are_equal(ranks, (*first, ours), (*other, theirs));
            if !is_same {
                let ours = (*first, ours.map(|(index, _)| *index));
                let theirs = (*other, theirs.map(|(index, _)| *index));
                return Err(contradiction(explain(ranks, group, k, ours, theirs)));
            }
        }
    }
    Ok(())
}

/// Cause of an error about call number `k` of two members of a group: their ranks and events.
fn explain(
    ranks: &[RankTrace],
    group: Group,
    k: usize,
    (first, ours): (u32, Option<usize>),
    (other, theirs): (u32, Option<usize>),
) -> String {
    let what = match group.file {
        Some(_) => "of one file".to_owned(),
        None => format!("of communicator {}", group.communicator),
    };
    let last = |rank: u32| call(ranks, rank, ranks[rank as usize].events.len().saturating_sub(1));
    let alone = |rank: u32, event: usize, other: u32| {
        let (there, last) = (call(ranks, rank, event), last(other));
        format!("{there} is collective call {k} {what}, and there is none up to {last}")
    };
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => {
            let (ours, theirs) = (call(ranks, first, ours), call(ranks, other, theirs));
            format!("{ours} and {theirs} are both collective call {k} {what}, and differ")
        }
        (Some(ours), None) => alone(first, ours, other),
        (None, Some(theirs)) => alone(other, theirs, first),
        (None, None) => format!("call {k} {what} is missing"),
    }
}

/// False when two open calls name different files.
fn names_are_equal(
    ranks: &[RankTrace],
    (first, ours): (u32, Option<&(usize, Kind)>),
    (other, theirs): (u32, Option<&(usize, Kind)>),
) -> bool {
    let name = |rank: u32, found: Option<&(usize, Kind)>| {
        let trace = &ranks[rank as usize];
        match &trace.events[found?.0].operation {
            Operation::Open { file, .. } => trace.files.get(file.0 as usize),
            _ => None,
        }
    };
    name(first, ours) == name(other, theirs)
}
