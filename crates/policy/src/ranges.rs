//! A set of bytes kept as sorted ranges: which bytes of a block or a transfer are there.
//!
//! Invariant: the ranges are not empty, ascend, and neither overlap nor touch.

use std::collections::BTreeMap;
use units::ByteRange;

/// A set of bytes. Each call takes time logarithmic in the number of separate ranges, however they
/// come: clients that write the same block at different speeds leave thousands of gaps for a while.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangeSet {
    /// The end of each range by its start.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// No bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `range`, and says how many of its bytes were not in the set before.
    pub fn insert(&mut self, range: ByteRange) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (mut end, mut known) = (range.end, 0);
        // Those that touch it become one with it, the last first.
        while let Some((&other, other_end)) = self.ranges.range_mut(..=range.end).next_back() {
            if other <= range.start {
                // Most often one is continued.
                if *other_end >= range.start {
                    let added = end.saturating_sub(*other_end);
                    *other_end += added;
                    return added - known;
                }
                break;
            }
            known += *other_end - other;
            end = end.max(*other_end);
            self.ranges.remove(&other);
        }
        self.ranges.insert(range.start, end);
        end - range.start - known
    }

    /// True when every byte of `range` is in the set.
    pub fn contains(&self, range: ByteRange) -> bool {
        let around = || self.ranges.range(..=range.start).next_back();
        range.is_empty() || around().is_some_and(|(_, &end)| range.end <= end)
    }

    /// The bytes of `range` that are not in the set, ascending, as few ranges.
    pub fn missing_in(&self, range: ByteRange) -> impl Iterator<Item = ByteRange> + '_ {
        let known = self.from(range.start).take_while(move |known| known.start < range.end);
        let behind = ByteRange::new(range.end, range.end);
        let mut position = range.start;
        known.chain([behind]).filter_map(move |known| {
            let gap = ByteRange::new(position, known.start.max(position));
            position = known.end.max(position);
            (!gap.is_empty()).then_some(gap)
        })
    }

    /// Number of bytes in the set.
    pub fn bytes(&self) -> u64 {
        self.iter().map(ByteRange::length).sum()
    }

    /// True when the set holds the bytes `0 .. length`.
    pub fn is_full(&self, length: u64) -> bool {
        let first = || self.ranges.first_key_value();
        length == 0 || first().is_some_and(|(&start, &end)| start == 0 && end >= length)
    }

    /// True when there is no byte in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, ascending; they neither overlap nor touch.
    pub fn iter(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.ranges.iter().map(|(&start, &end)| ByteRange::new(start, end))
    }

    /// Removes `length` bytes, at least one, from the first range that has so many, and says which.
    pub fn take(&mut self, length: u64) -> Option<ByteRange> {
        let mut ranges = self.ranges.iter();
        let (&start, &end) = ranges.find(|(start, end)| *end - *start >= length)?;
        self.ranges.remove(&start);
        let taken = ByteRange::at(start, length);
        if taken.end < end {
            self.ranges.insert(taken.end, end);
        }
        Some(taken)
    }

    /// Removes every byte.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The ranges that end behind `position`.
    fn from(&self, position: u64) -> impl Iterator<Item = ByteRange> + '_ {
        let before = self.ranges.range(..=position).next_back();
        let around = before.filter(|(_, end)| **end > position).map(|(&start, _)| start);
        let first = around.unwrap_or(position);
        self.ranges.range(first..).map(|(&start, &end)| ByteRange::new(start, end))
    }
}
