//! Dissemination: the message pattern of an agreement of all members of a group (Hensgen, Finkel
//! and Manber, IJPP 17(1), 1988).
//!
//! In round r, each member sends all that it knows to the member 2^r ranks further on. After
//! log2(members) rounds, each member knows the values of all members.
//!
//! The messages that carry each member's value to member 0 form a binomial tree. For 6 members,
//! with the rounds:
//!
//! ```text
//! 5 -0-> 0    4 -1-> 0    3 -0-> 4    2 -2-> 0    1 -0-> 2
//! ```

use units::ClientId;

/// Place of one member in the dissemination among all members of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dissemination {
    rank: u64,
    size: u64,
}

impl Dissemination {
    /// Place of member `rank` in a group of `size` members.
    pub fn new(rank: ClientId, size: u32) -> Self {
        assert!(rank.0 < size, "{rank} must be one of {size} members");
        Self { rank: u64::from(rank.0), size: u64::from(size) }
    }

    /// Number of rounds of one agreement.
    pub fn rounds(self) -> u32 {
        self.size.next_power_of_two().trailing_zeros()
    }

    /// Member that this member sends to in a round.
    pub fn next(self, round: u32) -> ClientId {
        ClientId(((self.rank + (1 << round)) % self.size) as u32)
    }

    /// Member that this member receives from in a round.
    pub fn last(self, round: u32) -> ClientId {
        ClientId(((self.rank + self.size - (1 << round)) % self.size) as u32)
    }

    /// Members that this member ever sends to or receives from, in the order of their ranks: at
    /// most twice the number of rounds.
    pub fn partners(self) -> Vec<ClientId> {
        let mut partners: Vec<ClientId> =
            (0..self.rounds()).flat_map(|round| [self.next(round), self.last(round)]).collect();
        partners.sort_unstable();
        partners.dedup();
        partners
    }

    /// Round in which this member passes on the values for member 0 only. All of them have reached
    /// it by then. `None` for member 0 itself.
    pub fn round_to_first(self) -> Option<u32> {
        let distance = (self.size - self.rank) % self.size;
        (distance != 0).then(|| distance.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    //! Proves, for all groups up to 70 members and some larger ones: senders and receivers agree,
    //! each member gets all values, each value reaches member 0 exactly once, and partners are few.
    use super::*;
    use std::collections::BTreeSet;

    fn sizes() -> impl Iterator<Item = u32> {
        (1..=70).chain([127, 128, 129, 500])
    }

    fn of(size: u32) -> Vec<Dissemination> {
        (0..size).map(|rank| Dissemination::new(ClientId(rank), size)).collect()
    }

    #[test]
    fn everyone_hears_of_everyone() {
        for size in sizes() {
            let members = of(size);
            let mut heard: Vec<BTreeSet<u32>> = (0..size).map(|own| [own].into()).collect();
            for round in 0..members[0].rounds() {
                let told = heard.clone();
                for (rank, member) in members.iter().enumerate() {
                    let last = member.last(round).0 as usize;
                    assert_eq!(members[last].next(round).0 as usize, rank);
                    heard[rank].extend(&told[last]);
                }
            }
            assert!(heard.iter().all(|heard| heard.len() as u32 == size), "{size} members");
        }
    }

    #[test]
    fn each_word_comes_to_member_0_once() {
        for size in sizes() {
            let members = of(size);
            let mut held: Vec<Vec<u32>> = (0..size).map(|own| vec![own]).collect();
            for round in 0..members[0].rounds() {
                let passes = |member: &Dissemination| member.round_to_first() == Some(round);
                for (rank, member) in members.iter().enumerate().filter(|of| passes(of.1)) {
                    let words = std::mem::take(&mut held[rank]);
                    held[member.next(round).0 as usize].extend(words);
                }
            }
            held[0].sort_unstable();
            assert_eq!(held[0], (0..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn partners_are_few_and_mutual() {
        for size in sizes() {
            let members = of(size);
            for (rank, member) in (0..).zip(&members) {
                let partners = member.partners();
                assert!(partners.len() as u32 <= 2 * member.rounds());
                assert!(!partners.contains(&ClientId(rank)));
                let back = |other: &ClientId| members[other.0 as usize].partners();
                assert!(partners.iter().all(|other| back(other).contains(&ClientId(rank))));
            }
        }
    }

    #[test]
    fn the_largest_group_has_its_partners() {
        let first = Dissemination::new(ClientId(0), u32::MAX);
        assert_eq!(first.rounds(), 32);
        assert_eq!(first.partners().len(), 64);
    }
}
