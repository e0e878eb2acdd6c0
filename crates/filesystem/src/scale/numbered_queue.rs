//! Queues of numbered things that leave nearly in the order in which they came.
//!
//! Invariant: numbers ascend.
//!
//! The first entry is mostly the one that is looked for, so nothing is searched.

use std::collections::VecDeque;

/// A map from ascending numbers to values. The next to be removed is among the first.
pub(crate) struct NumberedQueue<N, T>(VecDeque<(N, T)>);

impl<N, T> Default for NumberedQueue<N, T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<N: Copy + Ord, T> NumberedQueue<N, T> {
    /// Adds the value of a number above all others.
    pub(crate) fn push(&mut self, number: N, value: T) {
        debug_assert!(self.0.back().is_none_or(|last| last.0 < number), "numbers must ascend");
        self.0.push_back((number, value));
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: N) -> Option<&mut T> {
        let entry = match self.is_first(number) {
            true => self.0.front_mut(),
            false => self.place_of(number).map(|place| &mut self.0[place]),
        };
        entry.map(|entry| &mut entry.1)
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: N) -> Option<T> {
        let entry = match self.is_first(number) {
            true => self.0.pop_front(),
            false => self.place_of(number).and_then(|place| self.0.remove(place)),
        };
        entry.map(|entry| entry.1)
    }

    /// Iterates over all entries, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (N, &T)> {
        self.0.iter().map(|(number, value)| (*number, value))
    }

    #[inline]
    fn is_first(&self, number: N) -> bool {
        self.0.front().is_some_and(|first| first.0 == number)
    }

    #[inline(never)]
    fn place_of(&self, number: N) -> Option<usize> {
        self.0.binary_search_by_key(&number, |entry| entry.0).ok()
    }
}

#[cfg(test)]
mod tests {
    //! Proves: it behaves as a map to which ascending numbers are added, and whose entries leave in
    //! any order.
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map(acts in prop::collection::vec((any::<bool>(), 0_u32..40), 0..60)) {
            let (mut queue, mut map) = (NumberedQueue::default(), BTreeMap::new());
            let mut next = 0;
            for (adds, number) in acts {
                if adds {
                    queue.push(next, number);
                    map.insert(next, number);
                    next += 1;
                } else {
                    prop_assert_eq!(queue.remove(number), map.remove(&number));
                }
                prop_assert_eq!(queue.get_mut(number), map.get_mut(&number));
                prop_assert!(queue.iter().eq(map.iter().map(|(number, value)| (*number, value))));
            }
        }
    }
}
