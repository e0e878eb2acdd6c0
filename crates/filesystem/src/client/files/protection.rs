//! Changes of the protection of files, and how much of them is protected.

use super::limits::CATALOGUE;
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::future::join_all;
use policy::{ProtectedBytes, Protection, Unprotected, part_bytes};
use units::{FileId, ServerId};
use wire::{
    CatalogueRequest, Fault, FileRecord, FileRequest, Reply, ServerRequest, UnprotectedFiles,
};
use world::World;

/// Maximum number of files of one server that are asked for.
const UNPROTECTED_MAX: usize = 1 << 20;

/// Number of files that are asked for at a time.
const UNPROTECTED_AT_ONCE: u32 = 256;

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

    /// Returns how many bytes of a file of `record.bytes` bytes are protected now; `None` for a
    /// file without protection, and while a server does not know what is lost. What a server has
    /// that does not answer does not count. Writes that clients have not sent to servers yet are
    /// unknown.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when a server sends another answer.
    pub async fn protected_bytes(
        &self,
        record: &FileRecord,
    ) -> Result<Option<ProtectedBytes>, Fault> {
        if record.protection == Protection::None {
            return Ok(None);
        }
        let places = (0..record.stripe.servers).map(ServerId);
        let asked = places.map(async |place| {
            let server = record.pool.server(place);
            match self.ask_for_unprotected(server, record.file, 1).await {
                Ok(UnprotectedFiles { is_all_known: false, .. }) => Ok(None),
                Ok(UnprotectedFiles { files, .. }) => {
                    let own = files.into_iter().find(|(file, _)| *file == record.file);
                    Ok(Some(own.map_or_else(Unprotected::default, |(_, own)| own)))
                }
                Err(Fault::ServerLeft { .. }) => {
                    let own_bytes = part_bytes(&record.stripe, place, record.bytes);
                    Ok(Some(Unprotected { own_bytes, ..Unprotected::default() }))
                }
                Err(fault) => Err(fault),
            }
        });
        let known = join_all(asked).await.into_iter().collect::<Result<Option<Vec<_>>, Fault>>()?;
        Ok(known.map(|known| ProtectedBytes::of_file(record.bytes, &known)))
    }

    /// Returns the files of which something at a server is not protected now; `None` while the
    /// server does not know what it lacks, and if there are too many.
    ///
    /// # Errors
    /// Faults of the server. [`Fault::BadRequest`] when it sends the files in another order.
    pub async fn unprotected_at(
        &self,
        server: ServerId,
    ) -> Result<Option<Vec<(FileId, Unprotected)>>, Fault> {
        let mut all: Vec<(FileId, Unprotected)> = Vec::new();
        let mut from = FileId(0);
        while all.len() < UNPROTECTED_MAX {
            let known = self.ask_for_unprotected(server, from, UNPROTECTED_AT_ONCE).await?;
            if !known.is_all_known {
                return Ok(None);
            }
            let last = known.files.last().map(|(file, _)| *file);
            for (file, unprotected) in known.files {
                if file < from {
                    let cause = format!("{server} reported unprotected files out of order");
                    return Err(Fault::BadRequest { cause });
                }
                from = FileId(file.0.saturating_add(1));
                all.push((file, unprotected));
            }
            if !known.more || last.is_none() {
                return Ok(Some(all));
            }
        }
        Ok(None)
    }

    async fn ask_for_unprotected(
        &self,
        server: ServerId,
        from: FileId,
        count: u32,
    ) -> Result<UnprotectedFiles, Fault> {
        match self.call(server, ServerRequest::Unprotected { from, count }).await? {
            Reply::Unprotected(files) => Ok(files),
            other => Err(unexpected(&other)),
        }
    }
}
