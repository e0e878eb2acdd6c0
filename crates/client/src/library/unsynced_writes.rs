//! Writes of a program to a file that no sync has stored: a server that is lost may lose them.
//!
//! A server may keep written bytes in its memory until a sync. If it is lost meanwhile and another
//! takes its place, the program must hear of it before it reads older bytes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Writes of one file since the last sync. Times are numbers of losses of the file's servers.
#[derive(Default)]
pub(super) struct UnsyncedWrites {
    /// 0: none. Else one more than the number of losses at the first one.
    since: AtomicU64,
}

impl UnsyncedWrites {
    /// Notes a write. `losses` tells the number of losses before it was acknowledged.
    pub(super) fn add(&self, losses: impl FnOnce() -> u64) {
        if !self.are_some() {
            self.not_stored(losses() + 1);
        }
    }

    /// Tells if there are some.
    pub(super) fn are_some(&self) -> bool {
        self.since.load(Ordering::Acquire) != 0
    }

    /// Tells if some of them may be lost, now that there were `losses`.
    pub(super) fn are_lost(&self, losses: u64) -> bool {
        matches!(self.since.load(Ordering::Acquire), since if since != 0 && since <= losses)
    }

    /// As [`UnsyncedWrites::are_lost`], once: then they are forgotten.
    pub(super) fn take_lost(&self, losses: u64) -> bool {
        let is_lost = |since: u64| (since != 0 && since <= losses).then_some(0);
        self.since.fetch_update(Ordering::AcqRel, Ordering::Acquire, is_lost).is_ok()
    }

    /// Begins a flush of all that was written so far.
    pub(super) fn begin_flush(&self) -> Flushing<'_> {
        Flushing { writes: self, since: self.since.swap(0, Ordering::AcqRel) }
    }

    /// Notes that writes are not stored, of which the oldest are of that time.
    fn not_stored(&self, since: u64) {
        let older = |now: u64| match (now, since) {
            (_, 0) => None,
            (0, since) => Some(since),
            (now, since) => Some(now.min(since)),
        };
        // It fails when there is nothing to note.
        let _ = self.since.fetch_update(Ordering::AcqRel, Ordering::Acquire, older);
    }
}

/// A flush that is under way. If it is dropped, nothing is stored.
pub(super) struct Flushing<'a> {
    writes: &'a UnsyncedWrites,
    since: u64,
}

impl Flushing<'_> {
    /// Ends the flush, after `losses`. Before it or during it, servers may have lost what they had
    /// acknowledged, also if what they have now `is_stored`.
    pub(super) fn end(mut self, is_stored: bool, losses: u64) {
        if is_stored && self.since > losses {
            self.since = 0;
        }
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.writes.not_stored(self.since);
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a loss after a write and before its sync is told, once, and no other one.
    use super::*;

    #[test]
    fn only_losses_between_a_write_and_its_sync_are_told() {
        let writes = UnsyncedWrites::default();
        assert!(!writes.take_lost(7), "nothing was written");
        writes.add(|| 2);
        writes.add(|| 5);
        assert!(!writes.are_lost(2), "no server was lost since");
        assert!(writes.are_lost(3) && writes.take_lost(3), "the first write");
        assert!(!writes.take_lost(9), "it was told");
        writes.add(|| 3);
        let flushing = writes.begin_flush();
        writes.add(|| 3);
        assert!(writes.are_lost(4), "a write during the flush");
        flushing.end(true, 3);
        assert!(writes.are_lost(4), "a write during the flush, after it");
        writes.begin_flush().end(true, 3);
        assert!(!writes.are_some(), "all is stored");
        writes.add(|| 3);
        writes.begin_flush().end(true, 4);
        assert!(writes.take_lost(4), "a server was lost before the flush");
        writes.add(|| 4);
        drop(writes.begin_flush());
        writes.begin_flush().end(false, 4);
        assert!(writes.take_lost(5), "the flushes have failed");
    }
}
