//! Numbers of removed files.
//!
//! Numbers are given in ascending order and never twice, so the removed ones form few ranges: at
//! most one more than there are files between them. A set of single numbers would grow with every
//! removal, also by the holes that its parts leave in the memory of the process.
//!
//! Invariants:
//! - Ranges neither overlap nor touch.
//! - There are at most [`RANGES_MAX`]. With more, the range of the smallest numbers is forgotten.

use std::collections::BTreeMap;
use units::FileId;

/// Maximum number of ranges. They take about 24 MiB then.
const RANGES_MAX: usize = 1 << 20;

/// Set of numbers of removed files.
#[derive(Default)]
pub(crate) struct RemovedFiles {
    /// Last number of each range, by its first.
    ranges: BTreeMap<u64, u64>,
}

impl RemovedFiles {
    /// Adds a file.
    pub(crate) fn insert(&mut self, file: FileId) {
        let number = file.0;
        if self.contains(file) {
            return;
        }
        let last = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        let last = last.unwrap_or(number);
        match self.ranges.range_mut(..number).next_back() {
            Some((_, before)) if *before + 1 == number => *before = last,
            _ => {
                self.ranges.insert(number, last);
                if self.ranges.len() > RANGES_MAX {
                    self.ranges.pop_first();
                }
            }
        }
    }

    /// True if the file was removed.
    pub(crate) fn contains(&self, file: FileId) -> bool {
        let before = self.ranges.range(..=file.0).next_back();
        before.is_some_and(|(_, last)| file.0 <= *last)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the set has what a set of single numbers has, and merges neighbours.
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_order_of_removals_gives_the_same_ranges() {
        // All orders of five numbers, of which four are neighbours.
        let numbers = [3, 4, 5, 6, 9];
        let mut orders = vec![vec![]];
        for _ in numbers {
            orders = orders
                .iter()
                .flat_map(|order: &Vec<u64>| {
                    let rest = numbers.iter().filter(|number| !order.contains(number));
                    rest.map(|number| [&order[..], &[*number]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        assert_eq!(orders.len(), 120);
        for order in orders {
            let (mut removed, mut expected) = (RemovedFiles::default(), BTreeSet::new());
            for number in order {
                removed.insert(FileId(number));
                removed.insert(FileId(number));
                expected.insert(number);
                for other in 0..12 {
                    assert_eq!(removed.contains(FileId(other)), expected.contains(&other));
                }
            }
            assert_eq!(removed.ranges, BTreeMap::from([(3, 6), (9, 9)]));
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_numbers() {
        let mut removed = RemovedFiles::default();
        for number in [u64::MAX, 0, u64::MAX - 1] {
            removed.insert(FileId(number));
            assert!(removed.contains(FileId(number)));
        }
        assert!(!removed.contains(FileId(1)));
        assert_eq!(removed.ranges.len(), 2);
    }
}
