//! Keys in the order of their last use: the replacement order of a cache (TOCS 1997, Table I).
//!
//! Invariants:
//! - `places` has the place in `links` of every key, and of no other.
//! - From `oldest` on, `newer` leads through all keys in the order of their last use.

use std::collections::BTreeMap;

/// Keys in the order of their last use: a list with links at fixed places. To find a key takes time
/// for the logarithm of their number. The owner bounds the number; the list itself removes no key.
#[derive(Clone, Debug)]
pub struct Lru<K> {
    places: BTreeMap<K, usize>,
    links: Vec<Link<K>>,
    /// Places without a key.
    free: Vec<usize>,
    oldest: usize,
    newest: usize,
}

/// Key with its neighbours in the order of use.
#[derive(Clone, Debug)]
struct Link<K> {
    key: K,
    older: usize,
    newer: usize,
}

/// Neighbour that does not exist: before the first key and after the last.
const NONE: usize = usize::MAX;

impl<K> Default for Lru<K> {
    fn default() -> Self {
        let (places, links, free) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { places, links, free, oldest: NONE, newest: NONE }
    }
}

impl<K: Ord + Copy> Lru<K> {
    /// Empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `key` the newest, if it is in the list. Returns true if it is.
    pub fn touch(&mut self, key: K) -> bool {
        let Some(place) = self.place(key) else {
            return false;
        };
        self.touch_at(place);
        true
    }

    /// Place of `key`. It stays the same until the key is removed.
    pub fn place(&self, key: K) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// Makes the key at this place the newest, without a search.
    pub fn touch_at(&mut self, place: usize) {
        if place != self.newest {
            self.take_out(place);
            self.add_newest(place);
        }
    }

    /// Makes `key` the newest and adds it if it is missing. Returns true if it was added.
    pub fn insert(&mut self, key: K) -> bool {
        if self.touch(key) {
            return false;
        }
        let link = Link { key, older: NONE, newer: NONE };
        let place = self.free.pop().unwrap_or(self.links.len());
        match self.links.get_mut(place) {
            Some(free) => *free = link,
            None => self.links.push(link),
        }
        self.places.insert(key, place);
        self.add_newest(place);
        true
    }

    /// Removes `key`. Returns true if it was in the list.
    pub fn remove(&mut self, key: K) -> bool {
        let Some(place) = self.places.remove(&key) else { return false };
        self.take_out(place);
        self.free.push(place);
        true
    }

    /// Least recently used key.
    pub fn oldest(&self) -> Option<K> {
        self.iter().next()
    }

    /// True when `key` is in the list. Does not count as a use.
    pub fn contains(&self, key: K) -> bool {
        self.places.contains_key(&key)
    }

    /// Keys, the least recently used first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = K> + '_ {
        Iter { lru: self, oldest: self.oldest, newest: self.newest, left: self.len() }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True when there is no key.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn take_out(&mut self, place: usize) {
        let Link { older, newer, .. } = self.links[place];
        match older {
            NONE => self.oldest = newer,
            _ => self.links[older].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.links[newer].older = older,
        }
    }

    fn add_newest(&mut self, place: usize) {
        let older = std::mem::replace(&mut self.newest, place);
        let link = &mut self.links[place];
        (link.older, link.newer) = (older, NONE);
        match older {
            NONE => self.oldest = place,
            _ => self.links[older].newer = place,
        }
    }
}

/// Keys between two places, both included.
struct Iter<'a, K> {
    lru: &'a Lru<K>,
    oldest: usize,
    newest: usize,
    left: usize,
}

impl<K: Copy> Iterator for Iter<'_, K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.left = self.left.checked_sub(1)?;
        let link = &self.lru.links[self.oldest];
        self.oldest = link.newer;
        Some(link.key)
    }
}

impl<K: Copy> DoubleEndedIterator for Iter<'_, K> {
    fn next_back(&mut self) -> Option<K> {
        self.left = self.left.checked_sub(1)?;
        let link = &self.lru.links[self.newest];
        self.newest = link.older;
        Some(link.key)
    }
}
