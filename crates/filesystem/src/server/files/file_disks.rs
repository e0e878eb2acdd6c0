//! Disks of a server, and what they have of each file.

use crate::server::faults::{disk_fault, file_fault};
use crate::server::files::open_file::OpenFile;
use crate::server::files::write_failures::WriteFailures;
use futures_util::future::{Either, join_all, select, try_join_all};
use policy::BYTES_MAX;
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use units::{DiskId, Duration, FileId, ServerId};
use wire::Fault;
use world::{Disk, DiskError, World};

/// Maximum time that a disk may take to report its space. After it the last report counts.
const SPACE_TIMEOUT: Duration = Duration::from_ms(1000);

/// Disks of one server.
pub(crate) struct FileDisks<W: World> {
    world: W,
    server: ServerId,
    failures: Rc<WriteFailures>,
    /// Capacity and free space of each disk in bytes, as last reported.
    spaces: Box<[Cell<(u64, u64)>]>,
}

impl<W: World> FileDisks<W> {
    pub(crate) fn new(world: W, server: ServerId, failures: Rc<WriteFailures>) -> Self {
        let spaces = world.disks().iter().map(|_| Cell::default()).collect();
        Self { world, server, failures, spaces }
    }

    /// Returns the disks that have blocks of a file.
    fn of(&self, file: &OpenFile) -> impl Iterator<Item = (DiskId, &W::Disk)> {
        (0..file.stripe.disks_per_server).map(DiskId).zip(self.world.disks())
    }

    /// Returns the disks that have bytes of a file, or may have some beyond its end.
    fn with_blocks(&self, file: &OpenFile) -> impl Iterator<Item = (DiskId, &W::Disk)> {
        let has_blocks = |disk| {
            let bytes = |place| file.stripe.object_bytes(place, disk, file.bytes());
            !file.tail_is_clean.get() || file.place_of(self.server).map(bytes) > Some(0)
        };
        self.of(file).filter(move |(number, _)| has_blocks(*number))
    }

    fn fault(&self, file: &OpenFile, disk: DiskId, error: &DiskError) -> Fault {
        file_fault(self.server, file, disk, error)
    }

    /// Returns the end of the last byte of a file that a disk has. The file learns the time of the
    /// data on the disks.
    pub(crate) async fn reach(&self, file: &OpenFile) -> Result<u64, Fault> {
        let Some(place) = file.place_of(self.server) else { return Ok(0) };
        let mut reached = 0;
        for (number, disk) in self.of(file) {
            let metadata = disk.metadata(file.file).await;
            let metadata = metadata.map_err(|error| self.fault(file, number, &error))?;
            let Some(metadata) = metadata else { continue };
            file.learn_modified(metadata.modified);
            let bytes = file.stripe.file_bytes(place, number, metadata.length);
            // An object longer than any file is damaged, and its reader will find that.
            reached = reached.max(bytes.filter(|bytes| *bytes <= BYTES_MAX).unwrap_or(0));
        }
        Ok(reached)
    }

    /// Frees the bytes of a file beyond its first `bytes` bytes, durably: bytes that came back
    /// after a loss of power would count as written.
    pub(crate) async fn cut(&self, file: &OpenFile, bytes: u64) -> Result<(), Fault> {
        let Some(place) = file.place_of(self.server) else { return Ok(()) };
        for (number, disk) in self.of(file) {
            let kept = file.stripe.object_bytes(place, number, bytes);
            let cut = async {
                disk.truncate(file.file, kept).await?;
                disk.sync(file.file).await
            };
            cut.await.map_err(|error| self.fault(file, number, &error))?;
        }
        Ok(())
    }

    /// Waits until a file is on stable storage, on all of its disks. A disk that fails may have
    /// lost data of any client and may not report it again, so every client gets the fault.
    pub(crate) async fn sync(&self, file: &OpenFile) -> Result<(), Fault> {
        // On a server without blocks there is only what a cut has already stored.
        let disks = self.with_blocks(file);
        let synced = disks.map(async |(number, disk)| (number, disk.sync(file.file).await));
        let mut outcome = Ok(());
        for (number, synced) in join_all(synced).await {
            if let Err(error) = synced {
                let fault = self.fault(file, number, &error);
                self.failures.record(file.file, fault.clone());
                outcome = outcome.and(Err(fault));
            }
        }
        outcome
    }

    /// Gives the disks the time of a file that was changed, at once. Returns the end of that.
    pub(crate) fn set_time(&self, file: &OpenFile) -> impl Future + '_ {
        let modified = file.modified_since_open();
        let set = modified.into_iter().flat_map(|modified| {
            let disks = self.with_blocks(file);
            disks.map(move |(_, disk)| disk.set_modified(file.file, modified))
        });
        join_all(set.collect::<Vec<_>>())
    }

    /// Removes the data of a file from all disks.
    pub(crate) async fn remove(&self, file: FileId) -> Result<(), Fault> {
        let removed = join_all(self.world.disks().iter().map(|disk| disk.remove(file))).await;
        let first = removed.into_iter().find_map(Result::err);
        first.map_or(Ok(()), |error| Err(disk_fault(self.server, &error)))
    }

    /// Returns capacity and free space of each disk in bytes. A disk that does not report them in
    /// time has the last ones.
    pub(crate) async fn spaces(&self) -> Result<Vec<(u64, u64)>, Fault> {
        let spaces = self.world.disks().iter().zip(&self.spaces);
        let spaces = spaces.map(async |(disk, last)| {
            let limit = self.world.sleep(SPACE_TIMEOUT);
            if let Either::Left((space, _)) = select(pin!(disk.space()), pin!(limit)).await {
                let space = space.map_err(|error| disk_fault(self.server, &error))?;
                last.set((space.capacity_bytes, space.free_bytes));
            }
            Ok(last.get())
        });
        try_join_all(spaces).await
    }
}
