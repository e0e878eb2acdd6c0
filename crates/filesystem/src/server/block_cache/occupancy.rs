//! Occupied part of a cache: blocks that cannot be evicted at once, because they are used, on their
//! way, or dirty.

use super::dirty::DirtyBlocks;
use crate::signal::Signal;
use std::cell::Cell;
use units::DiskId;

/// Divisor of a disk's share of the cache: the fraction that clients can pin. Further pages are
/// copies.
const PINNED_SHARE: u64 = 2;

/// Room that blocks occupy in a cache, for each disk, and the tasks that wait for room.
pub(super) struct Occupancy {
    /// Maximum number of bytes that one disk may occupy.
    share_bytes_max: u64,
    /// Maximum number of bytes that clients may pin of one disk.
    pinned_bytes_max: u64,
    of_disks: Box<[Share]>,
    dirty: DirtyBlocks,
    /// Notified when a block may have become evictable.
    room: Signal,
}

#[derive(Default)]
struct Share {
    occupied: Cell<u64>,
    /// Number of bytes of pinned blocks, one for each pin.
    pinned: Cell<u64>,
    /// Notified when a block of the disk has lost its last user.
    freed: Signal,
}

impl Occupancy {
    /// Makes the empty occupancy of a cache of `capacity` bytes for `disks` disks. A single disk
    /// has no limit.
    pub(super) fn new(capacity: u64, disks: usize) -> Self {
        let share_bytes_max = if disks > 1 { capacity / disks as u64 } else { u64::MAX };
        Self {
            share_bytes_max,
            pinned_bytes_max: capacity.min(share_bytes_max) / PINNED_SHARE,
            of_disks: (0..disks).map(|_| Share::default()).collect(),
            dirty: DirtyBlocks::default(),
            room: Signal::default(),
        }
    }

    /// The dirty blocks.
    pub(super) fn dirty(&self) -> &DirtyBlocks {
        &self.dirty
    }

    /// True when a disk may occupy `bytes` bytes more.
    pub(super) fn fits(&self, disk: DiskId, bytes: u64) -> bool {
        let Share { occupied, pinned, .. } = self.share(disk);
        let occupied = occupied.get();
        occupied <= pinned.get() || occupied.saturating_add(bytes) <= self.share_bytes_max
    }

    /// Adds a block of `bytes` bytes.
    pub(super) fn occupy(&self, disk: DiskId, bytes: u64) {
        self.share(disk).occupied.update(|occupied| occupied + bytes);
    }

    /// Removes a block of `bytes` bytes.
    pub(super) fn free(&self, disk: DiskId, bytes: u64) {
        self.share(disk).occupied.update(|occupied| occupied - bytes);
    }

    /// Pins a block of `bytes` bytes. False, without effect, when so much of its disk is pinned
    /// that others would lack room.
    pub(super) fn pin(&self, disk: DiskId, bytes: u64) -> bool {
        let Share { pinned, freed, .. } = self.share(disk);
        let fits = pinned.get() + bytes <= self.pinned_bytes_max;
        if fits {
            pinned.update(|pinned| pinned + bytes);
            // A pinned block no longer blocks a longer one.
            freed.notify();
        }
        fits
    }

    /// Removes a pin of a block of `bytes` bytes.
    pub(super) fn unpin(&self, disk: DiskId, bytes: u64) {
        self.share(disk).pinned.update(|pinned| pinned - bytes);
    }

    /// Notifies tasks that wait for blocks of a disk to become free, after one has.
    pub(super) fn notify_freed(&self, disk: DiskId) {
        self.share(disk).freed.notify();
    }

    /// Notifies tasks that wait for room, after a block may have become evictable.
    pub(super) fn notify_room(&self) {
        self.room.notify();
    }

    /// Waits until blocks of a disk have become free such that `is_enough`.
    pub(super) async fn until_freed(&self, disk: DiskId, is_enough: impl Fn() -> bool) {
        self.share(disk).freed.until(|| is_enough().then_some(())).await;
    }

    /// Waits until blocks have become evictable such that `is_enough`.
    pub(super) async fn until_room(&self, is_enough: impl Fn() -> bool) {
        self.room.until(|| is_enough().then_some(())).await;
    }

    fn share(&self, disk: DiskId) -> &Share {
        &self.of_disks[disk.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a disk occupies at most its share, except beside pinned blocks, and clients pin at
    //! most half of it.
    use super::*;

    const A: DiskId = DiskId(0);
    const B: DiskId = DiskId(1);

    #[test]
    fn a_disk_has_its_share_and_what_is_pinned_beside_one_block() {
        let occupancy = Occupancy::new(80, 2);
        occupancy.occupy(A, 30);
        assert!(occupancy.fits(A, 10) && !occupancy.fits(A, 11) && occupancy.fits(B, 40));
        assert!(!occupancy.pin(A, 21) && occupancy.pin(A, 20) && !occupancy.pin(A, 1));
        occupancy.free(A, 10);
        assert!(occupancy.fits(A, 80), "all that it occupies is pinned");
        occupancy.unpin(A, 20);
        assert!(!occupancy.fits(A, 80) && occupancy.fits(A, 20) && occupancy.pin(A, 1));
    }

    #[test]
    fn one_disk_has_no_share_but_a_limit_of_pins() {
        let occupancy = Occupancy::new(80, 1);
        occupancy.occupy(A, 1000);
        assert!(occupancy.fits(A, u64::MAX));
        assert!(occupancy.pin(A, 40) && !occupancy.pin(A, 1));
    }
}
