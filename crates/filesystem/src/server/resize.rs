//! Files that become longer or shorter (decisions 0024, 0025).

use crate::server::open_file::{Changing, OpenFile};
use crate::server::requests::Answer;
use crate::server::{Server, file_fault};
use policy::BYTES_MAX;
use std::rc::Rc;
use units::{DiskId, FileId};
use wire::{Fault, FileRecord, FileSize, Reply};
use world::{Disk, DiskError, World};

impl<W: World> Server<W> {
    /// Tells the size of a file, open or not.
    pub(crate) async fn size_of(&self, record: FileRecord) -> Result<Answer<W::Payload>, Fault> {
        self.check_record(&record)?;
        let file = match self.files.find(record.file)? {
            Some(open) => open,
            None => Rc::new(OpenFile::new(record)),
        };
        self.measure(&file).await?;
        Ok(Reply::Size(file.size()).into())
    }

    /// Has an open file reach as far as what is here of it: whoever made it longer may have been
    /// killed before the catalogue heard of it.
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

    /// Bytes of a file up to the last one that the cache or a disk has.
    async fn reach(&self, file: &OpenFile) -> Result<u64, Fault> {
        let Some(place) = file.place_of(self.config.id) else { return Ok(0) };
        // The cache first: what leaves it meanwhile is found on its disk.
        let mut reached = self.cache.reach(file).min(BYTES_MAX);
        for (number, disk) in self.disks_of(file) {
            let length = disk.length(file.file).await;
            let length = length.map_err(|error| self.disk_fault(file, number, &error))?;
            let bytes = file.stripe.file_bytes(place, number, length);
            // An object that no file can have is damage, which whoever reads it will meet.
            reached = reached.max(bytes.filter(|bytes| *bytes <= BYTES_MAX).unwrap_or(0));
        }
        Ok(reached)
    }

    /// The disks here that have blocks of a file.
    fn disks_of(&self, file: &OpenFile) -> impl Iterator<Item = (DiskId, &W::Disk)> {
        (0..file.stripe.disks_per_server).map(DiskId).zip(self.world.disks())
    }

    fn disk_fault(&self, file: &OpenFile, disk: DiskId, error: &DiskError) -> Fault {
        file_fault(self.config.id, file, disk, error)
    }

    /// Learns the size that the catalogue had of a file that a client opens.
    ///
    /// The catalogue hears of a cut only after all servers. So if it knows of more cuts than this
    /// one, whoever opened the file here first had asked it before, and nothing is left to free
    /// but what has been written since, which stays.
    pub(crate) async fn opened_with(
        &self,
        file: FileId,
        size: FileSize,
    ) -> Result<Answer<W::Payload>, Fault> {
        let open = self.files.get(file)?;
        self.measure(&open).await?;
        if size.cuts > open.size().cuts && size.bytes < open.bytes() {
            let changing = open.begin_change().await;
            if size.cuts > open.size().cuts && size.bytes < open.bytes() {
                // What arrives from now on is refused beyond this end, until its senders have
                // learned it and make the file longer again.
                self.shorten(&open, &changing, size).await;
                let reached = self.reach(&open).await?;
                changing.set_size(size.max(FileSize { bytes: reached, ..size }));
                self.finish_cut(&open).await?;
            }
        }
        self.resize(file, size).await
    }

    /// Learns the size of an open file, and answers with what it is now. Collectives on a file that
    /// is made shorter fail, and end first. Nobody hears of a cut before it is done.
    pub(crate) async fn resize(
        &self,
        file: FileId,
        size: FileSize,
    ) -> Result<Answer<W::Payload>, Fault> {
        size.validate()?;
        let file = self.files.get(file)?;
        if size > file.size() || !file.tail_is_clean.get() {
            self.change_size(&file, size).await?;
        }
        Ok(Reply::Size(file.size()).into())
    }

    async fn change_size(&self, file: &Rc<OpenFile>, size: FileSize) -> Result<(), Fault> {
        let changing = file.begin_change().await;
        if size > file.size() && size.bytes < file.bytes() {
            self.shorten(file, &changing, size).await;
        }
        self.finish_cut(file).await?;
        changing.set_size(size.max(file.size()));
        Ok(())
    }

    /// From now on a file is shorter; what is beyond its end is still there.
    async fn shorten(&self, file: &OpenFile, changing: &Changing<'_>, size: FileSize) {
        changing.set_size(size);
        file.tail_is_clean.set(false);
        self.give_up_collectives(file.file, &file.past_end());
        self.collectives_ended(file.file).await;
    }

    /// Frees what is beyond the end of a file that was made shorter, unless that is done.
    async fn finish_cut(&self, file: &Rc<OpenFile>) -> Result<(), Fault> {
        if !file.tail_is_clean.get() {
            self.cut(file, file.bytes()).await?;
            file.tail_is_clean.set(true);
        }
        Ok(())
    }

    /// Frees what the cache and the disks hold of a file beyond its first `bytes` bytes, for good:
    /// what came back with a loss of power would count as written.
    async fn cut(&self, file: &Rc<OpenFile>, bytes: u64) -> Result<(), Fault> {
        self.cache.cut(file, bytes).await;
        let Some(place) = file.place_of(self.config.id) else { return Ok(()) };
        for (number, disk) in self.disks_of(file) {
            let kept = file.stripe.object_bytes(place, number, bytes);
            let cut = async {
                disk.truncate(file.file, kept).await?;
                disk.sync(file.file).await
            };
            cut.await.map_err(|error| self.disk_fault(file, number, &error))?;
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
