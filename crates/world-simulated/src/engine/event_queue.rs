//! The queue of timers: a radix heap with a sorted front.
//!
//! Time never runs backwards in a simulation, so no entry precedes the one that was taken last. A
//! radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, JACM 37(2), 1990) relies on that. It puts an
//! entry into the bucket of the highest digit in which its key differs from a base, and of the
//! value of that digit. When the front is empty, the lowest bucket becomes the front if it is
//! short, and is dealt out to lower buckets if it is not. Both are passes over adjacent memory. A
//! binary heap is as fast with thirty entries and ten times slower with 100,000 ([decision
//! 35](../../../../docs/decisions/0035-a-radix-heap-for-timers.md)).
//!
//! Invariants:
//!
//! - The front is sorted in descending order. All of it precedes `front_end`, which precedes every
//!   other entry.
//! - Every other entry lies in the bucket that [`bucket_of`] names for its key and `base`.
//! - `occupied` marks exactly the buckets that are not empty.
//! - No two keys are equal, because sequence numbers differ.

use units::Instant;

/// Instant of an entry, and its sequence number, in the order in which entries were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) at: Instant,
    pub(crate) sequence: u64,
}

/// Entries ordered by time; those of one instant by the order in which they were added.
pub(crate) struct EventQueue<T> {
    now: Instant,
    next_sequence: u64,
    front: Vec<(Key, T)>,
    is_front_new: bool,
    front_end: Key,
    base: Key,
    buckets: Vec<Vec<(Key, T)>>,
    occupied: Occupied,
}

/// Bits of a digit. (With one bit, an entry would move once for every bit by which its bucket
/// falls.)
const DIGIT_BITS: usize = 4;

/// Number of values of a digit.
const DIGITS: usize = 1 << DIGIT_BITS;

/// Digits of a key: first those of the sequence number, then, above them, those of the time.
const PLACES: usize = 128 / DIGIT_BITS;

/// Bit sets of the buckets that are not empty.
#[derive(Default)]
struct Occupied {
    /// One bit for each place that has a bucket that is not empty.
    places: u32,
    /// For each place, one bit for each value of its digit.
    digits: [u16; PLACES],
}

const _: () = assert!(PLACES == u32::BITS as usize && DIGITS == u16::BITS as usize);

impl Occupied {
    /// Returns the lowest bucket that is not empty; past the last bucket if all are empty.
    #[inline]
    fn lowest(&self) -> usize {
        let place = self.places.trailing_zeros() as usize;
        let digit = self.digits.get(place).map_or(0, |digits| digits.trailing_zeros() as usize);
        place * DIGITS + digit
    }

    #[inline]
    fn insert(&mut self, bucket: usize) {
        let (place, digit) = (bucket / DIGITS, bucket % DIGITS);
        self.digits[place] |= 1 << digit;
        self.places |= 1 << place;
    }

    #[inline]
    fn remove(&mut self, bucket: usize) {
        let (place, digit) = (bucket / DIGITS, bucket % DIGITS);
        self.digits[place] &= !(1 << digit);
        if self.digits[place] == 0 {
            self.places &= !(1 << place);
        }
    }
}

/// Longest bucket that becomes the front unchanged, in entries.
const REFILL_MAX: usize = 16;

/// Longest front, in entries. The later half of a longer one goes back to the buckets.
const FRONT_MAX: usize = 32;

impl Key {
    const FIRST: Self = Self { at: Instant::START, sequence: 0 };
    const LAST: Self = Self { at: Instant::from_ns(u64::MAX), sequence: u64::MAX };

    fn as_number(self) -> u128 {
        u128::from(self.at.as_ns()) << 64 | u128::from(self.sequence)
    }

    fn from_number(number: u128) -> Self {
        Self { at: Instant::from_ns((number >> 64) as u64), sequence: number as u64 }
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self {
            now: Instant::START,
            next_sequence: 1,
            front: Vec::with_capacity(FRONT_MAX + 1),
            is_front_new: false,
            front_end: Key::FIRST,
            base: Key::FIRST,
            buckets: std::iter::repeat_with(Vec::new).take(PLACES * DIGITS).collect(),
            occupied: Occupied::default(),
        }
    }
}

impl<T: Copy> EventQueue<T> {
    /// Adds an entry, at the time of the entry taken last if `at` is before that.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Instant, entry: T) {
        let key = Key { at: at.max(self.now), sequence: self.next_sequence };
        self.next_sequence += 1;
        if key >= self.front_end {
            return self.put(key, entry);
        }
        // Insertion step by step: the front is short, and a search followed by a block move would
        // decide everything twice. An entry of the same instant was added earlier and stays ahead.
        self.front.push((key, entry));
        let front = &mut self.front[..];
        let mut place = front.len() - 1;
        while place > 0 && front[place - 1].0.at <= key.at {
            front[place] = front[place - 1];
            place -= 1;
        }
        front[place] = (key, entry);
        if front.len() > FRONT_MAX {
            self.shorten_front();
        }
    }

    /// Takes the next entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Key, T)> {
        if self.front.is_empty() {
            self.refill_front();
        }
        let next = self.front.pop()?;
        self.now = next.0.at;
        Some(next)
    }

    /// Returns the entry that is `distance` entries behind the next one, if it is in the front.
    #[inline]
    pub(crate) fn upcoming(&self, distance: usize) -> Option<T> {
        let place = self.front.len().checked_sub(distance + 1)?;
        Some(self.front[place].1)
    }

    /// Returns true once for each front that was refilled.
    #[inline]
    pub(crate) fn is_front_new(&mut self) -> bool {
        std::mem::take(&mut self.is_front_new)
    }

    /// Returns the entries of the next front, in no order, if they are known without a search. More
    /// entries may be added before.
    pub(crate) fn next_front(&self) -> impl Iterator<Item = T> {
        let lowest = self.buckets.get(self.occupied.lowest());
        let next = lowest.map(Vec::as_slice).filter(|entries| entries.len() <= REFILL_MAX);
        next.unwrap_or_default().iter().map(|(_, entry)| *entry)
    }

    #[inline(never)]
    fn refill_front(&mut self) {
        let lowest = self.occupied.lowest();
        let Some(bucket) = self.buckets.get_mut(lowest) else { return };
        let mut entries = std::mem::take(bucket);
        self.occupied.remove(lowest);
        self.is_front_new = true;
        if entries.len() <= REFILL_MAX {
            self.front_end = end_of_bucket(lowest, self.base);
            entries.sort_unstable_by_key(|(key, _)| std::cmp::Reverse(*key));
            self.front.append(&mut entries);
            self.base = self.front.last().map_or(self.base, |(key, _)| *key);
        } else {
            let first = entries.iter().enumerate().min_by_key(|(_, (key, _))| *key);
            let place = first.map_or(0, |(place, _)| place);
            let first = entries.swap_remove(place);
            self.base = first.0;
            self.front_end = Key { sequence: first.0.sequence + 1, ..first.0 };
            self.front.push(first);
            for (key, entry) in entries.drain(..) {
                self.put(key, entry);
            }
        }
        // Reuse the memory of the bucket.
        self.buckets[lowest] = entries;
    }

    #[cold]
    fn shorten_front(&mut self) {
        let half = self.front.len() / 2;
        self.front_end = self.front[half - 1].0;
        let (base, buckets, occupied) = (self.base, &mut self.buckets, &mut self.occupied);
        for (key, entry) in self.front.drain(..half) {
            let bucket = bucket_of(key, base);
            buckets[bucket].push((key, entry));
            occupied.insert(bucket);
        }
    }

    #[inline(never)]
    fn put(&mut self, key: Key, entry: T) {
        let bucket = bucket_of(key, self.base);
        self.buckets[bucket].push((key, entry));
        self.occupied.insert(bucket);
    }
}

/// Returns the bucket of a key: of the highest digit in which it differs from `base`, and of the
/// value of that digit.
#[inline]
fn bucket_of(key: Key, base: Key) -> usize {
    const TIME: usize = PLACES / 2;
    let at = key.at.as_ns();
    let (number, difference, lowest) = match at ^ base.at.as_ns() {
        0 => (key.sequence, key.sequence ^ base.sequence, 0),
        difference => (at, difference, TIME),
    };
    debug_assert!(key > base, "what is in a bucket must come after the base");
    let place = difference.ilog2() as usize / DIGIT_BITS;
    let digit = (number >> (place * DIGIT_BITS)) as usize % DIGITS;
    (lowest + place) * DIGITS + digit
}

/// Returns the first key that is later than all that a bucket may hold.
fn end_of_bucket(bucket: usize, base: Key) -> Key {
    let (place, digit) = (bucket / DIGITS, bucket % DIGITS);
    let bits = place * DIGIT_BITS;
    let above = base.as_number() >> bits >> DIGIT_BITS << DIGIT_BITS;
    let end = (above | digit as u128) + 1;
    end.checked_mul(1 << bits).map_or(Key::LAST, Key::from_number)
}

#[cfg(test)]
mod tests {
    //! Proves: the order is that of a sorted list, whatever is added between removals.
    use super::*;
    use std::collections::BTreeMap;

    /// Returns the next number of a sequence that looks random (xorshift).
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn entries_come_in_the_order_of_time_and_of_adding() {
        for (seed, spread) in (1..200).zip([1, 2, 50, 1_000, 1 << 40].into_iter().cycle()) {
            let (mut state, mut queue) = (seed, EventQueue::default());
            let (mut model, mut now, mut added) = (BTreeMap::new(), 0, 0_u64);
            for _ in 0..2_000 {
                if random(&mut state) % 8 < 5 {
                    // Some entries ask for an instant in the past.
                    let at = (now + random(&mut state) % spread).saturating_sub(spread / 4);
                    queue.push(Instant::from_ns(at), added);
                    model.insert((at.max(now), added), added);
                    added += 1;
                } else {
                    let expected = model.pop_first();
                    let taken = queue.pop().map(|(key, entry)| (key.at.as_ns(), entry));
                    assert_eq!(taken, expected.map(|((at, _), entry)| (at, entry)), "seed {seed}");
                    now = taken.map_or(now, |(at, _)| at);
                }
            }
            let rest: Vec<u64> =
                std::iter::from_fn(|| queue.pop()).map(|(_, entry)| entry).collect();
            assert_eq!(rest, model.into_values().collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn an_empty_queue_gives_nothing_and_goes_on() {
        let mut queue = EventQueue::default();
        assert!(queue.pop().is_none());
        queue.push(Instant::from_ns(u64::MAX), 'z');
        queue.push(Instant::START, 'a');
        assert_eq!(queue.pop().map(|(_, entry)| entry), Some('a'));
        assert_eq!(queue.pop().map(|(_, entry)| entry), Some('z'));
        assert!(queue.pop().is_none());
    }
}
