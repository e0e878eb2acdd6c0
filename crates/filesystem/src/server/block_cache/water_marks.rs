//! Water marks for the dirty bytes of a disk.

/// Marks between which dirty blocks are written back, the oldest first.
pub(super) struct WaterMarks {
    /// Above this number of bytes writing back begins; `None` for never.
    high: Option<u64>,
    /// At this number of bytes writing back ends.
    low: u64,
}

/// Divisor of the high mark that gives the low one.
const LOW_SHARE: u64 = 2;

impl WaterMarks {
    /// Returns the marks of a disk's part of a cache. 100 percent has no marks.
    pub(super) fn new(capacity: u64, dirty_percent: u32) -> Self {
        let share = u128::from(capacity) * u128::from(dirty_percent.min(100)) / 100;
        let high = share as u64;
        Self { high: (dirty_percent < 100).then_some(high), low: high / LOW_SHARE }
    }

    /// True if writing back begins at some number of bytes.
    pub(super) fn exist(&self) -> bool {
        self.high.is_some()
    }

    /// True when writing back begins at `bytes` dirty bytes.
    pub(super) fn begin_at(&self, bytes: u64) -> bool {
        self.high.is_some_and(|high| bytes > high)
    }

    /// True when writing back, once begun, goes on at `bytes` dirty bytes.
    pub(super) fn go_on_at(&self, bytes: u64) -> bool {
        bytes > self.low
    }
}

#[cfg(test)]
mod tests {
    //! Proves: writing back begins above the high mark, and goes on until the low one.
    use super::*;

    #[test]
    fn half_of_a_cache_may_be_dirty_and_a_quarter_stays_dirty() {
        let marks = WaterMarks::new(100, 50);
        assert!(marks.exist() && !marks.begin_at(50) && marks.begin_at(51));
        assert!(marks.go_on_at(26) && !marks.go_on_at(25));
    }

    #[test]
    fn without_marks_it_never_begins() {
        let marks = WaterMarks::new(100, 100);
        assert!(!marks.exist() && !marks.begin_at(u64::MAX));
    }
}
