//! Prefetching for a pass over a file that several clients make together (Tower of Pizzas, section
//! 2.2).

use std::ops::Range;

/// Window that slides over the blocks of one file on one disk, in the order on the disk.
///
/// The disk has read up to block i. When a client requests block j and i < j, the disk reads the
/// blocks from i + 1 to j + k, in this order. When j is at most i, the block should be cached
/// already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// One past the last block fetched.
    next: u64,
}

impl Window {
    /// Returns the blocks to read when block `asked` is requested: up to `ahead` blocks after it.
    /// The file has `count` blocks on this disk.
    pub fn fetch(&mut self, asked: u64, ahead: u32, count: u64) -> Range<u64> {
        if asked < self.next {
            return self.next..self.next;
        }
        let end = asked.saturating_add(1).saturating_add(u64::from(ahead)).min(count);
        let range = self.next.min(end)..end;
        self.next = end;
        range
    }

    /// Records that there was no room for the blocks from this one on. They are read when they are
    /// requested.
    pub fn stop_at(&mut self, block: u64) {
        self.next = self.next.min(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_out_of_turn_the_disk_reads_in_order() {
        // The order of arrival of the paper: 2, 3, 1, 6, 5, 9, 4, 8, 7 (here from 0).
        let mut window = Window::default();
        let read: Vec<u64> =
            [1, 2, 0, 5, 4, 8, 3, 7, 6].into_iter().flat_map(|j| window.fetch(j, 1, 9)).collect();
        assert!(read.into_iter().eq(0..9));
    }

    #[test]
    fn what_had_no_room_is_read_when_it_is_asked_for() {
        let mut window = Window::default();
        assert_eq!(window.fetch(3, 4, 100), 0..8);
        window.stop_at(5);
        assert_eq!(window.fetch(4, 4, 100), 5..5);
        assert_eq!(window.fetch(6, 0, 100), 5..7);
        assert_eq!(window.fetch(99, 10, 100), 7..100);
        assert_eq!(window.fetch(50, 10, 100), 100..100);
    }
}
