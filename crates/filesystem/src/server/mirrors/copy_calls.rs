//! Calls to the servers with the copies of this server's parts of files.
//!
//! Invariant: bytes on the way to copies are bounded.

use super::mirrored_file::MirroredFile;
use super::mirrors::Mirrors;
use super::partner::Partner;
use crate::signal::Signal;
use futures_util::future::try_join_all;
use std::cell::Cell;
use units::{ByteRange, DiskId, Run, ServerId};
use wire::{Fault, FileSize, LINE_BYTES_MAX, ObjectRequest, Reply};
use world::{Memory, Payload, World};

/// Bytes that may be on the way to copies at a time.
const IN_FLIGHT_BYTES_MAX: u64 = 16 * LINE_BYTES_MAX;

/// Bytes on the way to a copy. Given up when dropped.
pub(super) struct InFlight<'a>(&'a Cell<u64>, &'a Signal, u64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.update(|bytes| bytes - self.2);
        self.1.notify();
    }
}

impl<W: World> Mirrors<W> {
    /// Writes to the copy of a file what is being written here.
    pub(super) async fn write(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        offset: u64,
        payload: W::Payload,
    ) -> Result<(), Fault> {
        let range = ByteRange::new(offset, offset + payload.length());
        let is_needed = file.is_filling(disk);
        if !is_needed && file.is_behind() && !self.others.is_connected(file.copy_at()) {
            self.note_difference(file, disk, range);
            return Ok(());
        }
        let pieces = pieces_of(range);
        let writes = pieces.map(async |piece| {
            let bytes = piece.length();
            let _in_flight = self.take_in_flight(bytes).await;
            let body = payload.slice(piece.start - offset, bytes);
            let write = ObjectRequest::Write { file: file.file, disk, offset: piece.start };
            self.call(file, file.copy_at(), write, Some(body)).await
        });
        let written = try_join_all(writes).await.map(|_| ());
        self.unless_behind((file, disk, range), &file.partners[0], written)
    }

    /// Frees, of the copy, what is beyond the first `length` bytes of an object, which is being cut
    /// here.
    pub(super) async fn cut(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        length: u64,
    ) -> Result<(), Fault> {
        let cut = ObjectRequest::Truncate { file: file.file, disk, length };
        let cut = self.call(file, file.copy_at(), cut, None).await.map(|_| ());
        let beyond = ByteRange::new(length, u64::MAX);
        self.unless_behind((file, disk, beyond), &file.partners[0], cut)
    }

    /// Reads a range of an object from the copy of a file, for this server, which lacks it.
    ///
    /// # Errors
    /// Fails when the copy may lack changes, and when it cannot be read.
    pub(crate) async fn read(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        if file.rows.is_some() {
            return self.read_rows(file, disk, range).await;
        }
        let is_current = async || match file.is_filling(disk) {
            // For such a disk the copy is the file.
            true => Ok(()),
            false => self.check_current(file, range).await,
        };
        is_current().await?;
        let pieces = pieces_of(range).map(async |piece| {
            let (offset, length) = (piece.start, piece.length());
            let _in_flight = self.take_in_flight(length).await;
            let read = ObjectRequest::Read { file: file.file, disk, offset, length };
            let (_, body) = self.call(file, file.copy_at(), read, None).await?;
            let none = || Fault::BadRequest { cause: "a copy was answered without bytes".into() };
            let body = body.filter(|body| body.length() == length).ok_or_else(none)?;
            Ok::<_, Fault>((piece, body))
        });
        let pieces = try_join_all(pieces).await?;
        // While it was read, a connection may have ended, and its server lost what was not stored.
        is_current().await?;
        let memory = self.world.memory(range.length());
        for (piece, body) in pieces {
            memory.scatter(&[Run::contiguous(piece.start - range.start, piece.length())], &body);
        }
        Ok(memory.freeze())
    }

    /// True if a range of the copy of a file is as here, where it is `own`. Damage is a difference.
    pub(crate) async fn is_equal(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
        own: &W::Payload,
    ) -> Result<bool, Fault> {
        if let Some(rows) = &file.rows {
            return self.is_parity_equal(file, rows, (disk, range), own).await;
        }
        let (offset, length) = (range.start, range.length());
        let digest = ObjectRequest::Digest { file: file.file, disk, offset, length };
        match self.ask(file, file.copy_at(), digest, None).await {
            Ok(Reply::Digests(found)) => Ok(found == [own.digest()]),
            Ok(other) => Err(unexpected(&other)),
            Err(Fault::DiskFailed { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Writes bytes of the copy of a file again, which do not change meanwhile, from a whole piece
    /// on. If they are the last of the object, a damaged last piece of the copy is freed first.
    pub(crate) async fn write_again(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        (offset, is_last): (u64, bool),
        own: W::Payload,
    ) -> Result<(), Fault> {
        let number = file.file;
        let write = ObjectRequest::Write { file: number, disk, offset };
        match self.ask(file, file.copy_at(), write.clone(), Some(own.clone())).await {
            Err(Fault::DiskFailed { .. }) if is_last => {
                let cut = ObjectRequest::Truncate { file: number, disk, length: offset };
                self.ask(file, file.copy_at(), cut, None).await?;
                self.ask(file, file.copy_at(), write, Some(own)).await.map(|_| ())
            }
            written => written.map(|_| ()),
        }
    }

    /// As [`write_again`](Self::write_again), onto stable storage: after a loss of power, bytes
    /// that are not stored would be accepted as they are.
    pub(crate) async fn write_again_stored(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        place: (u64, bool),
        own: W::Payload,
    ) -> Result<(), Fault> {
        if let Some(rows) = &file.rows {
            let range = ByteRange::new(place.0, place.0 + own.length());
            return self.encode_again(file, rows, (disk, range)).await;
        }
        self.write_again(file, disk, place, own).await?;
        let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
        self.ask(file, file.copy_at(), sync, None).await.map(|_| ())
    }

    /// Returns the length of an object of the copy of a file, if there is one.
    pub(crate) async fn length(
        &self,
        file: &MirroredFile,
        disk: DiskId,
    ) -> Result<Option<u64>, Fault> {
        let lost =
            || Fault::BadRequest { cause: format!("the copy at {} is lost", file.copy_at()) };
        self.length_unless_lost(file, disk).await?.ok_or_else(lost)
    }

    /// As [`length`](Self::length); `None` if the copy is lost.
    pub(crate) async fn length_unless_lost(
        &self,
        file: &MirroredFile,
        disk: DiskId,
    ) -> Result<Option<Option<u64>>, Fault> {
        if let Some(rows) = &file.rows {
            // All that is known of it is how long the file is.
            let reached = self.reached_by_others(file).await?.max(file.cut_to());
            let length = rows.stripe().object_bytes(file.place, disk, reached.bytes);
            return Ok(Some((length > 0).then_some(length)));
        }
        let length = ObjectRequest::Length { file: file.file, disk };
        match self.call(file, file.copy_at(), length, None).await? {
            (Reply::Length { bytes }, _) => Ok(Some(bytes)),
            (Reply::LostCopy, _) => Ok(None),
            (other, _) => Err(unexpected(&other)),
        }
    }

    pub(super) async fn keep_size_of_copy(
        &self,
        file: &MirroredFile,
        partner: &Partner,
        size: FileSize,
    ) -> Result<(), Fault> {
        let keep = ObjectRequest::KeepSize { file: file.file, size };
        self.ask(file, partner.server, keep, None).await.map(|_| ())
    }

    /// Returns the size that is kept with the copy of a file, or the least one.
    pub(crate) async fn size_of_copy(&self, file: &MirroredFile) -> Result<FileSize, Fault> {
        if file.rows.is_some() {
            return self.reached_by_others(file).await;
        }
        let kept = ObjectRequest::KeptSize { file: file.file };
        match self.ask(file, file.copy_at(), kept, None).await? {
            Reply::Size(size) => Ok(size),
            // What is known elsewhere counts.
            Reply::LostCopy => Ok(FileSize::default()),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until the copy of a file, which disks here are filled from, is on stable storage with
    /// the first `changes` changes.
    pub(crate) async fn store_source(
        &self,
        file: &MirroredFile,
        changes: Option<u64>,
    ) -> Result<(), Fault> {
        let stored = file.partners.iter().map(async |partner| {
            let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
            self.ask(file, partner.server, sync, None).await
        });
        try_join_all(stored).await?;
        file.stored_at_copy(changes);
        Ok(())
    }

    /// Calls a server with a copy of a file, or a piece of its rows; returns the body of the reply
    /// too.
    pub(super) async fn call(
        &self,
        file: &MirroredFile,
        server: ServerId,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        if file.has_filling() {
            // The copy is all that there is: its server may be there again.
            self.others.reach_again(server).await?;
        }
        self.others.call(server, request, body).await
    }

    /// Calls a server with a copy of a file.
    pub(super) async fn ask(
        &self,
        file: &MirroredFile,
        server: ServerId,
        request: ObjectRequest,
        body: Option<W::Payload>,
    ) -> Result<Reply, Fault> {
        let _in_flight = self.take_in_flight(body.as_ref().map_or(0, Payload::length)).await;
        self.call(file, server, request, body).await.map(|(reply, _)| reply)
    }

    /// Waits until so many bytes may be on the way to copies. One piece always may.
    pub(super) async fn take_in_flight(&self, bytes: u64) -> InFlight<'_> {
        let has_room = || {
            let before = self.in_flight_bytes.get();
            (before == 0 || before + bytes <= IN_FLIGHT_BYTES_MAX)
                .then(|| self.in_flight_bytes.set(before + bytes))
        };
        self.arrived.until(has_room).await;
        InFlight(&self.in_flight_bytes, &self.arrived, bytes)
    }
}

/// Cuts a range into pieces that fit a message.
pub(super) fn pieces_of(range: ByteRange) -> impl Iterator<Item = ByteRange> {
    let starts = (range.start..range.end).step_by(LINE_BYTES_MAX as usize);
    starts.map(move |start| ByteRange::new(start, range.end.min(start + LINE_BYTES_MAX)))
}

pub(crate) fn unexpected(reply: &Reply) -> Fault {
    Fault::BadRequest { cause: format!("another server answered {reply:?}") }
}
