//! The members of one group, as one server knows them.

use crate::scale::Table;
use std::cell::RefCell;
use units::{ClientId, PeerId};
use wire::ClientKey;

/// Members by rank, without those that have left.
#[derive(Default)]
pub(crate) struct Roster(RefCell<Table<ClientId, Member>>);

/// One member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    /// Key of the client that has the memory of the member.
    pub(super) key: ClientKey,
    /// Connection of the client that has registered the member, and joins calls for it.
    pub(super) joiner: PeerId,
}

impl Roster {
    /// Adds a member, unless its rank has another one.
    pub(super) fn add(&self, rank: ClientId, member: Member) -> bool {
        let mut members = self.0.borrow_mut();
        match members.get(rank) {
            Some(other) => *other == member,
            None => {
                members.insert(rank, member);
                true
            }
        }
    }

    /// Removes a member that `joiner` has registered.
    pub(super) fn remove(&self, rank: ClientId, joiner: PeerId) -> bool {
        let is_there = self.is_joined_by(rank, joiner);
        if is_there {
            self.0.borrow_mut().remove(rank);
        }
        is_there
    }

    /// Removes the members that `joiner` has registered, and returns their ranks.
    pub(super) fn remove_all_of(&self, joiner: PeerId) -> Vec<ClientId> {
        let mut members = self.0.borrow_mut();
        if members.iter().all(|(_, member)| member.joiner != joiner) {
            return Vec::new();
        }
        let (gone, others): (Vec<_>, Vec<_>) = std::mem::take(&mut *members)
            .into_iter()
            .partition(|(_, member)| member.joiner == joiner);
        *members = others.into_iter().collect();
        gone.into_iter().map(|(rank, _)| rank).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Number of members.
    pub(super) fn count(&self) -> usize {
        self.0.borrow().count()
    }

    /// Tells if a client joins calls for a member.
    pub(super) fn is_joined_by(&self, rank: ClientId, joiner: PeerId) -> bool {
        self.0.borrow().get(rank).is_some_and(|member| member.joiner == joiner)
    }

    /// Connection of the client that joins calls for a member.
    pub(super) fn joiner_of(&self, rank: ClientId) -> Option<PeerId> {
        self.0.borrow().get(rank).map(|member| member.joiner)
    }

    /// Key of the client that has the memory of a member.
    pub(crate) fn key_of(&self, rank: ClientId) -> Option<ClientKey> {
        self.0.borrow().get(rank).map(|member| member.key)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a rank has one member, which only the client that registered it can remove.
    use super::*;

    #[test]
    fn a_member_goes_with_the_client_that_registered_it() {
        let member = |key, joiner| Member { key: ClientKey(key), joiner: PeerId(joiner) };
        let roster = Roster::default();
        for (rank, key, joiner) in [(0, 7, 1), (2, 8, 1), (1, 9, 2)] {
            assert!(roster.add(ClientId(rank), member(key, joiner)));
            assert!(roster.add(ClientId(rank), member(key, joiner)), "the same again");
        }
        assert!(!roster.add(ClientId(0), member(7, 2)) && !roster.add(ClientId(0), member(8, 1)));
        assert_eq!(roster.key_of(ClientId(1)), Some(ClientKey(9)));
        assert!(!roster.remove(ClientId(0), PeerId(2)), "another client registered it");
        assert_eq!(roster.remove_all_of(PeerId(1)), [ClientId(0), ClientId(2)]);
        assert_eq!(roster.remove_all_of(PeerId(1)), []);
        assert!(!roster.is_empty());
        assert!(roster.remove(ClientId(1), PeerId(2)) && roster.is_empty());
    }
}
