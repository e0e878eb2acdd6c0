//! Operations on all cached blocks of a file.

use super::cache::BlockCache;
use super::entry::{Entry, User};
use crate::server::files::open_file::OpenFile;
use units::FileId;
use wire::Fault;
use world::World;

impl<W: World> BlockCache<W> {
    /// Returns the end of the bytes of a file that its disks lack. Considers only blocks that came
    /// in with the same stripe.
    pub(crate) fn reach(&self, file: &OpenFile) -> u64 {
        let entries = self.entries.borrow();
        let of_file = entries.range((file.file, 0)..=(file.file, u64::MAX));
        let own = of_file.filter(|(_, entry)| entry.file().stripe == file.stripe);
        own.filter_map(|((_, block), entry)| {
            let end = entry.unstored_end()?;
            block.checked_mul(file.stripe.block_bytes)?.checked_add(end)
        })
        .max()
        .unwrap_or(0)
    }

    /// Waits until no task works on blocks of a file, and writes dirty ones back. The caller must
    /// then ask [`failures`](Self::failures).
    pub(crate) async fn flush(&self, file: FileId) {
        loop {
            let unsettled = {
                let entries = self.entries.borrow();
                let of_file = entries.range((file, 0)..=(file, u64::MAX));
                of_file.map(|(_, entry)| entry).find(|entry| entry.is_unsettled()).map(Entry::user)
            };
            match unsettled {
                Some(user) => self.flush_entry(&user).await,
                None => return,
            }
        }
    }

    /// Flushes every file. Fails with a fault that no client has got.
    pub(crate) async fn write_back_all(&self) -> Result<(), Fault> {
        let mut files: Vec<FileId> = self.entries.borrow().keys().map(|(file, _)| *file).collect();
        files.dedup();
        for file in files {
            self.flush(file).await;
        }
        self.failures.unreported()
    }

    /// Forgets all blocks of a removed file, dirty or not, and takes none of them in again.
    pub(crate) async fn discard(&self, file: FileId) {
        self.discarded.borrow_mut().insert(file);
        loop {
            let next = {
                let entries = self.entries.borrow();
                let of_file = entries.range((file, 0)..=(file, u64::MAX)).next();
                of_file.map(|(_, entry)| Entry::user(entry))
            };
            let Some(user) = next else { break };
            self.forget_block(&user).await;
        }
        self.failures.forget(file);
        self.forget_uses(file);
    }

    /// Forgets the bytes beyond the first `bytes` bytes of a file. Earlier bytes of the last block
    /// go to the disk.
    pub(crate) async fn cut(&self, file: &OpenFile, bytes: u64) {
        let block_bytes = file.stripe.block_bytes;
        if !bytes.is_multiple_of(block_bytes) {
            self.write_back_and_evict(file.file, bytes / block_bytes).await;
        }
        let beyond = (file.file, bytes.div_ceil(block_bytes))..=(file.file, u64::MAX);
        loop {
            let next = {
                let entries = self.entries.borrow();
                entries.range(beyond.clone()).next().map(|(_, entry)| Entry::user(entry))
            };
            let Some(user) = next else { return };
            self.forget_block(&user).await;
        }
    }

    /// Forgets a block, dirty or not, after the task that works on it.
    async fn forget_block(&self, user: &User<W>) {
        while user.wait_while_busy().await {}
        user.forget_dirty();
        self.remove_user(user);
    }
}
