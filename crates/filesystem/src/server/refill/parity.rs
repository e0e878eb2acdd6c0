//! Parity that this server has lost is made anew from the pieces of its rows.

use super::RETRY_PAUSE;
use crate::server::faults::{disk_fault, disk_of};
use crate::server::mirrors::{MirroredFile, pieces_of_row};
use crate::server::state::Server;
use policy::{Location, RowPiece, copy_object};
use std::rc::Rc;
use tracing::debug;
use units::ByteRange;
use wire::{Fault, FileRecord};
use world::{Disk, DiskError, World};

impl<W: World> Server<W> {
    /// Makes parity anew, whenever some is lacking.
    pub(super) async fn make_parity(self: &Rc<Self>) {
        loop {
            let some = || Some(self.lacking().all_parity_to_make()).filter(|all| !all.is_empty());
            for record in self.lacking().until_grown(some).await {
                let file = record.file;
                let Some(known) = self.mirrors().of(file, || record.clone()) else { continue };
                if let Err(fault) = self.make_parity_of(&known, &record).await {
                    debug!(file = file.0, %fault, "parity of a file could not be made");
                }
                drop(known);
                self.mirrors().release(file);
            }
            if some().is_some() {
                self.world().sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Makes the parity of a file anew, and takes it off the list. Changes of the file go on
    /// meanwhile.
    ///
    /// # Errors
    /// Fails when a piece of a row cannot be read, or a disk here fails.
    async fn make_parity_of(&self, file: &MirroredFile, record: &FileRecord) -> Result<(), Fault> {
        let cause = || Fault::BadRequest { cause: "no parity of the file is here".to_owned() };
        let place = record.place_of(self.config().id).ok_or_else(cause)?;
        let rows = record.protection.rows(&record.stripe).ok_or_else(cause)?;
        let failed = |error: DiskError| disk_fault(self.config().id, &error);
        let block_bytes = record.stripe.block_bytes;
        for disk in self.lacking().parity_to_make(file.file) {
            let bytes = loop {
                let size = self.mirrors().size_of_copy(file).await?;
                let bytes = rows.parity_bytes(place, disk, size.bytes);
                if file.lost_parity.is_whole(disk, bytes) {
                    break bytes;
                }
                let Some(from) = file.lost_parity.from(disk) else { break bytes };
                let slot = from / block_bytes;
                let row = rows.row_at(Location { server: place, disk, slot });
                let within = ByteRange::new(from % block_bytes, block_bytes);
                for piece in pieces_of_row(RowPiece { row, offset: from, within }) {
                    self.mirrors().encode(file, piece).await?;
                    self.lacking().filled(file.file, piece.within.length()).await;
                }
                if file.lost_parity.from(disk).is_some_and(|to| to <= from) {
                    let cause = "the parity was lost again".to_owned();
                    return Err(Fault::BadRequest { cause });
                }
            };
            let (own, object) = (disk_of(self.world(), disk)?, copy_object(file.file));
            debug!(file = file.file.0, disk = disk.0, bytes, "parity was made anew");
            own.sync(object).await.map_err(failed)?;
        }
        self.mirrors().keep_size_of_parity(file.file).await?;
        self.lacking().whole(file.file, |left| left.copy.clear()).await
    }
}
