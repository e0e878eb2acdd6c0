//! Maps of which most have one entry or two.
//!
//! Invariants:
//! - Each key is there once.
//! - A single entry lies in the map itself.

use smallvec::SmallVec;

/// A map of a few keys, without an allocation for one entry. Lookup is linear.
pub(crate) struct SmallMap<K, V>(SmallVec<[(K, V); 1]>);

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<K: Eq, V> SmallMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.iter().find(|entry| entry.0 == *key).map(|entry| &entry.1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.iter_mut().find(|entry| entry.0 == *key).map(|entry| &mut entry.1)
    }

    /// Returns the value of a key, which begins as its type's default.
    pub(crate) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let place = self.0.iter().position(|entry| entry.0 == key).unwrap_or_else(|| {
            self.0.push((key, V::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    /// Adds the value of a key, or replaces it.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.get_mut(&key) {
            Some(before) => *before = value,
            None => self.0.push((key, value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.0.iter().position(|entry| entry.0 == *key)?;
        Some(self.0.swap_remove(place).1)
    }

    /// Returns all values, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|entry| &entry.1)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: it behaves as a map after any inserts and removals, within its inline room and
    //! beyond.
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map(acts in prop::collection::vec((0_u8..4, 0_u8..6, any::<u8>()), 0..60)) {
            let (mut small, mut map) = (SmallMap::<u8, u8>::default(), BTreeMap::new());
            for (act, key, value) in acts {
                match act {
                    0 => {
                        small.insert(key, value);
                        map.insert(key, value);
                    }
                    1 => prop_assert_eq!(small.remove(&key), map.remove(&key)),
                    2 => *small.or_default(key) = *map.entry(key).or_default(),
                    _ => prop_assert_eq!(small.get_mut(&key), map.get_mut(&key)),
                }
                prop_assert_eq!(small.get(&key), map.get(&key));
                prop_assert_eq!(small.len(), map.len());
                let mut values: Vec<u8> = small.values().copied().collect();
                let mut expected: Vec<u8> = map.values().copied().collect();
                values.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(values, expected);
            }
        }
    }
}
