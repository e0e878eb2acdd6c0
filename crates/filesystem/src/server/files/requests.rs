//! Requests for files at this server.

use crate::scale::rare;
use crate::server::answer::Answer;
use crate::server::catalogue;
use crate::server::state::Server;
use crate::server::transfers::answer_pools::{LARGE_ANSWER_BYTES, Source};
use policy::{Protection, copy_object};
use std::convert::Infallible;
use std::rc::Rc;
use units::{FileId, PeerId};
use wire::{Fault, FileRecord, FileRequest, FileSize, Reply, RequestId};
use world::World;

/// Maximum number of sizes in one answer.
const SIZES_PER_ANSWER_MAX: usize = 1024;

impl<W: World> Server<W> {
    /// Answers a request for a file.
    pub(crate) async fn answer_file(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: FileRequest,
    ) -> Result<(), Infallible> {
        // Before there is room for the answer: others wait for that.
        if !self.leases().is_empty() || !self.readers().is_empty() {
            rare(self.recall_for(call.0, &request)).await;
        }
        let is_list = matches!(request, FileRequest::OpenSizes { .. });
        let large = is_list.then_some((Source::Memory, LARGE_ANSWER_BYTES));
        self.answer(call, large, rare(self.serve_file(call.0, request))).await
    }

    async fn serve_file(
        self: &Rc<Self>,
        from: PeerId,
        request: FileRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        use FileRequest::{Drop, DropCopy, KeepSize, Protect, SetModified};
        let is_change = matches!(request, Drop { .. } | KeepSize { .. } | SetModified { .. });
        if is_change || matches!(request, Protect(_) | DropCopy { .. }) {
            self.check_not_read_only()?;
        }
        match request {
            FileRequest::Open(record) => self.open(from, record).await,
            FileRequest::Close { file, recorded } => self.close(from, file, recorded).await,
            FileRequest::Resize { file, size } => self.resize(file, size).await,
            FileRequest::KeepSize { file } => self.keep_size(file).await,
            FileRequest::SetModified { file, modified } => {
                self.files().get(file)?.set_modified(modified);
                self.summaries().forget(file);
                Ok(Reply::Done.into())
            }
            FileRequest::Measure(record) => self.size_of(record).await,
            FileRequest::OpenSizes { after } => {
                let (sizes, more) = self.files().sizes(after, SIZES_PER_ANSWER_MAX);
                Ok(Reply::Sizes { sizes, more }.into())
            }
            FileRequest::Buffers { file } => {
                self.files().get(file)?;
                Ok(Reply::Buffers(self.cache().statistics(file)).into())
            }
            FileRequest::Drop { file, protection } => match self.files().lost_name(file) {
                true => Ok(Reply::InUse.into()),
                false => self.drop_file(file, protection).await,
            },
            FileRequest::Lease { file, clock, since } => self.lease(from, file, clock, since).await,
            FileRequest::Scrub(request) => self.scrub(*request).await,
            FileRequest::Protect(record) => self.protect(*record).await,
            FileRequest::DropCopy { file } => self.drop_copy(file).await,
            FileRequest::NumberInPlace { path, inode, block_bytes } => {
                self.number_in_place(from, &path, inode, block_bytes).await
            }
            FileRequest::WriteGathered(_) => {
                let cause = "gathered writes came on the way of other requests".to_owned();
                Err(Fault::BadRequest { cause })
            }
        }
    }

    /// Has clients flush what they have gathered, before a request that must see it.
    async fn recall_for(&self, from: PeerId, request: &FileRequest) {
        match request {
            FileRequest::Open(record) => {
                self.recall_leases(record.file, None).await;
                // An older server of the file may not know of a cut.
                if self.files().get(record.file).is_ok_and(|it| record.cuts > it.size().cuts) {
                    self.exclude_readers(record.file, None).await;
                }
            }
            FileRequest::Measure(record) => self.recall_leases(record.file, None).await,
            FileRequest::OpenSizes { .. } => self.recall_all_leases(None).await,
            FileRequest::SetModified { file, .. } => self.recall_leases(*file, Some(from)).await,
            // A question, or a cut. A client that flushes makes the file longer first, and waits
            // for no other.
            FileRequest::Resize { file, size } => {
                let known = self.files().get(*file).map(|known| known.size()).unwrap_or_default();
                if *size == FileSize::default() || size.cuts > known.cuts {
                    self.recall_leases(*file, None).await;
                }
                if size.cuts > known.cuts {
                    self.exclude_readers(*file, None).await;
                }
            }
            FileRequest::Close { .. }
            | FileRequest::KeepSize { .. }
            | FileRequest::Buffers { .. }
            | FileRequest::Drop { .. }
            | FileRequest::Lease { .. }
            | FileRequest::Scrub(_)
            | FileRequest::Protect(_)
            | FileRequest::DropCopy { .. }
            | FileRequest::NumberInPlace { .. }
            | FileRequest::WriteGathered(_) => {}
        }
    }

    async fn open(
        self: &Rc<Self>,
        from: PeerId,
        record: FileRecord,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_record(&record)?;
        self.adopt(&record, from).await?;
        let record = self.with_kept_size(record).await?;
        let (file, buffering, size) = (record.file, record.buffering, record.size());
        {
            let session = self.clients().session(from);
            let gone = || Fault::BadRequest { cause: "the client has no session".to_owned() };
            let is_in_place = record.stripe.inode().is_some();
            if self.files().open(session.ok_or_else(gone)?.files(), record)? {
                self.write_failures().opened(file, from);
            }
            if is_in_place {
                // Its data goes from this server with the last close.
                let _ = self.files().lost_name(file);
                self.in_place().opened(file, from);
            }
        }
        self.cache().declare(file, buffering);
        let measured = self.measure(&self.files().get(file)?).await;
        // The client may have closed it meanwhile.
        self.forget_unused(file);
        measured?;
        self.resize(file, size).await
    }

    async fn close(
        self: &Rc<Self>,
        from: PeerId,
        file: FileId,
        recorded: FileSize,
    ) -> Result<Answer<W::Payload>, Fault> {
        let known = self.files().get(file)?;
        self.leases().end(file, from);
        self.readers().end(file, from);
        self.kept_sizes().recorded(file, recorded);
        self.files().closing(&known, recorded);
        let session = self.clients().session(from);
        let is_last = session.is_some_and(|it| self.files().close(it.files(), file));
        if known.stripe.inode().is_some() {
            return self.close_in_place(from, known, is_last).await.map(|()| Reply::Done.into());
        }
        if is_last && self.closed(file) {
            return Ok(Reply::Nameless.into());
        }
        let modified = known.modified_since_open();
        Ok(modified.map_or(Reply::Done, |at| Reply::Modified { at }).into())
    }

    /// Refuses a record of a file that cannot be on the servers and disks that there are.
    pub(crate) fn check_record(&self, record: &FileRecord) -> Result<(), Fault> {
        catalogue::check_record(record, self.config().servers)?;
        if record.protection != Protection::None && !self.others().are_known() {
            let cause = "these servers do not know one another, so no file is mirrored".to_owned();
            return Err(Fault::BadRequest { cause });
        }
        let (wanted, disks) = (record.stripe.disks_per_server, self.world().disks().len());
        if wanted as usize > disks {
            let cause = format!(
                "the file is on {wanted} disks of each server, and this server has {disks}"
            );
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }

    /// Frees all that the server holds of a file, even one in use. Requests for it fail from now
    /// on, and collectives on it end first.
    pub(crate) async fn drop_file(
        &self,
        file: FileId,
        protection: Protection,
    ) -> Result<Answer<W::Payload>, Fault> {
        let protection = self.files().protections().of(file).unwrap_or(protection);
        let known = self.files().forget(file);
        self.kept_sizes().forget(file);
        self.kept_sizes().forget(copy_object(file));
        self.client_caches().files.forget(file);
        self.leases().forget(file);
        self.summaries().forget(file);
        self.readers().forget(file);
        let name = known.as_ref().map_or_else(|| file.to_string(), |known| known.name().clone());
        self.active_transfers().abort_on(file, &Fault::NoSuchFile { name });
        self.active_transfers().until_aborted_ended(file).await;
        if let Some(known) = known {
            // The client has got its faults at its own flush.
            let _ = self.settle_in_place(&known).await;
        }
        self.cache().discard(file).await;
        self.mirrors().forget(file);
        let removed = match self.in_place().has(file) {
            true => {
                self.in_place().forget(file);
                Ok(())
            }
            false => self.disks().remove(file, protection).await,
        };
        // If that fails, an obsolete record stays.
        let _ = self.kept_sizes().settle().await;
        let _ = self.lacking().settle().await;
        let _ = self.files().protections().settle().await;
        removed.map(|()| Reply::Done.into())
    }
}
