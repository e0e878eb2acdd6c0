//! Group rosters that several servers of one process share.
//!
//! A simulated machine has all of its servers in one process. Each of hundreds of servers gets the
//! same roster of a group of thousands. The program that starts the servers hands all of them
//! clones of one [`RosterCache`].

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use wire::GroupRoster;

/// Maximum number of rosters with which a new one is compared.
const COMPARED_MAX: usize = 8;

/// The latest rosters, each once. Clones share them; the default shares with no other.
///
/// Invariants:
/// - Two servers with one cache hold equal rosters in the same memory.
/// - The cache keeps no roster alive.
#[derive(Clone, Debug, Default)]
pub struct RosterCache(Rc<RefCell<Vec<Weak<GroupRoster>>>>);

impl RosterCache {
    /// Returns the cached roster that is equal to `roster`, or caches this one.
    pub(crate) fn shared(&self, roster: GroupRoster) -> Rc<GroupRoster> {
        let mut latest = self.0.borrow_mut();
        latest.retain(|known| known.strong_count() > 0);
        let known = latest.iter().filter_map(Weak::upgrade).find(|known| **known == roster);
        known.unwrap_or_else(|| {
            let new = Rc::new(roster);
            latest.truncate(COMPARED_MAX - 1);
            latest.insert(0, Rc::downgrade(&new));
            new
        })
    }
}

#[cfg(test)]
mod tests {
    //! Proves: equal rosters share memory, different ones do not, and no unused roster is kept.
    use super::*;
    use wire::ClientKey;

    fn roster(group: u64) -> GroupRoster {
        let addresses = ["node:1", ""].into_iter().collect();
        GroupRoster { group, members: vec![ClientKey(1), ClientKey(2)], addresses }
    }

    #[test]
    fn equal_rosters_share_one_copy() {
        let cache = RosterCache::default();
        let (one, same) = (cache.shared(roster(1)), cache.clone().shared(roster(1)));
        assert!(Rc::ptr_eq(&one, &same));
        let other = cache.shared(roster(2));
        assert_eq!((one.group, other.group), (1, 2));
        drop((one, same));
        let alone = cache.shared(roster(2));
        assert!(Rc::ptr_eq(&alone, &other));
        assert_eq!(cache.0.borrow().len(), 1, "the first is forgotten");
    }

    #[test]
    fn fresh_caches_share_nothing() {
        let (one, other) = (RosterCache::default(), RosterCache::default());
        assert!(!Rc::ptr_eq(&one.shared(roster(1)), &other.shared(roster(1))));
    }

    #[test]
    fn number_of_compared_rosters_is_bounded() {
        let cache = RosterCache::default();
        let kept: Vec<_> = (0..100).map(|group| cache.shared(roster(group))).collect();
        assert!((0..).zip(&kept).all(|(group, kept)| kept.group == group));
        assert_eq!(cache.0.borrow().len(), COMPARED_MAX);
    }
}
