//! Order of gathered writes of one file at one server.
//!
//! Clients with a lease of a file keep small writes for a while, and then flush them. Two of them
//! may write the same bytes and flush in the other order. So each write has a stamp, the time at
//! which its call was made by a clock that all these clients share, and the write with the greater
//! stamp counts.
//!
//! Invariants:
//! - After all clients have flushed, each byte is that of the write with the greatest stamp.
//! - A flush is remembered only as long as another client may still hold an older write.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::ByteRange;

/// One write of a client, as it is gathered and sent.
// Sent: pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GatheredWrite {
    /// First byte in the file.
    pub offset: u64,
    /// Number of bytes, at least 1.
    pub length: u64,
    /// Time of the call, in ns of the clock that the clients share.
    pub stamp: u64,
}

impl GatheredWrite {
    /// Bytes of the file. `None` if there is no byte, or no such place.
    pub fn range(&self) -> Option<ByteRange> {
        ByteRange::checked_at(self.offset, self.length).filter(|range| !range.is_empty())
    }
}

/// Bytes of a flush that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatheredPart {
    /// Bytes of the file.
    pub range: ByteRange,
    /// Place of the first of them among the bytes of the flush: those of its writes, one after the
    /// other.
    pub data_offset: u64,
}

/// Clients that may hold gathered writes of a file, and the writes that are carried out and could
/// meet an older one. `C` names a client.
#[derive(Clone, Debug)]
pub struct WriteOrder<C> {
    /// Clients with a lease. All writes of a client up to this stamp are flushed.
    flushed_to: BTreeMap<C, u64>,
    /// Bytes that are written, by their first one: the end, and the stamp of the write.
    written: BTreeMap<u64, (u64, u64)>,
    /// Number of entries of `written` at which those without a use are looked for.
    full_at: usize,
}

/// Number of entries below which those without a use are not looked for.
const FULL_MIN: usize = 1 << 12;

impl<C> Default for WriteOrder<C> {
    fn default() -> Self {
        Self { flushed_to: BTreeMap::new(), written: BTreeMap::new(), full_at: FULL_MIN }
    }
}

impl<C: Ord + Copy> WriteOrder<C> {
    /// Gives a client a lease. Its writes have stamps greater than `since`.
    pub fn begin(&mut self, client: C, since: u64) {
        self.flushed_to.insert(client, since);
    }

    /// Ends the lease of a client, which has flushed all its writes or lost them.
    pub fn end(&mut self, client: C) {
        self.flushed_to.remove(&client);
        if self.flushed_to.is_empty() {
            self.written.clear();
        }
    }

    /// Number of pieces that are remembered, those without a use too.
    pub fn remembered(&self) -> usize {
        self.written.len()
    }

    /// Clients that may hold writes that are older than `stamp`.
    pub fn behind_stamp(&self, stamp: u64) -> impl Iterator<Item = C> {
        let older = self.flushed_to.iter().filter(move |(_, flushed)| **flushed < stamp);
        older.map(|(client, _)| *client)
    }

    /// Returns the parts of a flush that count, in the order of the file. They do not overlap. The
    /// writes are in the order of their stamps; those that name no bytes are left out.
    pub fn parts(&self, writes: &[GatheredWrite]) -> Vec<GatheredPart> {
        let counting = self.counting(writes).into_iter();
        counting
            .map(|Stamped { range, data_offset, .. }| GatheredPart { range, data_offset })
            .collect()
    }

    fn counting(&self, writes: &[GatheredWrite]) -> Vec<Stamped> {
        let parts = newest_parts(writes);
        if self.written.is_empty() {
            return parts;
        }
        let mut counting = Vec::with_capacity(parts.len());
        for part in parts {
            self.add_counting(part, &mut counting);
        }
        counting
    }

    /// Adds what is left of a part where no later write was carried out.
    fn add_counting(&self, part: Stamped, to: &mut Vec<Stamped>) {
        let mut start = part.range.start;
        let before = self.written.range(..=start).next_back().map_or(start, |(first, _)| *first);
        for (first, (end, stamp)) in self.written.range(before..part.range.end) {
            if *end <= start || *stamp <= part.stamp {
                continue;
            }
            if start < *first {
                to.push(part.cut(start, *first));
            }
            start = *end;
            if start >= part.range.end {
                return;
            }
        }
        to.push(part.cut(start, part.range.end));
    }

    /// Notes that a write was carried out at once, at the time `stamp`: gathered ones of the same
    /// bytes with smaller stamps do not count any more.
    pub fn wrote(&mut self, client: C, range: ByteRange, stamp: u64) {
        if !range.is_empty() && self.has_others(client) {
            self.remember(range, stamp);
            self.forget_unused();
        }
    }

    /// Notes that the writes of a client with a lease are carried out: all those that it has made
    /// up to the stamp `until`.
    pub fn flushed(&mut self, client: C, writes: &[GatheredWrite], until: u64) {
        if self.has_others(client) {
            for Stamped { range, stamp, .. } in self.counting(writes) {
                self.remember(range, stamp);
            }
        }
        if let Some(flushed) = self.flushed_to.get_mut(&client) {
            *flushed = until.max(*flushed);
        }
        self.forget_unused();
    }

    fn has_others(&self, client: C) -> bool {
        self.flushed_to.keys().any(|other| *other != client)
    }

    /// Remembers a write that is newer than all others of the same bytes.
    fn remember(&mut self, range: ByteRange, stamp: u64) {
        let ByteRange { start, end } = range;
        let before = self.written.range(..start).next_back().map(|(first, known)| (*first, *known));
        if let Some((first, (old_end, old))) = before.filter(|(_, (old_end, _))| *old_end > start) {
            self.written.insert(first, (start, old));
            if old_end > end {
                self.written.insert(end, (old_end, old));
            }
        }
        let inside = self.written.range(start..end);
        let inside: Vec<(u64, (u64, u64))> =
            inside.map(|(first, known)| (*first, *known)).collect();
        for (first, (old_end, old)) in inside {
            self.written.remove(&first);
            if old_end > end {
                self.written.insert(end, (old_end, old));
            }
        }
        self.written.insert(start, (end, stamp));
    }

    /// Forgets writes that no client can hold older ones for, once there are many more than at the
    /// last time.
    fn forget_unused(&mut self) {
        if self.written.len() >= self.full_at {
            self.forget_all_unused();
        }
    }

    /// Forgets all writes that no client can hold older ones for. Takes a time that is proportional
    /// to their number.
    pub fn forget_all_unused(&mut self) {
        let oldest = self.flushed_to.values().min().copied().unwrap_or(u64::MAX);
        self.written.retain(|_, (_, stamp)| *stamp > oldest);
        self.full_at = (self.written.len() * 2).max(FULL_MIN);
    }
}

/// Part of a flush with the stamp of its write.
#[derive(Clone, Copy)]
struct Stamped {
    range: ByteRange,
    data_offset: u64,
    stamp: u64,
}

impl Stamped {
    /// Returns the bytes from `start` to `end`, which are some of it.
    fn cut(&self, start: u64, end: u64) -> Self {
        let data_offset = self.data_offset + (start - self.range.start);
        Self { range: ByteRange::new(start, end), data_offset, ..*self }
    }

    /// Returns what is left of it outside a range, in order.
    fn minus(&self, taken: ByteRange) -> impl Iterator<Item = Self> {
        let ByteRange { start, end } = self.range;
        let ends = [(start, taken.start.clamp(start, end)), (taken.end.clamp(start, end), end)];
        let own = *self;
        let left = ends.into_iter().filter(|(start, end)| start < end);
        left.map(move |(start, end)| own.cut(start, end))
    }
}

/// Returns the bytes of writes in the order of the file, each from the last write that has it.
fn newest_parts(writes: &[GatheredWrite]) -> Vec<Stamped> {
    let mut data_offset = 0u64;
    let mut parts: Vec<Stamped> = Vec::with_capacity(writes.len());
    for write in writes {
        let GatheredWrite { length, stamp, .. } = *write;
        if let Some(range) = write.range() {
            parts.push(Stamped { range, data_offset, stamp });
        }
        data_offset = data_offset.saturating_add(length);
    }
    let ascends =
        |parts: &[Stamped]| parts.windows(2).all(|two| two[0].range.end <= two[1].range.start);
    if ascends(&parts) {
        return parts;
    }
    // Nearly all programs write no byte twice.
    let mut sorted = parts.clone();
    sorted.sort_by_key(|part| part.range.start);
    if ascends(&sorted) {
        return sorted;
    }
    let mut newest: BTreeMap<u64, Stamped> = BTreeMap::new();
    for part in parts {
        let ByteRange { start, end } = part.range;
        let before = newest.range(..end).rev().take_while(|(_, old)| old.range.end > start);
        let old: Vec<Stamped> = before.map(|(_, old)| *old).collect();
        for old in old {
            newest.remove(&old.range.start);
            for left in old.minus(part.range) {
                newest.insert(left.range.start, left);
            }
        }
        newest.insert(start, part);
    }
    newest.into_values().collect()
}

#[cfg(test)]
mod tests {
    //! Proves: whatever two or three clients write, and in whatever order they flush, each byte is
    //! in the end that of its last write; nothing is remembered without need.
    use super::*;

    const BYTES: usize = 4;

    /// A file with clients that gather writes of it.
    #[derive(Clone)]
    struct Model {
        order: WriteOrder<u8>,
        /// Number of the write that each byte has at the server.
        stored: [u64; BYTES],
        /// Number of the last write of each byte.
        last: [u64; BYTES],
        gathered: [Vec<GatheredWrite>; 3],
        now: u64,
    }

    impl Model {
        fn new() -> Self {
            let (stored, last) = ([0; BYTES], [0; BYTES]);
            Self {
                order: WriteOrder::default(),
                stored,
                last,
                gathered: Default::default(),
                now: 1,
            }
        }

        fn write(&mut self, client: u8, start: usize, end: usize) {
            if !self.order.flushed_to.contains_key(&client) {
                self.order.begin(client, self.now);
            }
            self.now += 1;
            self.last[start..end].fill(self.now);
            let (offset, length) = (start as u64, (end - start) as u64);
            let write = GatheredWrite { offset, length, stamp: self.now };
            self.gathered[usize::from(client)].push(write);
        }

        fn flush(&mut self, client: u8) {
            let writes = std::mem::take(&mut self.gathered[usize::from(client)]);
            let data: Vec<u64> = writes
                .iter()
                .flat_map(|it| std::iter::repeat_n(it.stamp, it.length as usize))
                .collect();
            let parts = self.order.parts(&writes);
            self.order.flushed(client, &writes, self.now);
            let ends: Vec<_> = parts.iter().flat_map(|it| [it.range.start, it.range.end]).collect();
            assert!(ends.is_sorted(), "parts ascend and do not overlap: {parts:?}");
            for GatheredPart { range, data_offset } in parts {
                for byte in range.start..range.end {
                    let from = data_offset + (byte - range.start);
                    self.stored[byte as usize] = data[from as usize];
                }
            }
        }

        /// Writes without a lease, or with one after a flush.
        fn write_at_once(&mut self, client: u8, start: usize, end: usize) {
            if self.order.flushed_to.contains_key(&client) {
                self.flush(client);
            }
            self.now += 1;
            self.last[start..end].fill(self.now);
            self.stored[start..end].fill(self.now);
            self.order.wrote(client, ByteRange::new(start as u64, end as u64), self.now);
        }

        fn end(&mut self, client: u8) {
            self.flush(client);
            self.order.end(client);
        }

        fn check(mut self) {
            for client in [1, 0, 2] {
                self.end(client);
            }
            assert_eq!(self.stored, self.last);
            assert!(self.order.flushed_to.is_empty() && self.order.remembered() == 0);
        }
    }

    /// All sequences of five steps of two clients: writes of all ranges, flushes, ends of leases.
    #[test]
    fn the_last_write_counts_in_all_short_sequences() {
        const DEPTH: u32 = 5;
        type Step = (u8, Option<(usize, usize)>, bool);
        let ranges = [(0, 2), (1, 3), (0, 4)];
        let mut steps: Vec<Step> = Vec::new();
        for client in 0..2 {
            steps.extend(ranges.map(|range| (client, Some(range), false)));
            steps.push((client, Some((1, 2)), true));
            steps.extend([(client, None, false), (client, None, true)]);
        }
        let mut models = vec![(Model::new(), DEPTH)];
        let mut checked = 0;
        while let Some((model, left)) = models.pop() {
            model.clone().check();
            checked += 1;
            if left == 0 {
                continue;
            }
            for (client, range, ends) in &steps {
                let mut next = model.clone();
                match (range, ends) {
                    (Some((start, end)), false) => next.write(*client, *start, *end),
                    (Some((start, end)), true) => next.write_at_once(*client, *start, *end),
                    (None, false) => next.flush(*client),
                    (None, true) => next.end(*client),
                }
                models.push((next, left - 1));
            }
        }
        assert_eq!(checked, (0..=DEPTH).map(|depth| steps.len().pow(depth)).sum::<usize>());
    }

    /// Long random sequences of three clients, with many overlaps in one flush.
    #[test]
    fn the_last_write_counts_in_long_sequences() {
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..500 {
            let mut model = Model::new();
            for _ in 0..60 {
                let client = next(3) as u8;
                match next(8) {
                    0 => model.flush(client),
                    1 => model.end(client),
                    _ => {
                        let start = next(BYTES as u64) as usize;
                        let end = start + 1 + next((BYTES - start) as u64) as usize;
                        match next(5) {
                            0 => model.write_at_once(client, start, end),
                            _ => model.write(client, start, end),
                        }
                    }
                }
            }
            model.check();
        }
    }

    #[test]
    fn only_what_an_older_write_may_meet_is_remembered() {
        let write = |offset, stamp| GatheredWrite { offset, length: 1, stamp };
        let mut order = WriteOrder::default();
        order.begin('a', 0);
        order.flushed('a', &[write(0, 1)], 1);
        assert_eq!(order.remembered(), 0, "no other client has a lease");
        order.begin('b', 1);
        order.flushed('a', &[write(0, 2), write(7, 3)], 3);
        assert_eq!((order.remembered(), order.behind_stamp(3).collect()), (2, vec!['b']));
        assert_eq!(order.behind_stamp(1).count(), 0);
        // As long as b has flushed nothing, all that a flushes is remembered, and then little.
        let many = |from: u64| (from..from + 6000).map(|one| write(one * 2, 4 + one)).collect();
        let (first, second): (Vec<_>, Vec<_>) = (many(10), many(6100));
        order.flushed('a', &first, 6100);
        assert_eq!(order.remembered(), 6002);
        order.flushed('b', &[], 6100);
        order.flushed('a', &second, 12_000);
        order.forget_all_unused();
        assert_eq!(order.remembered(), 6000);
        order.end('a');
        order.end('b');
        assert_eq!(order.remembered(), 0);
    }

    /// A large old write under many later ones, and many old ones under a large later one.
    #[test]
    fn many_pieces_take_little_time() {
        let write = |offset, length, stamp| GatheredWrite { offset, length, stamp };
        let mut order = WriteOrder::default();
        order.begin('a', 0);
        order.begin('b', 0);
        let later: Vec<_> = (0..100_000).map(|one| write(one * 4, 1, 10 + one)).collect();
        order.flushed('a', &later, 200_000);
        let parts = order.parts(&[write(0, 400_000, 5)]);
        assert_eq!(parts.len(), 100_000);
        assert_eq!(parts[1], GatheredPart { range: ByteRange::new(5, 8), data_offset: 5 });
        let old: Vec<_> = (0..100_000).map(|one| write(one * 4, 4, 1 + one % 7)).collect();
        order.flushed('a', &[write(0, 400_000, 300_000)], 300_000);
        assert_eq!(order.parts(&old), []);
    }

    #[test]
    fn writes_that_name_no_bytes_are_left_out() {
        let mut order = WriteOrder::default();
        order.begin(1, 0);
        let write = |offset, length| GatheredWrite { offset, length, stamp: 1 };
        let writes = [write(u64::MAX, 2), write(5, 0), write(0, u64::MAX), write(0, u64::MAX)];
        // They do not make it panic either.
        order.parts(&writes);
        order.flushed(1, &writes, 1);
        let parts = order.parts(&[write(5, 0), write(6, 2)]);
        assert_eq!(parts, [GatheredPart { range: ByteRange::new(6, 8), data_offset: 0 }]);
    }
}
