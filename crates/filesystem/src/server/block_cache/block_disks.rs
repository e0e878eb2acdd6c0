//! Transfers of blocks between the cache and its disks.

use super::entry::User;
use super::occupancy::Occupancy;
use crate::server::files::file_disks::FileDisks;
use std::rc::Rc;
use wire::Fault;
use world::{Payload, World};

/// The disks of a server, as its block cache uses them.
pub(super) struct BlockDisks<W: World> {
    world: W,
    disks: Rc<FileDisks<W>>,
    occupancy: Rc<Occupancy>,
}

impl<W: World> BlockDisks<W> {
    pub(super) fn new(world: W, disks: Rc<FileDisks<W>>, occupancy: Rc<Occupancy>) -> Self {
        Self { world, disks, occupancy }
    }

    /// Reads the missing bytes of a block from its disk, unless a task works on the block. They may
    /// be unknown again when it returns.
    pub(super) async fn load(&self, user: &User<W>) -> Result<(), Fault> {
        let Some(_busy) = user.begin_work() else { return Ok(()) };
        let (disk, offset, length) = (user.disk(), user.disk_offset(), user.length());
        let forgotten = user.forgotten();
        let payload = self.disks.read(user.file(), disk, offset, length).await?;
        if user.forgotten() == forgotten {
            user.fill(&self.world, payload);
        }
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
        let mut unwritten = user.take_dirty();
        while let Some((offset, payload)) = unwritten.first() {
            debug_assert!(payload.length() > 0, "a dirty range must not be empty");
            let offset = user.disk_offset() + offset;
            let written = self.disks.write(user.file(), user.disk(), offset, payload).await;
            if let Err(fault) = written {
                unwritten.lose();
                return Err(fault);
            }
            unwritten.first_is_written();
        }
        Ok(())
    }
}
