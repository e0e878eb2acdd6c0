//! Tables of consecutively numbered things: connections, servers, members.
//!
//! Invariant: numbers ascend.
//!
//! Most numbers are consecutive, so an entry mostly lies at its number's offset. One look finds it,
//! where a search has several, each a cache miss.

use units::{ClientId, PeerId, ServerId};

/// A map from ascending numbers to values.
pub(crate) struct Table<N, T> {
    entries: Vec<(N, T)>,
    /// First number; meaningless in an empty table.
    first: u32,
}

/// Key of a table.
pub(crate) trait Number: Copy + Ord {
    fn number(self) -> u32;
}

impl Number for PeerId {
    fn number(self) -> u32 {
        self.0
    }
}

impl Number for ServerId {
    fn number(self) -> u32 {
        self.0
    }
}

impl Number for ClientId {
    fn number(self) -> u32 {
        self.0
    }
}

impl<N, T> Default for Table<N, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), first: 0 }
    }
}

impl<N: Number, T> FromIterator<(N, T)> for Table<N, T> {
    /// The last of several values of one number counts.
    fn from_iter<I: IntoIterator<Item = (N, T)>>(entries: I) -> Self {
        let mut table = Self::default();
        entries.into_iter().for_each(|(number, value)| table.insert(number, value));
        table
    }
}

impl<N, T> IntoIterator for Table<N, T> {
    type Item = (N, T);
    type IntoIter = std::vec::IntoIter<(N, T)>;

    /// Iterates over all entries, ascending.
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<N: Number, T> Table<N, T> {
    #[inline]
    pub(crate) fn get(&self, number: N) -> Option<&T> {
        let guess = number.number().wrapping_sub(self.first) as usize;
        let value = match self.entries.get(guess) {
            Some((there, value)) if *there == number => value,
            _ => &self.entries[self.place_of(number).ok()?].1,
        };
        Some(value)
    }

    pub(crate) fn contains(&self, number: N) -> bool {
        self.get(number).is_some()
    }

    /// Adds the value of a number, or replaces it.
    pub(crate) fn insert(&mut self, number: N, value: T) {
        match self.place_of(number) {
            Ok(place) => self.entries[place].1 = value,
            Err(place) => self.entries.insert(place, (number, value)),
        }
        self.note_first();
    }

    pub(crate) fn remove(&mut self, number: N) -> Option<T> {
        let place = self.place_of(number).ok()?;
        let removed = self.entries.remove(place).1;
        self.note_first();
        Some(removed)
    }

    fn note_first(&mut self) {
        self.first = self.entries.first().map_or(0, |(first, _)| first.number());
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Iterates over all entries, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (N, &T)> {
        self.entries.iter().map(|(number, value)| (*number, value))
    }

    /// Returns the place of a number, or the place to insert it.
    #[inline(never)]
    fn place_of(&self, number: N) -> Result<usize, usize> {
        if self.entries.last().is_none_or(|(last, _)| *last < number) {
            return Err(self.entries.len());
        }
        self.entries.binary_search_by_key(&number, |(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: it behaves as a map, whatever its first number and its gaps.
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map(
            first in 0_u32..5,
            changes in proptest::collection::vec((0_u32..12, any::<bool>()), 0..60),
        ) {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            for (number, (peer, is_added)) in changes.into_iter().enumerate() {
                let peer = PeerId(first + peer);
                if is_added {
                    table.insert(peer, number);
                    map.insert(peer, number);
                } else {
                    prop_assert_eq!(table.remove(peer), map.remove(&peer));
                }
                prop_assert_eq!(table.count(), map.len());
                let ascending = map.iter().map(|(peer, value)| (*peer, value));
                prop_assert!(table.iter().eq(ascending));
                for peer in (0..20).map(PeerId) {
                    prop_assert_eq!(table.get(peer), map.get(&peer));
                }
            }
        }
    }
}
