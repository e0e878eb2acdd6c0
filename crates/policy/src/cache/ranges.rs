//! Set of bytes as sorted ranges: the bytes of a block or a transfer that are present.
//!
//! Invariants:
//! - The ranges are not empty, ascend, and neither overlap nor touch.
//! - No row is empty or longer than [`ROW_MAX`].
//! - `bytes` is the sum of the lengths of all ranges.

use units::ByteRange;

/// Set of bytes. Each call takes time for the logarithm of the number of separate ranges and for
/// moving a row of them, in any order of calls. Clients that write the same block at different
/// speeds leave thousands of gaps for a while. (A tree takes twice as long for a few hundred
/// ranges.)
#[derive(Clone, Default, Debug)]
pub struct RangeSet {
    rows: Vec<Vec<ByteRange>>,
    bytes: u64,
}

/// Largest number of ranges in a row. A row with one more is split in two.
const ROW_MAX: usize = 64;

/// Number of last ranges that are searched one by one.
const LATEST: usize = 8;

/// Place of a range: its row, and its index there.
type Place = (usize, usize);

impl RangeSet {
    /// Empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `range`. Returns the number of its bytes that were not in the set before.
    pub fn insert(&mut self, range: ByteRange) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let added = self.add(range);
        self.bytes += added;
        added
    }

    fn add(&mut self, range: ByteRange) -> u64 {
        let (mut end, mut known) = (range.end, 0);
        // Ranges that touch it are joined with it, the last first.
        let mut touching = self.last_before(range.end);
        while let Some((row, at)) = touching {
            let other = &mut self.rows[row][at];
            if other.start <= range.start {
                if other.end < range.start {
                    break;
                }
                // Most often a range is continued at its end.
                let added = end.saturating_sub(other.end);
                other.end += added;
                return added - known;
            }
            known += other.length();
            end = end.max(other.end);
            if at > 0 && self.rows[row][at - 1].end < range.start {
                // The only range that touches, or the first of several.
                self.rows[row][at] = ByteRange::new(range.start, end);
                return end - range.start - known;
            }
            self.remove((row, at));
            touching = match at {
                0 => row.checked_sub(1).map(|row| (row, self.rows[row].len() - 1)),
                _ => Some((row, at - 1)),
            };
        }
        self.add_behind(touching, ByteRange::new(range.start, end));
        end - range.start - known
    }

    /// True when every byte of `range` is in the set.
    pub fn contains(&self, range: ByteRange) -> bool {
        let around = || self.last_before(range.start).map(|(row, at)| self.rows[row][at]);
        range.is_empty() || around().is_some_and(|known| range.end <= known.end)
    }

    /// Bytes of `range` that are not in the set, ascending, as few ranges.
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
        self.bytes
    }

    /// True when the set holds the bytes `0 .. length`.
    pub fn is_full(&self, length: u64) -> bool {
        let first = || self.rows.first().map(|row| row[0]);
        length == 0 || first().is_some_and(|first| first.start == 0 && first.end >= length)
    }

    /// True when the set has no bytes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Ranges of the set, ascending. They neither overlap nor touch.
    pub fn iter(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.rows.iter().flatten().copied()
    }

    /// Removes `length` bytes, at least one, from the first range that is long enough. Returns the
    /// bytes removed.
    pub fn take(&mut self, length: u64) -> Option<ByteRange> {
        let is_long_enough = |range: &ByteRange| range.length() >= length;
        let place =
            self.rows.iter().enumerate().find_map(|(row, ranges)| {
                ranges.iter().position(is_long_enough).map(|at| (row, at))
            })?;
        let range = &mut self.rows[place.0][place.1];
        let taken = ByteRange::at(range.start, length);
        self.bytes -= length;
        if taken.end == range.end {
            self.remove(place);
        } else {
            range.start = taken.end;
        }
        Some(taken)
    }

    /// Removes every byte.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }

    /// Ranges that end after `position`.
    fn from(&self, position: u64) -> impl Iterator<Item = ByteRange> + '_ {
        let (row, at) = self.last_before(position).unwrap_or_default();
        let first = self.rows.get(row).map(|row| &row[at..]).unwrap_or_default();
        let others = self.rows.iter().skip(row + 1).flatten();
        first.iter().chain(others).copied().skip_while(move |range| range.end <= position)
    }

    /// Last range that starts at or before `position`. It is most often among the last of all
    /// ranges, because most writers continue where they stopped.
    #[inline]
    fn last_before(&self, position: u64) -> Option<Place> {
        let begins = |range: &ByteRange| range.start <= position;
        let last = self.rows.last()?;
        let latest = last.len().saturating_sub(LATEST);
        if let Some(at) = last[latest..].iter().rposition(begins) {
            return Some((self.rows.len() - 1, latest + at));
        }
        let row = match self.rows.len() {
            1 => 0,
            _ => self.rows.partition_point(|row| begins(&row[0])).checked_sub(1)?,
        };
        let at = self.rows[row].partition_point(begins).checked_sub(1)?;
        Some((row, at))
    }

    fn remove(&mut self, (row, at): Place) {
        let ranges = &mut self.rows[row];
        ranges.remove(at);
        if ranges.is_empty() {
            self.rows.remove(row);
        }
    }

    /// Adds a range that touches no other, after the one at `before` or as the first.
    fn add_behind(&mut self, before: Option<Place>, range: ByteRange) {
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let (row, at) = before.map_or((0, 0), |(row, at)| (row, at + 1));
        let ranges = &mut self.rows[row];
        ranges.insert(at, range);
        if ranges.len() > ROW_MAX {
            let half = ranges.split_off(ROW_MAX / 2);
            self.rows.insert(row + 1, half);
        }
    }
}
