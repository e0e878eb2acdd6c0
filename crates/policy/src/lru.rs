//! Which key was used longest ago: the replacement order of a cache (TOCS 1997, Table I).
//!
//! Invariant: the two maps hold the same keys, and stamps grow with every use.

use std::collections::BTreeMap;

/// Keys in the order of their last use. Every method takes time for the logarithm of their number.
/// The owner bounds that number: the set itself forgets nothing.
#[derive(Clone, Debug)]
pub struct Lru<K> {
    keys: BTreeMap<u64, K>,
    stamps: BTreeMap<K, u64>,
    next_stamp: u64,
}

impl<K> Default for Lru<K> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), stamps: BTreeMap::new(), next_stamp: 0 }
    }
}

impl<K: Ord + Copy> Lru<K> {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `key` the newest if it is there; says whether it is.
    pub fn touch(&mut self, key: K) -> bool {
        let Some(stamp) = self.stamps.get_mut(&key) else {
            return false;
        };
        if *stamp + 1 == self.next_stamp {
            return true;
        }
        self.keys.remove(stamp);
        *stamp = self.next_stamp;
        self.keys.insert(self.next_stamp, key);
        self.next_stamp += 1;
        true
    }

    /// Makes `key` the newest, adding it if need be; says whether it was added.
    pub fn insert(&mut self, key: K) -> bool {
        if self.touch(key) {
            return false;
        }
        self.keys.insert(self.next_stamp, key);
        self.stamps.insert(key, self.next_stamp);
        self.next_stamp += 1;
        true
    }

    /// Forgets `key`; says whether it was there.
    pub fn remove(&mut self, key: K) -> bool {
        match self.stamps.remove(&key) {
            Some(stamp) => self.keys.remove(&stamp).is_some(),
            None => false,
        }
    }

    /// The key used longest ago.
    pub fn oldest(&self) -> Option<K> {
        self.keys.first_key_value().map(|(_, key)| *key)
    }

    /// True when `key` is there. Does not count as a use.
    pub fn contains(&self, key: K) -> bool {
        self.stamps.contains_key(&key)
    }

    /// The keys, the one used longest ago first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = K> + '_ {
        self.keys.values().copied()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True when there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
