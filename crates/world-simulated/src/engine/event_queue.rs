//! What is still to happen, in the order in which it will: a radix heap with a sorted front.
//!
//! Time never runs backwards in a simulation, so what is added never precedes what was taken last.
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, JACM 37(2), 1990) lives on that: an entry lies
//! in the bucket of the highest digit in which its key differs from a base, and of what that digit
//! is. When the front is used up, the lowest bucket becomes the front if it is short, and is dealt
//! out to lower ones if it is not; both are passes over adjacent memory. A binary heap is as fast
//! with thirty entries and ten times slower with 100,000
//! ([decision 15](../../../../docs/decisions/0015-a-radix-heap-for-events.md)).
//!
//! Invariants: the front descends, and all of it precedes `front_end`, which precedes everything
//! else; every other entry lies in the bucket that [`bucket_of`] names for its key and `base`; what
//! `occupied` says of a bucket is whether it is not empty; no two keys are equal, because sequence
//! numbers differ.

use units::Instant;

/// When something happens, and as how many-th it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) at: Instant,
    pub(crate) sequence: u64,
}

/// Entries by time; among those of one instant, by the order in which they were added.
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

/// Bits of a digit. (With one, an entry moves for every bit by which its bucket gets lower.)
const DIGIT_BITS: usize = 4;

/// What a digit can be.
const DIGITS: usize = 1 << DIGIT_BITS;

/// Digits of a key: those of the sequence number, then, higher, those of the time.
const PLACES: usize = 128 / DIGIT_BITS;

/// Which buckets are not empty.
#[derive(Default)]
struct Occupied {
    /// A bit for each place of which a bucket is not empty.
    places: u32,
    /// For each place, a bit for each digit.
    digits: [u16; PLACES],
}

const _: () = assert!(PLACES == u32::BITS as usize && DIGITS == u16::BITS as usize);

impl Occupied {
    /// The lowest of those that are not empty; past the last if all are.
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

/// Longest bucket that becomes the front as it is.
const REFILL_MAX: usize = 16;

/// Longest front; the later half of a longer one goes back to the buckets.
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
    /// Adds an entry, at the time of what was taken last if `at` is before that.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Instant, entry: T) {
        let key = Key { at: at.max(self.now), sequence: self.next_sequence };
        self.next_sequence += 1;
        if key >= self.front_end {
            return self.put(key, entry);
        }
        // Step by step: the front is short, and to look for the place and then move all before it
        // at once is decided twice. What is there for the same instant was added before, and comes
        // before.
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

    /// What follows `distance` entries after the next one, if it is in the front.
    #[inline]
    pub(crate) fn upcoming(&self, distance: usize) -> Option<T> {
        let place = self.front.len().checked_sub(distance + 1)?;
        Some(self.front[place].1)
    }

    /// Says once of a front that it is new.
    #[inline]
    pub(crate) fn is_front_new(&mut self) -> bool {
        std::mem::take(&mut self.is_front_new)
    }

    /// What will be the next front unless more is added before, if that is known without a search;
    /// in no order.
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
        // The room that the bucket had is used again.
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

/// The bucket of a key: of the highest digit in which it differs from a lower one, and of what that
/// is.
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

/// The first key that is later than all that may lie in a bucket.
fn end_of_bucket(bucket: usize, base: Key) -> Key {
    let (place, digit) = (bucket / DIGITS, bucket % DIGITS);
    let bits = place * DIGIT_BITS;
    let above = base.as_number() >> bits >> DIGIT_BITS << DIGIT_BITS;
    let end = (above | digit as u128) + 1;
    end.checked_mul(1 << bits).map_or(Key::LAST, Key::from_number)
}

#[cfg(test)]
mod tests {
    //! Proves: the order is that of a sorted list, whatever is added between the takings.
    use super::*;
    use std::collections::BTreeMap;

    /// A sequence of numbers that looks random (xorshift).
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
                    // Some ask for what is past.
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
