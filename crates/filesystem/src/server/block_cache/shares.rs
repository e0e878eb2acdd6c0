//! Shares of the disks in the cache.

use crate::signal::Signal;
use std::cell::Cell;
use std::rc::Rc;
use units::DiskId;

/// Part of the cache that blocks occupy which cannot be evicted at once, for each disk.
#[derive(Default)]
pub(crate) struct Shares {
    /// Maximum number of bytes that one disk may occupy.
    bytes_max: u64,
    of_disks: Box<[Share]>,
}

#[derive(Default)]
struct Share {
    occupied: Cell<u64>,
    /// Number of bytes of pinned blocks, one for each pin.
    pinned: Rc<Cell<u64>>,
    freed: Signal,
}

impl Shares {
    /// Makes the shares of `disks` disks in `capacity` bytes. A single disk has no limit.
    pub(super) fn new(capacity: u64, disks: usize) -> Self {
        let bytes_max = if disks > 1 { capacity / disks as u64 } else { u64::MAX };
        Self { bytes_max, of_disks: (0..disks).map(|_| Share::default()).collect() }
    }

    /// Maximum number of bytes that one disk may occupy.
    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// True when a disk may occupy `bytes` bytes more.
    pub(super) fn fits(&self, disk: DiskId, bytes: u64) -> bool {
        let Share { occupied, pinned, .. } = &self.of_disks[disk.0 as usize];
        let occupied = occupied.get();
        occupied <= pinned.get() || occupied.saturating_add(bytes) <= self.bytes_max
    }

    /// Number of bytes of pinned blocks of a disk.
    pub(super) fn pinned(&self, disk: DiskId) -> &Rc<Cell<u64>> {
        &self.of_disks[disk.0 as usize].pinned
    }

    pub(super) fn occupy(&self, disk: DiskId, bytes: u64) {
        self.of_disks[disk.0 as usize].occupied.update(|occupied| occupied + bytes);
    }

    pub(super) fn free(&self, disk: DiskId, bytes: u64) {
        self.of_disks[disk.0 as usize].occupied.update(|occupied| occupied - bytes);
    }

    /// Notified when a block of a disk has lost its last user.
    pub(super) fn freed(&self, disk: DiskId) -> &Signal {
        &self.of_disks[disk.0 as usize].freed
    }
}
