//! Which key was used longest ago: the replacement order of a cache (TOCS 1997, Table I).
//!
//! Invariants: `places` has the place of every key among `links`, and those of no others; from
//! `oldest` on, `newer` leads through all of them, in the order of their last use.

use std::collections::BTreeMap;

/// Keys in the order of their last use. Every method takes time for the logarithm of their number,
/// to find one; they are a list whose links have fixed places. The owner bounds their number: the
/// set itself forgets nothing.
#[derive(Clone, Debug)]
pub struct Lru<K> {
    places: BTreeMap<K, usize>,
    links: Vec<Link<K>>,
    /// Places that no key has.
    free: Vec<usize>,
    oldest: usize,
    newest: usize,
}

/// A key, and its neighbours in the order of use.
#[derive(Clone, Debug)]
struct Link<K> {
    key: K,
    older: usize,
    newer: usize,
}

/// The neighbour of the first and of the last.
const NONE: usize = usize::MAX;

impl<K> Default for Lru<K> {
    fn default() -> Self {
        let (places, links, free) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { places, links, free, oldest: NONE, newest: NONE }
    }
}

impl<K: Ord + Copy> Lru<K> {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `key` the newest if it is there; says whether it is.
    pub fn touch(&mut self, key: K) -> bool {
        let Some(place) = self.place(key) else {
            return false;
        };
        self.touch_at(place);
        true
    }

    /// The place of `key`, which it keeps as long as it is there.
    pub fn place(&self, key: K) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// As [`Lru::touch`] of the key whose place this is; nothing has to be found.
    pub fn touch_at(&mut self, place: usize) {
        if place != self.newest {
            self.take_out(place);
            self.add_newest(place);
        }
    }

    /// Makes `key` the newest, adding it if need be; says whether it was added.
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

    /// Forgets `key`; says whether it was there.
    pub fn remove(&mut self, key: K) -> bool {
        let Some(place) = self.places.remove(&key) else { return false };
        self.take_out(place);
        self.free.push(place);
        true
    }

    /// The key used longest ago.
    pub fn oldest(&self) -> Option<K> {
        self.iter().next()
    }

    /// True when `key` is there. Does not count as a use.
    pub fn contains(&self, key: K) -> bool {
        self.places.contains_key(&key)
    }

    /// The keys, the one used longest ago first.
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

/// The keys between two places, both included.
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
