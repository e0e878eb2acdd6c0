//! Files that become longer or shorter (decision 0024).

use crate::server::open_file::OpenFile;
use crate::server::requests::Answer;
use crate::server::{Server, file_fault};
use std::rc::Rc;
use units::{DiskId, FileId};
use wire::{Fault, FileSize, Reply};
use world::{Disk, World};

impl<W: World> Server<W> {
    /// Learns the size of an open file, and answers with what it is now. Collectives on a file that
    /// is made shorter fail, and end first.
    pub(crate) async fn resize(
        &self,
        file: FileId,
        size: FileSize,
    ) -> Result<Answer<W::Payload>, Fault> {
        size.validate()?;
        let file = self.files.get(file)?;
        if size > file.size() {
            self.change_size(&file, size).await?;
        }
        Ok(Reply::Size(file.size()).into())
    }

    async fn change_size(&self, file: &Rc<OpenFile>, size: FileSize) -> Result<(), Fault> {
        let changing = file.begin_change().await;
        let known = file.size();
        if size <= known {
            return Ok(());
        }
        if size.bytes < known.bytes {
            // What arrives from now on is refused beyond the new end.
            changing.set_size(size);
            file.tail_is_clean.set(false);
            self.give_up_collectives(file.file, &file.past_end());
            self.collectives_ended(file.file).await;
            self.cut(file, size.bytes).await?;
        } else if !file.tail_is_clean.get() {
            self.cut(file, known.bytes).await?;
        }
        file.tail_is_clean.set(true);
        changing.set_size(size);
        Ok(())
    }

    /// Frees what the cache and the disks hold of a file beyond its first `bytes` bytes.
    async fn cut(&self, file: &Rc<OpenFile>, bytes: u64) -> Result<(), Fault> {
        self.cache.cut(file, bytes).await;
        let Some(place) = file.place_of(self.config.id) else { return Ok(()) };
        let disks = (0..file.stripe.disks_per_server).map(DiskId).zip(self.world.disks());
        for (number, disk) in disks {
            let kept = file.stripe.object_bytes(place, number, bytes);
            let truncated = disk.truncate(file.file, kept).await;
            truncated.map_err(|error| file_fault(self.config.id, file, number, &error))?;
        }
        Ok(())
    }

    /// Tells the collectives on a file to end with this fault.
    pub(crate) fn give_up_collectives(&self, file: FileId, fault: &Fault) {
        for underway in self.collectives.borrow_mut().values_mut() {
            if underway.file == file {
                underway.verdict = Some(fault.clone());
            }
        }
        self.departures.notify();
    }

    /// Waits until no collective on a file is under way.
    pub(crate) async fn collectives_ended(&self, file: FileId) {
        let all_ended = || self.collectives.borrow().values().all(|underway| underway.file != file);
        self.departures.until(|| all_ended().then_some(())).await;
    }
}
