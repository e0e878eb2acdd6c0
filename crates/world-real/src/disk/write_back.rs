//! Write-back state of one object: unsynced bytes, and bytes that failed to reach stable storage.
//!
//! Linux reports a failed write-back once: after that the pages count as clean, and the next sync
//! succeeds without the bytes.
//!
//! Invariant: bytes whose write or sync failed stay [`WriteBackState::failed`] until they were
//! written again and a later sync succeeded.

use super::failure::Failure;
use rangemap::RangeSet;
use units::ByteRange;

/// Maximum number of separate ranges. With more they are merged into one that covers all, so more
/// than necessary must be written again.
const RANGES_MAX: usize = 1024;

/// Write-back state of an object since its last successful sync.
#[derive(Default)]
pub(crate) struct WriteBackState {
    /// Bytes written since the last sync.
    unsynced: RangeSet<u64>,
    /// Bytes that may be lost.
    failed: RangeSet<u64>,
    /// First error since `failed` was last empty.
    error: Option<Failure>,
}

impl WriteBackState {
    /// Records a write of `bytes`.
    pub(crate) fn wrote(&mut self, bytes: ByteRange) {
        insert(&mut self.unsynced, bytes);
    }

    /// Records a failed write: some of `bytes` may have been written.
    pub(crate) fn write_failed(&mut self, bytes: ByteRange, error: Failure) {
        self.unsynced.remove(bytes.start..bytes.end);
        insert(&mut self.failed, bytes);
        self.error.get_or_insert(error);
    }

    /// Records a successful sync. Fails while lost bytes have not been written again.
    pub(crate) fn synced(&mut self) -> Result<(), Failure> {
        for range in std::mem::take(&mut self.unsynced) {
            self.failed.remove(range);
        }
        if self.failed.is_empty() {
            self.error = None;
        }
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Records a failed sync: the device lacks some bytes, and the system will not report it again.
    pub(crate) fn sync_failed(&mut self, error: Failure) -> Failure {
        for range in std::mem::take(&mut self.unsynced) {
            insert(&mut self.failed, ByteRange::new(range.start, range.end));
        }
        self.error.get_or_insert(error).clone()
    }

    /// Records a truncation to `length`: lost bytes beyond need not be written again.
    pub(crate) fn truncated(&mut self, length: u64) {
        for ranges in [&mut self.unsynced, &mut self.failed] {
            if length < u64::MAX {
                ranges.remove(length..u64::MAX);
            }
        }
    }

    /// True if the device has every byte.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsynced.is_empty() && self.failed.is_empty()
    }

    /// True if something was written since the last sync.
    pub(crate) fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }
}

fn insert(ranges: &mut RangeSet<u64>, bytes: ByteRange) {
    if bytes.is_empty() {
        return;
    }
    ranges.insert(bytes.start..bytes.end);
    if ranges.len() > RANGES_MAX
        && let (Some(first), Some(last)) = (ranges.first(), ranges.last())
    {
        let all = first.start..last.end;
        ranges.insert(all);
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a failure is reported until its bytes were written again and synced, and no longer.
    use super::*;
    use rustix::io::Errno;

    const IO: Failure = Failure::System(Errno::IO);

    #[test]
    fn a_failed_sync_is_told_until_all_of_it_is_written_again() {
        let mut pending = WriteBackState::default();
        pending.wrote(ByteRange::new(0, 10));
        pending.wrote(ByteRange::new(20, 30));
        assert_eq!(pending.sync_failed(IO), IO);
        assert_eq!(pending.synced(), Err(IO));
        pending.wrote(ByteRange::new(0, 10));
        assert_eq!(pending.synced(), Err(IO), "a half is still missing");
        pending.wrote(ByteRange::new(20, 29));
        assert_eq!(pending.synced(), Err(IO), "a byte is still missing");
        pending.wrote(ByteRange::new(5, 40));
        assert_eq!(pending.synced(), Ok(()));
        assert!(pending.is_settled());
    }

    #[test]
    fn a_write_that_failed_after_one_that_succeeded_is_lost() {
        let mut pending = WriteBackState::default();
        pending.wrote(ByteRange::new(0, 10));
        pending.write_failed(ByteRange::new(3, 6), IO);
        assert_eq!(pending.synced(), Err(IO));
        pending.wrote(ByteRange::new(3, 6));
        assert_eq!(pending.sync_failed(Failure::System(Errno::NOSPC)), IO, "the first is told");
        pending.truncated(3);
        assert_eq!(pending.synced(), Ok(()));
    }

    #[test]
    fn too_many_ranges_become_one() {
        let mut pending = WriteBackState::default();
        for index in 0..=RANGES_MAX as u64 {
            pending.write_failed(ByteRange::at(index * 10, 1), IO);
        }
        assert_eq!(pending.failed.len(), 1);
        pending.wrote(ByteRange::new(0, RANGES_MAX as u64 * 10 + 1));
        assert_eq!(pending.synced(), Ok(()));
    }
}
