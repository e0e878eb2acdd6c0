//! Free parts of a range of memory, by the buddy method: sizes are powers of two, and a part that
//! is freed joins its other half.
//!
//! *Invariant:* free parts do not overlap, and no two halves of one part are both free.

use std::collections::BTreeSet;
use std::ops::Range;

/// Order of the largest part: 64 MiB.
pub(super) const ORDER_MAX: u32 = 14;

/// Free parts. Places and sizes are in units; a part of order `n` has `2^n` of them.
pub(super) struct Buddies {
    /// Starts of the free parts of each order.
    free: [BTreeSet<u64>; ORDER_MAX as usize + 1],
    /// Number of units of the range.
    units: u64,
    free_units: u64,
}

impl Buddies {
    /// A range of `units`, none of which is free.
    pub(super) fn full(units: u64) -> Self {
        Self { free: Default::default(), units, free_units: 0 }
    }

    /// Takes a part of this order: from the smallest parts that are large enough, the first.
    pub(super) fn take(&mut self, order: u32) -> Option<u64> {
        let from = (order..=ORDER_MAX).find(|order| !self.free[*order as usize].is_empty())?;
        let start = self.free[from as usize].pop_first()?;
        for smaller in order..from {
            self.free[smaller as usize].insert(start + (1 << smaller));
        }
        self.free_units -= 1 << order;
        Some(start)
    }

    /// Frees a part that was taken with this order.
    pub(super) fn give(&mut self, start: u64, order: u32) {
        self.free_units += 1 << order;
        let (mut start, mut order) = (start, order);
        while order < ORDER_MAX {
            let other = start ^ (1 << order);
            if !self.free[order as usize].remove(&other) {
                break;
            }
            start = start.min(other);
            order += 1;
        }
        self.free[order as usize].insert(start);
    }

    /// Number of units that are free.
    pub(super) fn free_units(&self) -> u64 {
        self.free_units
    }

    /// Frees every unit outside `taken`, whose ranges are in ascending order.
    pub(super) fn give_all_but(&mut self, taken: impl IntoIterator<Item = Range<u64>>) {
        let mut at = 0;
        let end = self.units;
        for range in taken.into_iter().chain(std::iter::once(end..end)) {
            while at < range.start {
                let aligned = at.trailing_zeros().min(ORDER_MAX);
                let fitting = (range.start - at).ilog2();
                let order = aligned.min(fitting);
                self.give(at, order);
                at += 1 << order;
            }
            at = at.max(range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: parts that are taken never overlap, and after all were given back the whole is free
    //! again.
    use super::*;

    const UNITS: u64 = 3 << ORDER_MAX | 5;

    #[test]
    fn parts_do_not_overlap_and_join_again() {
        let mut buddies = Buddies::full(UNITS);
        buddies.give_all_but([]);
        let whole = buddies.free.clone();
        let mut random = fastrand::Rng::with_seed(7);
        let (mut taken, mut owner) = (Vec::new(), vec![false; UNITS as usize]);
        for _ in 0..20_000 {
            if random.bool() || taken.is_empty() {
                let order = random.u32(0..=ORDER_MAX).min(random.u32(0..=ORDER_MAX));
                let Some(start) = buddies.take(order) else { continue };
                assert!(start.is_multiple_of(1 << order) && start + (1 << order) <= UNITS);
                for unit in start..start + (1 << order) {
                    assert!(!owner[unit as usize], "unit {unit} is taken twice");
                    owner[unit as usize] = true;
                }
                taken.push((start, order));
            } else {
                let (start, order) = taken.swap_remove(random.usize(0..taken.len()));
                owner[start as usize..(start + (1 << order)) as usize].fill(false);
                buddies.give(start, order);
            }
        }
        taken.into_iter().for_each(|(start, order)| buddies.give(start, order));
        assert_eq!(buddies.free, whole);
        assert_eq!(buddies.free_units(), UNITS);
    }

    #[test]
    fn what_is_taken_from_the_start_is_not_free() {
        let mut buddies = Buddies::full(100);
        buddies.give_all_but([3..4, 16..32, 99..100]);
        let mut free = [false; 100];
        while let Some(unit) = buddies.take(0) {
            free[unit as usize] = true;
        }
        let taken: Vec<usize> = (0..100).filter(|unit| !free[*unit]).collect();
        assert_eq!(taken, [3].into_iter().chain(16..32).chain([99]).collect::<Vec<_>>());
    }
}
