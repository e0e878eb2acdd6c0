//! Memory of answers, from before they are read until the client has them.
//!
//! Invariant: an answer that waits for a disk takes room of answers from that disk only.

use super::buffer_pool::{BufferPermit, TransferBufferPool};
use super::transfer_watchdog::TransferWatchdog;
use futures_util::poll;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use units::{DiskId, MIB, PeerId};
use world::Clock;

/// Bytes that all answers may have, however small the buffers are.
const BYTES_MIN: u64 = 64 * MIB;

/// Usual size of a large answer without data, in bytes, by which such answers are limited.
pub(crate) const LARGE_ANSWER_BYTES: u64 = MIB;

/// The watchdog knows the memory of answers from disk d as that of disk `FIRST + d`, which no
/// server has.
const FIRST: u32 = 1 << 31;

/// Source of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Data of this disk, or of the cache for it.
    Disk(DiskId),
    /// Lists.
    Memory,
}

/// Pools of answers: one for each disk, and one for lists.
pub(crate) struct AnswerPools {
    pools: Box<[TransferBufferPool]>,
    watchdog: Rc<TransferWatchdog>,
}

impl AnswerPools {
    /// Makes pools of `bytes_max` bytes in all, or of the minimum.
    pub(crate) fn new(disks: usize, bytes_max: u64, watchdog: &Rc<TransferWatchdog>) -> Self {
        let bytes = bytes_max.max(BYTES_MIN) / (disks as u64 + 1);
        let pool =
            |number| TransferBufferPool::new(DiskId(FIRST + number), bytes, 1, Rc::clone(watchdog));
        let pools = (0..=disks as u32).map(pool).collect();
        Self { pools, watchdog: Rc::clone(watchdog) }
    }

    /// Waits until there is room for an answer of `bytes` bytes.
    pub(crate) async fn take(
        &self,
        world: &impl Clock,
        source: Source,
        bytes: u64,
    ) -> BufferPermit<'_> {
        self.pools[self.number(source)].take(world, bytes).await
    }

    /// Sends an answer for which there is room. If the client does not take it while others wait
    /// for room, it is disconnected.
    pub(crate) async fn send<R, E>(
        &self,
        (client, source): (PeerId, Source),
        bytes: u64,
        sending: impl Future<Output = Result<R, E>>,
    ) -> Result<R, E> {
        let mut sending = pin!(sending);
        // Most answers go at once.
        if let Poll::Ready(sent) = poll!(sending.as_mut()) {
            return sent;
        }
        let disk = DiskId(FIRST + self.number(source) as u32);
        self.watchdog.watch((client, disk), bytes, sending).await
    }

    fn number(&self, source: Source) -> usize {
        let last = self.pools.len() - 1;
        match source {
            Source::Disk(disk) => (disk.0 as usize).min(last),
            Source::Memory => last,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: answers from one disk, and lists, leave room for those from other disks.
    use super::*;
    use futures_util::FutureExt;
    use units::{Instant, Timestamp};

    /// A clock of which nobody asks the time.
    struct NoClock;

    impl Clock for NoClock {
        fn now(&self) -> Instant {
            Instant::default()
        }

        fn clock(&self) -> u64 {
            0
        }

        fn timestamp(&self) -> Timestamp {
            Timestamp::default()
        }

        fn sleep_until(&self, _: Instant) -> impl Future<Output = ()> + 'static {
            std::future::pending()
        }
    }

    #[test]
    fn sources_do_not_wait_for_one_another() {
        let watchdog = Rc::new(TransferWatchdog::new(true));
        let pools = AnswerPools::new(2, 0, &watchdog);
        let sources = [Source::Disk(DiskId(0)), Source::Disk(DiskId(1)), Source::Memory];
        let bytes = BYTES_MIN / 3;
        let taken = sources.map(|source| pools.take(&NoClock, source, bytes).now_or_never());
        assert!(taken.iter().all(Option::is_some));
        assert!(pools.take(&NoClock, sources[1], MIB).now_or_never().is_none());
        drop(taken);
        assert!(pools.take(&NoClock, sources[1], bytes).now_or_never().is_some());
    }
}
