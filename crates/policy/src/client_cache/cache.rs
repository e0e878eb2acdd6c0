//! Lines of one client's cache.
//!
//! Invariants:
//! - The client's own part holds at most its number of lines, and each set at most its ways. The
//!   global part holds at most its number of lines.
//! - A dirty line is in the own part, and only [`ClientCache::insert`] makes it leave unasked.

use super::spec::ClientCacheSpec;
use crate::cache::Lru;
use std::collections::BTreeMap;
use units::FileId;

/// File and number of a line in the file.
pub type LineKey = (FileId, u64);

/// Lines that a client keeps.
#[derive(Clone, Debug)]
pub struct ClientCache {
    /// Own part: the lines of each set in the order of their last use.
    sets: Vec<Lru<LineKey>>,
    ways: usize,
    own: BTreeMap<LineKey, Line>,
    /// Part that servers manage, in the order in which the lines came.
    global: Lru<LineKey>,
    global_lines: usize,
}

/// State of a line in the own part.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    is_dirty: bool,
    /// False if another client was known to hold the line too.
    is_last_copy: bool,
    /// Moves that are left to a line that another client evicted.
    chances: Option<u32>,
}

/// Line that left a cache to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EvictedLine {
    /// Line.
    pub key: LineKey,
    /// True if its server lacks bytes of it.
    pub is_dirty: bool,
    /// Moves that were left to it, if another client had evicted it.
    pub chances: Option<u32>,
}

impl ClientCache {
    /// Empty cache. `spec` must be valid.
    pub fn new(spec: &ClientCacheSpec) -> Self {
        let ways = spec.ways().max(1);
        Self {
            sets: vec![Lru::new(); (spec.local_lines() / ways).max(1) as usize],
            ways: ways as usize,
            own: BTreeMap::new(),
            global: Lru::new(),
            global_lines: spec.global_lines() as usize,
        }
    }

    /// Tells if the cache holds a line, in either part. Does not count as a use.
    pub fn holds(&self, key: LineKey) -> bool {
        self.own.contains_key(&key) || self.global.contains(key)
    }

    /// Tells if the client's own part holds a line. Does not count as a use.
    pub fn holds_itself(&self, key: LineKey) -> bool {
        self.own.contains_key(&key)
    }

    /// Uses a line. Returns false if the cache does not hold it.
    pub fn touch(&mut self, key: LineKey) -> bool {
        if let Some(line) = self.own.get_mut(&key) {
            // A use gives a recirculated line all its chances again.
            line.chances = None;
            let set = self.set_of(key);
            return self.sets[set].touch(key);
        }
        self.global.contains(key)
    }

    /// Takes a line into the own part as the most recent one of its set. Returns the line that
    /// must leave for it.
    pub fn insert(&mut self, key: LineKey, is_last_copy: bool) -> Option<EvictedLine> {
        let set = self.set_of(key);
        if let Some(line) = self.own.get_mut(&key) {
            *line = Line { is_last_copy, chances: None, ..*line };
            self.sets[set].touch(key);
            return None;
        }
        let evicted = match self.sets[set].len() < self.ways {
            true => None,
            false => self.sets[set].oldest().and_then(|oldest| self.take(oldest)),
        };
        self.add(key, Line { is_dirty: false, is_last_copy, chances: None });
        evicted
    }

    /// Takes a line that another client evicted, with `chances` moves left. Makes room without
    /// another move: drops the oldest line with a copy elsewhere, else the oldest of the
    /// recirculated lines with the fewest chances. Returns the line that is dropped: the new one
    /// if all others are clean last copies of this client's own, or dirty.
    pub fn receive(&mut self, key: LineKey, chances: u32) -> Option<LineKey> {
        let set = self.set_of(key);
        if self.own.contains_key(&key) {
            return None;
        }
        let mut dropped = None;
        if self.sets[set].len() >= self.ways {
            let Some(victim) = self.victim_of_recirculation(set) else { return Some(key) };
            self.take(victim);
            dropped = Some(victim);
        }
        self.add(key, Line { is_dirty: false, is_last_copy: true, chances: Some(chances) });
        dropped
    }

    fn victim_of_recirculation(&self, set: usize) -> Option<LineKey> {
        let clean = || {
            let lines = self.sets[set].iter();
            lines
                .filter_map(|key| Some((key, self.own.get(&key)?)))
                .filter(|(_, line)| !line.is_dirty)
        };
        let duplicate = clean().find(|(_, line)| !line.is_last_copy).map(|(key, _)| key);
        duplicate.or_else(|| {
            let recirculated = clean().filter_map(|(key, line)| Some((key, line.chances?)));
            // The first of several least values is the oldest line.
            recirculated.min_by_key(|(_, chances)| *chances).map(|(key, _)| key)
        })
    }

    /// Takes a line into the global part, in place of `replaces`. If the server counts wrong,
    /// older lines leave, so that the part keeps its size. Returns false if it has no line.
    pub fn store(&mut self, key: LineKey, replaces: Option<LineKey>) -> bool {
        if let Some(replaced) = replaces {
            self.global.remove(replaced);
        }
        if self.global_lines == 0 {
            return false;
        }
        while self.global.len() >= self.global_lines
            && !self.global.contains(key)
            && let Some(oldest) = self.global.oldest()
        {
            self.global.remove(oldest);
        }
        self.global.insert(key);
        true
    }

    /// Notes that another client has got a copy of a line.
    pub fn is_shared(&mut self, key: LineKey) {
        if let Some(line) = self.own.get_mut(&key) {
            line.is_last_copy = false;
        }
    }

    /// Sets if the server lacks bytes of a line of the own part.
    pub fn set_dirty(&mut self, key: LineKey, is_dirty: bool) {
        if let Some(line) = self.own.get_mut(&key) {
            line.is_dirty = is_dirty;
        }
    }

    /// Tells if the server lacks bytes of a line.
    pub fn is_dirty(&self, key: LineKey) -> bool {
        self.own.get(&key).is_some_and(|line| line.is_dirty)
    }

    /// Dirty lines of a file, ascending.
    pub fn dirty_lines(&self, file: FileId) -> Vec<LineKey> {
        let of_file = self.own.range((file, 0)..=(file, u64::MAX));
        of_file.filter(|(_, line)| line.is_dirty).map(|(key, _)| *key).collect()
    }

    /// Removes a line from both parts. Returns true if one held it.
    pub fn remove(&mut self, key: LineKey) -> bool {
        let own = self.take(key).is_some();
        self.global.remove(key) || own
    }

    /// Removes a line from the own part only. Servers decide about the other part.
    pub fn remove_own(&mut self, key: LineKey) {
        self.take(key);
    }

    /// Number of lines of the own part and of the global part.
    pub fn lines(&self) -> (usize, usize) {
        (self.own.len(), self.global.len())
    }

    fn set_of(&self, key: LineKey) -> usize {
        // The file number shifts the sets, so that small files do not meet in the first ones.
        (key.1.wrapping_add(key.0.0) % self.sets.len() as u64) as usize
    }

    fn add(&mut self, key: LineKey, line: Line) {
        let set = self.set_of(key);
        self.sets[set].insert(key);
        self.own.insert(key, line);
    }

    fn take(&mut self, key: LineKey) -> Option<EvictedLine> {
        let Line { is_dirty, chances, .. } = self.own.remove(&key)?;
        let set = self.set_of(key);
        self.sets[set].remove(key);
        Some(EvictedLine { key, is_dirty, chances })
    }
}

#[cfg(test)]
mod tests {
    //! Proves: eviction is LRU within a set, and a recirculated line displaces what it may.
    use super::super::spec::{Cooperation, Organisation};
    use super::*;

    fn key(number: u64) -> LineKey {
        (FileId(0), number)
    }

    fn cache(lines: u32, organisation: Organisation) -> ClientCache {
        let spec = ClientCacheSpec { lines, organisation, ..ClientCacheSpec::default() };
        spec.validate().unwrap();
        ClientCache::new(&spec)
    }

    fn evicted(cache: &mut ClientCache, number: u64) -> Option<u64> {
        cache.insert(key(number), true).map(|line| line.key.1)
    }

    #[test]
    fn the_least_recently_used_line_leaves() {
        let mut full = cache(3, Organisation::FullyAssociative);
        assert_eq!([1, 2, 3].map(|number| evicted(&mut full, number)), [None; 3]);
        assert!(full.touch(key(1)) && !full.touch(key(9)));
        assert_eq!(evicted(&mut full, 4), Some(2));
        assert_eq!(evicted(&mut full, 1), None, "it is there already");
        assert_eq!(evicted(&mut full, 5), Some(3));
    }

    #[test]
    fn lines_of_one_set_displace_one_another_only() {
        let mut direct = cache(4, Organisation::DirectMapped);
        for number in 0..4 {
            assert_eq!(evicted(&mut direct, number), None);
        }
        assert_eq!(evicted(&mut direct, 6), Some(2));
        let mut two_ways = cache(4, Organisation::Ways(2));
        assert_eq!([0, 2, 1].map(|number| evicted(&mut two_ways, number)), [None; 3]);
        assert_eq!(evicted(&mut two_ways, 4), Some(0), "the set of even lines is full");
        assert_eq!(evicted(&mut two_ways, 3), None);
    }

    #[test]
    fn a_received_line_displaces_a_duplicate_then_one_with_few_chances() {
        let mut full = cache(3, Organisation::FullyAssociative);
        for number in [1, 2, 3] {
            full.insert(key(number), true);
        }
        assert_eq!(full.receive(key(4), 2), Some(key(4)), "all lines are last copies");
        full.is_shared(key(2));
        assert_eq!(full.receive(key(4), 2), Some(key(2)));
        full.is_shared(key(3));
        assert_eq!(full.receive(key(5), 1), Some(key(3)));
        assert_eq!(full.receive(key(6), 2), Some(key(5)), "it had the fewest chances");
        // A use makes a recirculated line one of the client's own.
        full.touch(key(4));
        full.touch(key(6));
        assert_eq!(full.receive(key(7), 2), Some(key(7)));
        full.set_dirty(key(4), true);
        full.is_shared(key(4));
        assert_eq!(full.receive(key(7), 2), Some(key(7)), "a dirty line stays");
    }

    #[test]
    fn servers_cannot_overfill_the_global_part() {
        let spec = ClientCacheSpec {
            lines: 5,
            cooperation: Cooperation::CentrallyCoordinated,
            ..ClientCacheSpec::default()
        };
        let mut cache = ClientCache::new(&spec);
        for number in 0..9 {
            assert!(cache.store(key(number), None));
        }
        assert_eq!(cache.lines(), (0, 4));
        assert!(cache.holds(key(8)) && !cache.holds(key(4)) && !cache.holds_itself(key(8)));
        assert!(cache.store(key(20), Some(key(6))));
        assert!(!cache.holds(key(6)) && cache.holds(key(5)));
        let mut plain = ClientCache::new(&ClientCacheSpec::default());
        assert!(!plain.store(key(1), None));
        assert_eq!(plain.lines(), (0, 0));
    }
}
