//! Transfers of blocks between the cache and its disks.

use super::entry::User;
use super::occupancy::Occupancy;
use crate::server::faults::file_fault;
use std::rc::Rc;
use units::ServerId;
use wire::Fault;
use world::{Disk, DiskError, Payload, World};

/// The disks of a server, as its block cache uses them.
pub(super) struct BlockDisks<W: World> {
    world: W,
    server: ServerId,
    occupancy: Rc<Occupancy>,
}

impl<W: World> BlockDisks<W> {
    pub(super) fn new(world: W, server: ServerId, occupancy: Rc<Occupancy>) -> Self {
        Self { world, server, occupancy }
    }

    /// Reads the missing bytes of a block from its disk, unless a task works on the block.
    pub(super) async fn load(&self, user: &User<W>) -> Result<(), Fault> {
        let Some(_busy) = user.begin_work() else { return Ok(()) };
        let disk = self.disk_of(user)?;
        let loaded = disk.read(user.key().0, user.disk_offset(), user.length()).await;
        let payload = loaded.map_err(|error| self.fault(user, &error))?;
        user.fill(&self.world, payload);
        self.occupancy.notify_room();
        Ok(())
    }

    /// Writes the dirty bytes of a block to its disk, unless a task works on the block.
    pub(super) async fn store(&self, user: &User<W>) -> Result<(), Fault> {
        let Some(_busy) = user.begin_work() else { return Ok(()) };
        let stored = self.store_parts(user).await;
        self.occupancy.notify_room();
        stored
    }

    async fn store_parts(&self, user: &User<W>) -> Result<(), Fault> {
        let disk = self.disk_of(user)?;
        let mut unwritten = user.take_dirty();
        while let Some((offset, payload)) = unwritten.first() {
            debug_assert!(payload.length() > 0, "a dirty range must not be empty");
            let written = disk.write(user.key().0, user.disk_offset() + offset, payload).await;
            if let Err(error) = written {
                unwritten.lose();
                return Err(self.fault(user, &error));
            }
            unwritten.first_is_written();
        }
        Ok(())
    }

    fn fault(&self, user: &User<W>, error: &DiskError) -> Fault {
        file_fault(self.server, user.file(), user.disk(), error)
    }

    fn disk_of(&self, user: &User<W>) -> Result<&W::Disk, Fault> {
        let disk = user.disk();
        let gone = || Fault::BadRequest { cause: format!("this server has no {disk}") };
        self.world.disks().get(disk.0 as usize).ok_or_else(gone)
    }
}
