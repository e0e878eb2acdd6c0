//! Copies that this server has of what other servers hold of mirrored files.
//!
//! Invariant: a copy is changed only for the server whose part it is a copy of, over its latest
//! connection.

use crate::scale::rare;
use crate::server::answer::Answer;
use crate::server::faults::{disk_fault, disk_of};
use crate::server::state::Server;
use futures_util::future::try_join_all;
use policy::copy_object;
use std::convert::Infallible;
use std::rc::Rc;
use units::{DiskId, FileId, PeerId};
use wire::{Fault, FileRecord, FileSize, LINE_BYTES_MAX, ObjectRequest, Reply, RequestId};
use world::{Disk, DiskError, Payload, World};

impl<W: World> Server<W> {
    /// Answers a request of another server for a copy.
    pub(crate) async fn answer_object(
        self: Rc<Self>,
        call: (PeerId, RequestId),
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<(), Infallible> {
        use ObjectRequest::{Combine, Encode, Renewing, Sync, Truncate, Write};
        if matches!(
            request,
            Combine { .. }
                | Encode(_)
                | Renewing { .. }
                | Sync { .. }
                | Truncate { .. }
                | Write { .. }
        ) {
            self.clients().note_change_of_copy(self.world().now());
        }
        self.answer(call, None, rare(self.serve_object(call.0, request, body))).await
    }

    async fn serve_object(
        self: &Rc<Self>,
        from: PeerId,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<Answer<W::Payload>, Fault> {
        let bad = |cause: &str| Fault::BadRequest { cause: cause.to_owned() };
        if let ObjectRequest::Hello { server } = request {
            if let Some(earlier) = self.clients().note_part_owner(from, server) {
                self.world().disconnect(earlier);
                self.forget(earlier);
            }
            return Ok(Reply::Done.into());
        }
        if !self.clients().is_part_owner(from) {
            return Err(bad("a server must say hello before it uses copies"));
        }
        self.lacking().until_listed().await;
        match request {
            request @ (ObjectRequest::Hello { .. }
            | ObjectRequest::Renewing { .. }
            | ObjectRequest::Renewed { .. }
            | ObjectRequest::LostCopy { .. }
            | ObjectRequest::KeepSize { .. }
            | ObjectRequest::KeptSize { .. }) => self.serve_notice(from, request).await,
            request @ (ObjectRequest::Combine { .. }
            | ObjectRequest::Gather(_)
            | ObjectRequest::Encode(_)
            | ObjectRequest::Reach { .. }
            | ObjectRequest::Reached { .. }
            | ObjectRequest::RowDigests(_)
            | ObjectRequest::CutParity { .. }) => self.serve_parity(request, body).await,
            ObjectRequest::Write { file, disk, offset } => {
                self.write_copy(from, file, (disk, offset), body).await
            }
            ObjectRequest::Read { file, disk, offset, length } => {
                self.lacking().check_copy(file, from, true)?;
                let data = self.read_copy(file, disk, (offset, length)).await?;
                Ok(Answer { reply: Reply::Done, data: Some((data, None)), permit: None })
            }
            ObjectRequest::Digest { file, disk, offset, length } => {
                self.lacking().check_copy(file, from, false)?;
                let data = self.read_copy(file, disk, (offset, length)).await?;
                Ok(Reply::Digests(vec![data.digest()]).into())
            }
            ObjectRequest::Sync { file, disks } => {
                // Parity that is lacking is made anew without the sender.
                if self.lacking().parity_record(file).is_none() {
                    self.lacking().check_copy(file, from, false)?;
                }
                self.mirrors().keep_size_of_parity(file).await?;
                self.sync_copy(file, disks).await
            }
            ObjectRequest::Truncate { file, disk, length } => {
                self.check_not_read_only()?;
                self.lacking().check_copy(file, from, false)?;
                self.cut_copy(file, disk, length).await
            }
            ObjectRequest::Length { file, disk } => {
                self.length_of_copy(from, file, disk).await.map(Answer::from)
            }
        }
    }

    async fn length_of_copy(
        &self,
        from: PeerId,
        file: FileId,
        disk: DiskId,
    ) -> Result<Reply, Fault> {
        let is_parity = self.lacking().parity_record(file).is_some();
        if !is_parity && self.lacking().check_copy(file, from, false).is_err() {
            return Ok(Reply::LostCopy);
        }
        self.mirrors().write_pending_of(file).await?;
        let metadata = self.disk(disk)?.metadata(copy_object(file)).await;
        let metadata = metadata.map_err(|error| disk_fault(self.config().id, &error))?;
        Ok(Reply::Length { bytes: metadata.map(|metadata| metadata.length) })
    }

    async fn write_copy(
        &self,
        from: PeerId,
        file: FileId,
        (disk, offset): (DiskId, u64),
        body: Option<W::Payload>,
    ) -> Result<Answer<W::Payload>, Fault> {
        self.check_not_read_only()?;
        self.check_not_dropped(file)?;
        let is_lost = self.lacking().check_copy(file, from, false)?;
        let none = || Fault::BadRequest { cause: "a write of a copy has no bytes".to_owned() };
        let body = body.filter(|body| body.length() <= LINE_BYTES_MAX).ok_or_else(none)?;
        let bytes = body.length();
        let written = self.disk(disk)?.write(copy_object(file), offset, body).await;
        written.map_err(|error| disk_fault(self.config().id, &error))?;
        if is_lost {
            self.lacking().filled(file, bytes).await;
        }
        Ok(Reply::Done.into())
    }

    /// Serves a request that moves no data of a copy.
    async fn serve_notice(
        self: &Rc<Self>,
        from: PeerId,
        request: ObjectRequest,
    ) -> Result<Answer<W::Payload>, Fault> {
        match request {
            ObjectRequest::Renewing { file } => Ok(match self.lacking().renews(file, from) {
                true => Reply::LostCopy.into(),
                false => Reply::Done.into(),
            }),
            ObjectRequest::Renewed { file } => {
                if self.lacking().check_copy(file, from, false)? {
                    self.lacking().whole(file, |left| left.copy.clear()).await?;
                }
                Ok(Reply::Done.into())
            }
            ObjectRequest::LostCopy { record } => {
                self.check_not_read_only()?;
                self.check_record(&record)?;
                self.check_not_dropped(record.file)?;
                if !self.lacking().to_fill(record.file).is_empty() {
                    // If that cannot be, it is lost too, which is not known yet.
                    let cause = "the part is to be filled from that copy".to_owned();
                    return Err(Fault::BadRequest { cause });
                }
                let mirrored = self.mirrors().of(record.file, || *record);
                let mirrored = mirrored.ok_or_else(|| Fault::BadRequest {
                    cause: "no part of that file is here".to_owned(),
                })?;
                // It may have been told before.
                if !mirrored.is_renewed_whole() {
                    self.mirrors().lose_copy(&mirrored).await?;
                }
                Ok(Reply::Done.into())
            }
            ObjectRequest::KeepSize { file, size } => {
                self.check_not_read_only()?;
                self.check_not_dropped(file)?;
                size.validate()?;
                self.lacking().check_copy(file, from, false)?;
                self.kept_sizes().keep(copy_object(file), size).await?;
                Ok(Reply::Done.into())
            }
            ObjectRequest::KeptSize { file } if self.lacking().is_copy_lost(file) => {
                Ok(Reply::LostCopy.into())
            }
            ObjectRequest::KeptSize { file } => {
                Ok(Reply::Size(self.kept_sizes().of(copy_object(file)).await?).into())
            }
            other => Err(Fault::BadRequest { cause: format!("{other:?} is no notice") }),
        }
    }

    /// Serves a request for parity, or for a piece of a row.
    async fn serve_parity(
        self: &Rc<Self>,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<Answer<W::Payload>, Fault> {
        let checked = |record: &FileRecord| {
            self.check_record(record)?;
            self.check_not_dropped(record.file)
        };
        match request {
            ObjectRequest::Combine { file, disk, offset, size } => {
                self.check_not_read_only()?;
                self.check_not_dropped(file)?;
                let body = body.filter(|body| body.length() <= LINE_BYTES_MAX);
                let none = || Fault::BadRequest { cause: "a change has no bytes".to_owned() };
                let body = body.ok_or_else(none)?;
                self.mirrors().combine(file, (disk, offset), size, body).await?;
                Ok(Reply::Done.into())
            }
            ObjectRequest::Gather(row) => {
                checked(&row.record)?;
                let data = self.mirrors().take_part(row, None, ObjectRequest::Gather).await?;
                let data = data.map(|data| (data, None));
                Ok(Answer { reply: Reply::Done, data, permit: None })
            }
            ObjectRequest::Encode(row) => {
                self.check_not_read_only()?;
                checked(&row.record)?;
                self.mirrors().take_part(row, body, ObjectRequest::Encode).await?;
                Ok(Reply::Done.into())
            }
            ObjectRequest::RowDigests(row) => {
                checked(&row.record)?;
                Ok(Reply::Digests(self.mirrors().row_digests(row).await?).into())
            }
            ObjectRequest::Reach { record } => {
                checked(&record)?;
                let own = match self.files().find(record.file)? {
                    // What is beyond its end is about to be freed.
                    Some(open) if !open.tail_is_clean.get() => {
                        let known = self.mirrors().size_of_parity(record.file).await?;
                        return Ok(Reply::Size(known.max(open.size())).into());
                    }
                    Some(open) => open.size(),
                    None => {
                        let known = FileSize { cuts: record.cuts, bytes: record.bytes };
                        known.max(self.kept_sizes().of(record.file).await?)
                    }
                };
                Ok(Reply::Size(self.mirrors().reach(&record, own).await?).into())
            }
            ObjectRequest::Reached { file, size } => {
                self.check_not_read_only()?;
                self.check_not_dropped(file)?;
                size.validate()?;
                self.mirrors().learn_reach(file, size).await?;
                Ok(Reply::Done.into())
            }
            ObjectRequest::CutParity { record, size } => {
                self.check_not_read_only()?;
                checked(&record)?;
                let beyond = self.mirrors().cut_parity(*record, size).await?;
                Ok(Reply::Length { bytes: Some(beyond) }.into())
            }
            other => Err(Fault::BadRequest { cause: format!("{other:?} is not for parity") }),
        }
    }

    async fn sync_copy(&self, file: FileId, disks: u32) -> Result<Answer<W::Payload>, Fault> {
        self.mirrors().write_pending_of(file).await?;
        let disks = (0..disks.min(self.world().disks().len() as u32)).map(DiskId);
        let synced = disks.map(async |disk| {
            let synced = self.disk(disk)?.sync(copy_object(file)).await;
            synced.map_err(|error| disk_fault(self.config().id, &error))
        });
        try_join_all(synced).await?;
        Ok(Reply::Done.into())
    }

    async fn cut_copy(
        &self,
        file: FileId,
        disk: DiskId,
        length: u64,
    ) -> Result<Answer<W::Payload>, Fault> {
        let failed = |error| disk_fault(self.config().id, &error);
        let (disk, object) = (self.disk(disk)?, copy_object(file));
        match disk.truncate(object, length).await {
            // What is missing cannot be cut.
            Err(DiskError::Corrupt { .. }) if length == 0 => {
                disk.remove(object).await.map_err(failed)?;
            }
            cut => cut.map_err(failed)?,
        }
        disk.sync(object).await.map_err(failed)?;
        Ok(Reply::Done.into())
    }

    async fn read_copy(
        &self,
        file: FileId,
        disk: DiskId,
        (offset, length): (u64, u64),
    ) -> Result<W::Payload, Fault> {
        if length > LINE_BYTES_MAX {
            let cause = format!("a copy is read by {LINE_BYTES_MAX} bytes, not {length}");
            return Err(Fault::BadRequest { cause });
        }
        let read = self.disk(disk)?.read(copy_object(file), offset, length).await;
        read.map_err(|error| disk_fault(self.config().id, &error))
    }

    fn check_not_dropped(&self, file: FileId) -> Result<(), Fault> {
        match self.files().is_dropped(file) {
            true => Err(Fault::NoSuchFile { name: file.to_string() }),
            false => Ok(()),
        }
    }

    fn disk(&self, disk: DiskId) -> Result<&W::Disk, Fault> {
        disk_of(self.world(), disk)
    }
}
