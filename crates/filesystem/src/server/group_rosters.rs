//! Introductions of groups, which the servers of one process have in common.
//!
//! A simulated machine has all of its servers in one: of a group of thousands, hundreds of servers
//! are told the same, and copies of their own would push one another out of the caches whenever
//! one of them looks a member up.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use wire::Introduction;

/// The most introductions with which a new one is compared.
const COMPARED_MAX: usize = 8;

thread_local! {
    /// The latest of them, each once.
    static LATEST: RefCell<Vec<Weak<Introduction>>> = const { RefCell::new(Vec::new()) };
}

/// The same roster; one and the same for all who are told the same.
pub(crate) fn shared(roster: Introduction) -> Rc<Introduction> {
    LATEST.with_borrow_mut(|latest| {
        latest.retain(|known| known.strong_count() > 0);
        let known = latest.iter().filter_map(Weak::upgrade).find(|known| **known == roster);
        known.unwrap_or_else(|| {
            let new = Rc::new(roster);
            latest.truncate(COMPARED_MAX - 1);
            latest.insert(0, Rc::downgrade(&new));
            new
        })
    })
}

#[cfg(test)]
mod tests {
    //! Proves: what is equal is kept once, what differs is not mixed up, and nothing is kept that
    //! nobody needs.
    use super::*;
    use wire::ClientKey;

    fn roster(group: u64) -> Introduction {
        let addresses = ["node:1", ""].into_iter().collect();
        Introduction { group, members: vec![ClientKey(1), ClientKey(2)], addresses }
    }

    #[test]
    fn equal_rosters_share_one_copy() {
        let (one, same, other) = (shared(roster(1)), shared(roster(1)), roster(2));
        assert!(Rc::ptr_eq(&one, &same));
        let other = shared(other);
        assert_eq!((one.group, other.group), (1, 2));
        drop((one, same));
        let alone = shared(roster(2));
        assert!(Rc::ptr_eq(&alone, &other));
        LATEST.with_borrow(|latest| assert_eq!(latest.len(), 1, "the first is forgotten"));
    }

    #[test]
    fn number_of_compared_rosters_is_bounded() {
        let kept: Vec<_> = (0..100).map(|group| shared(roster(group))).collect();
        assert!((0..).zip(&kept).all(|(group, kept)| kept.group == group));
        LATEST.with_borrow(|latest| assert_eq!(latest.len(), COMPARED_MAX));
    }
}
