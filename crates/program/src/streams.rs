//! Numbers that all ranks of a trace give to the same things.

use interface::UserError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trace::{Communicator, Message, Operation, RankTrace};

/// A communicator as a rank sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// Number, equal at all members.
    pub(crate) number: u32,
    pub(crate) members: Arc<[u32]>,
    /// Place of this rank among the members.
    pub(crate) place: u32,
}

/// Returns the communicators of each rank, by their numbers in its trace.
pub(crate) fn communicators(ranks: &[RankTrace]) -> Result<Vec<Vec<Known>>, UserError> {
    let all = trace::communicators(ranks)?;
    let members: Vec<Arc<[u32]>> =
        (0..all.count() as u32).map(|number| all.members(ranks, number).into()).collect();
    let of_rank = |(rank, trace): (u32, &RankTrace)| {
        let known = (0..trace.communicators.len() as u32).map(|local| {
            let number = all.number(rank, Communicator(local));
            let members = Arc::clone(&members[number as usize]);
            let place = members.iter().position(|member| *member == rank).unwrap_or_default();
            Known { number, members, place: place as u32 }
        });
        known.collect()
    };
    Ok((0..).zip(ranks).map(of_rank).collect())
}

/// Returns the events of each rank that receive a message of a synchronous send: the k-th send of a
/// stream is received by its k-th receive.
pub(crate) fn synchronous_receives(
    ranks: &[RankTrace],
    communicators: &[Vec<Known>],
) -> Vec<BTreeSet<usize>> {
    type Line = (u32, u32, u32, i32);
    let line = |rank: u32, message: &Message, is_send: bool| -> Line {
        let known = &communicators[rank as usize][message.communicator.0 as usize];
        let (from, to) = if is_send { (rank, message.peer) } else { (message.peer, rank) };
        (from, to, known.number, message.tag)
    };
    let mut sent: BTreeMap<Line, (u64, BTreeSet<u64>)> = BTreeMap::new();
    let has_synchronous = |trace: &RankTrace| {
        let is_synchronous = |operation: &Operation| {
            matches!(operation, Operation::Send { is_synchronous: true, .. })
        };
        trace.events.iter().any(|event| is_synchronous(&event.operation))
    };
    if !ranks.iter().any(has_synchronous) {
        return vec![BTreeSet::new(); ranks.len()];
    }
    for (rank, trace) in (0..).zip(ranks) {
        for event in &trace.events {
            if let Operation::Send { message, is_synchronous, .. } = &event.operation {
                let (count, synchronous) = sent.entry(line(rank, message, true)).or_default();
                if *is_synchronous {
                    synchronous.insert(*count);
                }
                *count += 1;
            }
        }
    }
    let mut received: BTreeMap<Line, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for (rank, trace) in (0..).zip(ranks) {
        let mut own = BTreeSet::new();
        for (index, event) in trace.events.iter().enumerate() {
            let Operation::Receive { message, .. } = &event.operation else { continue };
            let line = line(rank, message, false);
            let count = received.entry(line).or_default();
            if sent.get(&line).is_some_and(|(_, synchronous)| synchronous.contains(count)) {
                own.insert(index);
            }
            *count += 1;
        }
        all.push(own);
    }
    all
}

/// Returns the largest contribution to each collective operation, by the number of its
/// communicator.
pub(crate) fn contributions(ranks: &[RankTrace], communicators: &[Vec<Known>]) -> Vec<Vec<u64>> {
    let mut largest: Vec<Vec<u64>> = Vec::new();
    for (trace, known) in ranks.iter().zip(communicators) {
        let mut so_far = vec![0_usize; known.len()];
        for event in &trace.events {
            let (communicator, bytes) = match &event.operation {
                Operation::Begin | Operation::End => (Communicator(0), 0),
                Operation::Collective { communicator, bytes, .. } => (*communicator, *bytes),
                _ => continue,
            };
            let place = &mut so_far[communicator.0 as usize];
            let number = known[communicator.0 as usize].number as usize;
            if largest.len() <= number {
                largest.resize(number + 1, Vec::new());
            }
            let calls = &mut largest[number];
            if calls.len() <= *place {
                calls.resize(*place + 1, 0);
            }
            calls[*place] = calls[*place].max(bytes);
            *place += 1;
        }
    }
    let all = communicators.iter().flatten().map(|known| known.number as usize + 1).max();
    largest.resize(all.unwrap_or_default().max(largest.len()), Vec::new());
    largest
}
