//! Growing and truncating files (decisions 0024, 0025).

use crate::server::answer::Answer;
use crate::server::files::open_file::OpenFile;
use crate::server::state::Server;
use policy::BYTES_MAX;
use std::rc::Rc;
use units::FileId;
use wire::{Fault, FileRecord, FileSize, Reply};
use world::World;

impl<W: World> Server<W> {
    /// Answers with the size of a file, open or not.
    pub(crate) async fn size_of(
        self: &Rc<Self>,
        record: FileRecord,
    ) -> Result<Answer<W::Payload>, Fault> {
        let record = self.files().as_protected(record);
        self.check_record(&record)?;
        let file = match self.files().find(record.file)? {
            Some(open) => open,
            None => {
                let mut record = self.with_kept_size(record).await?;
                let (size, modified) = self.files().last_known(record.file);
                record.learn(size);
                let closed = OpenFile::new(record);
                closed.learn_modified(modified);
                Rc::new(closed)
            }
        };
        self.measure(&file).await?;
        if !file.tail_is_clean.get() {
            self.change_size(&file, FileSize::default()).await?;
        }
        Ok(Reply::Measured { size: file.size(), modified: file.modified() }.into())
    }

    /// Updates a record with the size that this server keeps of its file.
    pub(crate) async fn with_kept_size(&self, mut record: FileRecord) -> Result<FileRecord, Fault> {
        record.learn(self.kept_sizes().of(record.file).await?);
        self.lacking().until_listed().await;
        if !self.lacking().is_empty() && !self.lacking().to_fill(record.file).is_empty() {
            // What was kept here may be lost.
            let mirrored = self.mirrors().of(record.file, || record.clone());
            if let Some(mirrored) = mirrored {
                record.learn(self.mirrors().size_of_copy(&mirrored).await?);
            }
        }
        Ok(record)
    }

    /// Extends the size of an open file to the data here: the client that grew it may have been
    /// killed before the catalogue recorded it.
    pub(crate) async fn measure(&self, file: &Rc<OpenFile>) -> Result<(), Fault> {
        if file.is_measured.get() {
            return Ok(());
        }
        let changing = file.begin_change().await;
        if file.is_measured.get() {
            return Ok(());
        }
        let (known, reached) = (file.size(), self.reach(file).await?);
        changing.set_size(known.max(FileSize { bytes: reached, ..known }));
        file.is_measured.set(true);
        Ok(())
    }

    /// Returns the end of the last byte of a file that the cache or a disk has. Learns the time of
    /// the data on the disks.
    async fn reach(&self, file: &OpenFile) -> Result<u64, Fault> {
        // The cache first: blocks that leave it meanwhile are found on their disk.
        let cached = self.cache().reach(file).min(BYTES_MAX);
        let stored = self.disks().reach(file).await?;
        Ok(cached.max(stored))
    }

    /// Learns the size of an open file, and answers with the current one. Collectives on a file
    /// that is cut fail and end first. No answer shows a cut before it is complete.
    pub(crate) async fn resize(
        self: &Rc<Self>,
        file: FileId,
        size: FileSize,
    ) -> Result<Answer<W::Payload>, Fault> {
        size.validate()?;
        let file = self.files().get(file)?;
        if size > file.size() || !file.tail_is_clean.get() {
            let changed = self.change_size(&file, size).await;
            // All clients may have closed it meanwhile.
            self.forget_unused(file.file);
            changed?;
        }
        Ok(Reply::Size(file.size()).into())
    }

    /// Keeps the size of an open file on stable storage: no data shows that it was grown without a
    /// write.
    pub(crate) async fn keep_size(
        self: &Rc<Self>,
        file: FileId,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.resize(file, FileSize::default()).await?;
        let file = self.files().get(file)?;
        let changing = file.begin_change().await;
        let size = file.settled_size();
        let kept = self.keep(&file, size).await;
        drop(changing);
        self.forget_unused(file.file);
        kept.map(|()| Reply::Size(size).into())
    }

    async fn keep(&self, file: &OpenFile, size: FileSize) -> Result<(), Fault> {
        if file.stripe.inode().is_some() {
            // The file itself shows it.
            return self.extend_in_place(file).await;
        }
        let mut kept = self.kept_sizes().keep(file.file, size).await;
        if kept.is_ok() {
            kept = self.disks().keep_size_of_copy(file, size).await;
        }
        if self.files().is_dropped(file.file) {
            self.kept_sizes().forget(file.file);
        }
        kept
    }

    async fn change_size(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
        size: FileSize,
    ) -> Result<(), Fault> {
        if self.config().read_only {
            return self.learn_size(file, size).await;
        }
        let only_grows = size.cuts <= file.size().cuts && file.tail_is_clean.get();
        let _guards = match self.begin_change(file) {
            Ok(change) => (Some(change), None),
            Err(fault) if !only_grows => return Err(fault),
            // No cache gets the last line, which becomes longer, until the new size counts.
            Err(_) => (None, self.drop_last_line(file).await?),
        };
        let changing = file.begin_change().await;
        if size.cuts > file.size().cuts {
            // From now on requests beyond the new end are refused.
            let is_shorter = size.bytes < file.bytes();
            changing.set_size(size);
            file.tail_is_clean.set(false);
            if is_shorter {
                self.active_transfers().abort_on(file.file, &file.past_end());
                self.active_transfers().until_aborted_ended(file.file).await;
            }
        }
        let size = size.max(file.size());
        if !file.tail_is_clean.get() {
            self.cache().cut(file, file.bytes()).await;
            self.disks().cut(file, file.bytes()).await?;
            self.keep(file, size).await?;
            file.tail_is_clean.set(true);
        }
        changing.set_size(size);
        file.changed_at(self.world().timestamp());
        Ok(())
    }

    /// Learns the size of a file that may not be changed from a server, or the catalogue, that
    /// knows more of it.
    async fn learn_size(&self, file: &OpenFile, size: FileSize) -> Result<(), Fault> {
        let changing = file.begin_change().await;
        let known = file.size();
        if size.cuts > known.cuts && size.bytes < known.bytes {
            return Err(Fault::ReadOnly);
        }
        changing.set_size(size.max(known));
        file.tail_is_clean.set(true);
        Ok(())
    }
}
