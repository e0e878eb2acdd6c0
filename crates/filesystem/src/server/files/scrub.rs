//! Scrubbing: what a server has of a file is read, and compared with its copy.
//!
//! Invariant: a range of a mirrored file does not change while it is compared.

use super::file_disks::FileDisks;
use super::open_file::OpenFile;
use crate::server::answer::Answer;
use crate::server::mirrors::{MirroredFile, PIECE_BYTES};
use crate::server::state::Server;
use std::rc::Rc;
use units::{ByteRange, DiskId, MIB};
use wire::{Fault, Reply, ScrubRequest, Scrubbed};
use world::{Disk, DiskError, World};

/// Bytes that one request reads at most.
const REQUEST_BYTES_MAX: u64 = 64 * MIB;

/// Bytes that are read and compared at a time.
const STEP_BYTES: u64 = MIB;

impl<W: World> Server<W> {
    /// Scrubs a part of a file, open or not.
    pub(crate) async fn scrub(&self, request: ScrubRequest) -> Result<Answer<W::Payload>, Fault> {
        let ScrubRequest { record, disk, offset } = request;
        let record = self.files().as_protected(record);
        self.check_record(&record)?;
        let file = match self.files().find(record.file)? {
            Some(open) => open,
            None => Rc::new(OpenFile::new(record)),
        };
        let scrubbed = self.disks().scrub(&file, disk, offset).await?;
        Ok(Reply::Scrubbed(scrubbed).into())
    }
}

impl<W: World> FileDisks<W> {
    /// Scrubs what a disk has of a file, from `offset` on.
    async fn scrub(&self, file: &OpenFile, number: DiskId, offset: u64) -> Result<Scrubbed, Fault> {
        if let Some(found) = self.scrub_lacking(file, number).await? {
            return Ok(found);
        }
        let metadata = self.disk(number)?.metadata(file.file).await;
        let metadata = metadata.map_err(|error| self.fault(file, number, &error))?;
        let length = metadata.map_or(0, |metadata| metadata.length);
        let end = length.min(offset.saturating_add(REQUEST_BYTES_MAX));
        let next = (end < length).then_some(end);
        let mut found = Scrubbed { next, ..Scrubbed::default() };
        let mirrored = self.mirrored(file);
        for start in (offset..end).step_by(STEP_BYTES as usize) {
            let range = ByteRange::new(start, end.min(start + STEP_BYTES));
            found.bytes += range.length();
            let is_sound = match &mirrored {
                None => self.is_sound(file, number, range).await?,
                Some(mirrored) => self.compare(file, (number, mirrored), range, &mut found).await?,
            };
            if !is_sound {
                self.repair(file, number, range, &mut found).await?;
            }
        }
        Ok(found)
    }

    /// Scrubs what a disk lacks that took the place of a lost one; `None` if it lacks nothing.
    async fn scrub_lacking(
        &self,
        file: &OpenFile,
        number: DiskId,
    ) -> Result<Option<Scrubbed>, Fault> {
        self.lacking().until_listed().await;
        if self.lacking().is_lost(file.file, number) {
            let place = file.place_of(self.server());
            let bytes = place.map_or(0, |it| file.stripe.object_bytes(it, number, file.bytes()));
            // Each block is a range of the file.
            let blocks = (0..bytes).step_by(file.stripe.block_bytes as usize);
            let ranges = blocks.map(|start| ByteRange::new(start, bytes));
            let damaged = ranges.map(|range| file_range(file, self, number, range)).collect();
            return Ok(Some(Scrubbed { damaged, ..Scrubbed::default() }));
        }
        let Some(mirrored) = self.filling(file, number) else { return Ok(None) };
        let behind = self.mirrors().length_unless_lost(&mirrored, number).await?;
        let behind = behind.flatten().unwrap_or(0);
        Ok(Some(Scrubbed { behind, ..Scrubbed::default() }))
    }

    /// True if a range of an object has no damage.
    async fn is_sound(
        &self,
        file: &OpenFile,
        number: DiskId,
        range: ByteRange,
    ) -> Result<bool, Fault> {
        match self.disk(number)?.read(file.file, range.start, range.length()).await {
            Ok(_) => Ok(true),
            Err(DiskError::Corrupt { .. }) => Ok(false),
            Err(error) => Err(self.fault(file, number, &error)),
        }
    }

    /// Compares a range with its copy, or with its parity, which is written again if it differs.
    /// False if the range itself is damaged.
    async fn compare(
        &self,
        file: &OpenFile,
        (number, mirrored): (DiskId, &MirroredFile),
        range: ByteRange,
        found: &mut Scrubbed,
    ) -> Result<bool, Fault> {
        // To the end: what is written again may be the last of the object.
        let _locked = mirrored.lock(number, ByteRange::new(range.start, u64::MAX)).await;
        let metadata = self.disk(number)?.metadata(file.file).await;
        let metadata = metadata.map_err(|error| self.fault(file, number, &error))?;
        // It may have become shorter, or longer.
        let length = metadata.map_or(0, |metadata| metadata.length);
        if length <= range.start {
            return Ok(true);
        }
        let range = ByteRange::new(range.start, range.end.min(length));
        let is_last = range.end == length;
        let own = self.disk(number)?.read(file.file, range.start, range.length()).await;
        let own = match own {
            Ok(own) => own,
            Err(DiskError::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(self.fault(file, number, &error)),
        };
        if mirrored.is_behind() {
            found.behind += range.length();
            return Ok(true);
        }
        let is_equal = match self.mirrors().is_equal(mirrored, number, range, &own).await {
            // The copy is lost, and this server is about to be told.
            Err(Fault::BadRequest { .. }) => {
                found.behind += range.length();
                return Ok(true);
            }
            is_equal => is_equal?,
        };
        if !is_equal {
            let written = match self.is_read_only() {
                true => Err(Fault::ReadOnly),
                false => {
                    let place = (range.start, is_last);
                    self.mirrors().write_again_stored(mirrored, number, place, own).await
                }
            };
            match written {
                Ok(()) => found.repaired_copies += 1,
                Err(_) => found.damaged_copies.push(file_range(file, self, number, range)),
            }
        }
        Ok(true)
    }

    /// Repairs the damaged pieces of a range, as far as there is a copy.
    async fn repair(
        &self,
        file: &OpenFile,
        number: DiskId,
        range: ByteRange,
        found: &mut Scrubbed,
    ) -> Result<(), Fault> {
        for start in (range.start..range.end).step_by(PIECE_BYTES as usize) {
            let piece = ByteRange::new(start, range.end.min(start + PIECE_BYTES));
            if self.is_sound(file, number, piece).await? {
                continue;
            }
            let read = self.read(file, number, piece.start, piece.length()).await;
            let is_repaired = read.is_ok() && self.is_sound(file, number, piece).await?;
            match is_repaired {
                true => found.repaired += 1,
                false => found.damaged.push(file_range(file, self, number, piece)),
            }
        }
        Ok(())
    }
}

/// Returns first byte and number of bytes, in the file, of the beginning of a range of an object.
fn file_range<W: World>(
    file: &OpenFile,
    disks: &FileDisks<W>,
    number: DiskId,
    range: ByteRange,
) -> (u64, u64) {
    let (disk, damage) = (String::new(), world::Damage::Mismatch);
    let (object, offset, length) = (file.file, range.start, range.length());
    let error = DiskError::Corrupt { disk, object, offset, length, damage };
    match disks.fault(file, number, &error) {
        Fault::Corrupt { offset, length, .. } => (offset, length),
        _ => (range.start, range.length()),
    }
}
