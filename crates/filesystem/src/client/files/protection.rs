//! Changes of the protection of files.

use super::limits::CATALOGUE;
use crate::client::state::Client;
use policy::Protection;
use wire::{CatalogueRequest, Fault, FileRecord, FileRequest};
use world::World;

impl<W: World> Client<W> {
    /// Protects a file, which anyone may have open, or ceases to. Its copies are written then, or
    /// removed. Until they are written, they are behind, as `status` tells.
    ///
    /// # Errors
    /// Fails when the file is on too few servers, and when one of them cannot be reached. Then the
    /// file may be protected in part, which the next call completes.
    pub async fn protect(&self, file: &FileRecord, protection: Protection) -> Result<(), Fault> {
        let checked = protection.validate(&file.stripe);
        checked.map_err(|error| Fault::BadRequest { cause: error.to_string() })?;
        let other = file.protection != Protection::None && file.protection != protection;
        if other && protection != Protection::None {
            // The copies, or the parity, that there are go first.
            self.protect_from(file, Protection::None).await?;
        }
        self.protect_from(file, protection).await
    }

    async fn protect_from(&self, file: &FileRecord, protection: Protection) -> Result<(), Fault> {
        let protect = CatalogueRequest::Protect { file: file.file, protection };
        let wanted = FileRecord { protection, ..file.clone() };
        let told = FileRequest::Protect(Box::new(wanted));
        match protection {
            wanted if wanted != Protection::None && wanted == file.protection => {}
            Protection::Mirror | Protection::Parity { .. } => {
                self.call_servers(file.servers(), told).await?;
                self.call(CATALOGUE, protect).await?;
            }
            Protection::None => {
                self.call(CATALOGUE, protect).await?;
                self.call_servers(file.servers(), told).await?;
                let drop = FileRequest::DropCopy { file: file.file };
                self.call_servers(file.servers(), drop).await?;
            }
        }
        Ok(())
    }
}
