//! Communicators of all ranks: which numbers of different ranks are one communicator.
//!
//! The k-th communicator of certain members at one rank is the k-th of these members at the others.
//! This holds because making a communicator is collective over its members, so that they all make
//! communicators of equal members in one order. (MPI_Comm_idup of two parents in different orders
//! at different ranks is the exception, and is refused if the calls then differ.)

use super::contradiction;
use crate::event::{Communicator, RankTrace};
use interface::UserError;
use std::collections::{BTreeSet, HashMap};

/// Communicators of a trace, with one number for all ranks. Number 0 is MPI_COMM_WORLD.
#[derive(Clone, Debug, Default)]
pub struct Communicators {
    /// Number of each communicator of each rank.
    numbers: Vec<Vec<u32>>,
    /// Rank and communicator that has the members of each number.
    members: Vec<(u32, u32)>,
}

impl Communicators {
    /// Number of communicators.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Number of a communicator that a rank knows. Panics when the rank does not know it.
    pub fn number(&self, rank: u32, communicator: Communicator) -> u32 {
        self.numbers[rank as usize][communicator.0 as usize]
    }

    /// Members of a communicator, as ranks of MPI_COMM_WORLD. Panics when there is no such number.
    pub fn members<'a>(&self, ranks: &'a [RankTrace], number: u32) -> &'a [u32] {
        let (rank, communicator) = self.members[number as usize];
        &ranks[rank as usize].communicators[communicator as usize]
    }
}

/// Gives each communicator of the ranks its number.
///
/// # Errors
/// Refuses a communicator of which its rank is no member, or with a member twice.
pub fn communicators(ranks: &[RankTrace]) -> Result<Communicators, UserError> {
    let mut known = Communicators::default();
    // The numbers of all communicators with certain members, in the order of their making.
    let mut by_members: HashMap<&[u32], Vec<u32>> = HashMap::new();
    for (rank, trace) in (0_u32..).zip(ranks) {
        let mut seen: HashMap<&[u32], usize> = HashMap::new();
        let mut numbers = Vec::new();
        for (local, members) in (0_u32..).zip(&trace.communicators) {
            check_members(rank, local, members, ranks.len())?;
            let nth = seen.entry(members).or_default();
            let all = by_members.entry(members).or_default();
            if all.len() == *nth {
                all.push(known.members.len() as u32);
                known.members.push((rank, local));
            }
            numbers.push(all[*nth]);
            *nth += 1;
        }
        known.numbers.push(numbers);
    }
    Ok(known)
}

fn check_members(rank: u32, local: u32, members: &[u32], ranks: usize) -> Result<(), UserError> {
    let name = format!("communicator {local} of rank {rank}");
    if let Some(member) = members.iter().find(|member| **member as usize >= ranks) {
        let cause = format!("{name} has rank {member}, but there are {ranks} ranks");
        return Err(contradiction(cause));
    }
    if members.iter().copied().eq(0..ranks as u32) {
        return Ok(());
    }
    if !members.contains(&rank) {
        return Err(contradiction(format!("{name} does not have that rank as a member")));
    }
    let distinct: BTreeSet<&u32> = members.iter().collect();
    if distinct.len() < members.len() {
        return Err(contradiction(format!("{name} has a member twice")));
    }
    Ok(())
}
