//! Changes of the protection of files, also of files that clients have open.
//!
//! Invariants:
//! - A file counts as protected, in the catalogue, only after all of its servers have recorded that
//!   their copies lack everything.
//! - A copy is removed only when nothing is written to it any more.

use crate::server::answer::Answer;
use crate::server::state::Server;
use policy::{Protection, copy_object};
use std::rc::Rc;
use units::FileId;
use wire::{Fault, FileRecord, Reply};
use world::World;

impl<W: World> Server<W> {
    /// Protects the part of a file here as its record says, whatever clients know of it.
    pub(super) async fn protect(
        self: &Rc<Self>,
        record: FileRecord,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_record(&record)?;
        self.lacking().until_listed().await;
        let (file, protection) = (record.file, record.protection);
        if self.lacking().has(file) {
            let cause = "a lost part of the file is filled, or cannot be".to_owned();
            return Err(Fault::BadRequest { cause });
        }
        match protection {
            Protection::Mirror | Protection::Parity { .. } => {
                self.mirrors().begin_parity(&record);
                let mirrored = self.mirrors().of(file, || record);
                let none = || Fault::BadRequest { cause: format!("{file} has no part here") };
                let mirrored = mirrored.ok_or_else(none)?;
                self.mirrors().lose_copy(&mirrored).await?;
                self.mirrors().record(true).await?;
                self.files().protect(&[(file, protection)]).await?;
                self.files().protections().until_no_bare_change(file).await;
                // The copy may have been written before the last of these changes.
                self.mirrors().lose_copy(&mirrored).await?;
                self.mirrors().record(true).await?;
            }
            Protection::None => {
                self.files().protect(&[(file, protection)]).await?;
                self.mirrors().end(file).await;
            }
        }
        Ok(Reply::Done.into())
    }

    /// Removes the copy here of another server's part of a file.
    pub(super) async fn drop_copy(&self, file: FileId) -> Result<Answer<W::Payload>, Fault> {
        if self.files().protections().of(file) != Some(Protection::None) {
            let cause = format!("{file} is protected");
            return Err(Fault::BadRequest { cause });
        }
        self.kept_sizes().forget(copy_object(file));
        self.mirrors().drop_pending(file).await;
        self.disks().remove_copy(file).await?;
        Ok(Reply::Done.into())
    }
}
