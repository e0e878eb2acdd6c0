//! Changes of this server's parts of files with parity: the servers with the parity get the
//! difference between what was there and what is.
//!
//! Invariant: a difference is taken, and sent, while the range does not change otherwise. So the
//! parity of a range is that of its pieces whenever no change of them is active.

use super::copy_calls::pieces_of;
use super::mirrored_file::MirroredFile;
use super::mirrors::Mirrors;
use super::partner::Partner;
use crate::server::faults::{disk_fault, disk_of};
use futures_util::future::try_join_all;
use policy::{RowPiece, Rows};
use tracing::debug;
use units::{ByteRange, DiskId};
use wire::{Fault, FileSize, ObjectRequest, Reply};
use world::{Disk, DiskError, Payload, World};

/// Difference between what a range has and what it will have; `None` if it is not known.
pub(super) type Difference<P> = Option<P>;

/// Disk, range of its object, and the size of the file, as far as a change there shows it.
pub(super) type Place = (DiskId, ByteRange, FileSize);

impl<W: World> Mirrors<W> {
    /// Returns the difference that bytes make to an object, of which nothing else changes there.
    ///
    /// # Errors
    /// Fails when a disk lacks what was there, and nobody else has it.
    pub(super) async fn change_of(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        (offset, payload): (u64, &W::Payload),
    ) -> Result<Difference<W::Payload>, Fault> {
        let range = ByteRange::new(offset, offset + payload.length());
        let before = self.before(file, disk, range).await?;
        Ok(match before {
            Before::Nothing => Some(payload.clone()),
            Before::Bytes(before) => Some(payload.xor(&before)),
            Before::Unknown => None,
        })
    }

    /// Changes the parity of a range by a difference. A server that does not make it is behind.
    pub(super) async fn change_parity(
        &self,
        file: &MirroredFile,
        (disk, range, size): Place,
        difference: Difference<W::Payload>,
    ) -> Result<(), Fault> {
        let Some(rows) = &file.rows else { return Ok(()) };
        let changed = row_pieces(rows, file, disk, range).map(async |piece| {
            let at = rows.parity(piece.row);
            let Some(partner) = file.partner_at(at.server) else { return Ok(()) };
            let changing = ByteRange::at(piece.offset, piece.within.length());
            let is_needed = file.is_filling(disk);
            let is_away = partner.is_behind() && !self.others.is_connected(partner.server);
            let Some(difference) = difference.as_ref().filter(|_| is_needed || !is_away) else {
                file.differ_from((disk, changing), partner);
                return Ok(());
            };
            let bytes = piece.within.length();
            let _in_flight = self.take_in_flight(bytes).await;
            let body = difference.slice(piece.offset - range.start, bytes);
            let offset = rows.object_range(at, piece.within).start;
            let combine = ObjectRequest::Combine { file: file.file, disk: at.disk, offset, size };
            let combined = self.call(file, partner.server, combine, Some(body)).await;
            let combined = combined.map(|_| ());
            self.unless_behind((file, disk, changing), partner, combined)
        });
        try_join_all(changed).await.map(|_| ())
    }

    /// Tells the servers with parity of a cut, and takes what it frees from the parity: of the last
    /// row that stays by its difference, of those behind it as a whole. `length` bytes of the
    /// object stay.
    pub(super) async fn cut_from_parity(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        (length, size): (u64, FileSize),
    ) -> Result<(), Fault> {
        let Some(rows) = &file.rows else { return Ok(()) };
        // How long a part was that is lacking is not known.
        let frees_some = file.is_filling(disk) || self.length_of_part(file, disk).await? > length;
        if !frees_some && !file.is_cut_news(size) {
            return Ok(());
        }
        let freed = ByteRange::new(length, u64::MAX);
        let cut = file.partners.iter().map(async |partner| {
            let beyond = self.cut_parity_at(file, partner, size).await;
            if frees_some && matches!(beyond, Ok(1..)) {
                // What was combined there since the cut may have had what is freed here only now.
                file.miss(partner, freed);
            }
            self.unless_behind((file, disk, freed), partner, beyond.map(|_| ()))
        });
        try_join_all(cut).await?;
        file.told_of_cut(size);
        let last = rows.last_row(file.place, disk, size.bytes);
        let Some(last) = last.filter(|last| last.end > length) else { return Ok(()) };
        let freed = ByteRange::new(last.start.max(length), last.end);
        let difference = match self.before(file, disk, freed).await? {
            Before::Nothing => return Ok(()),
            Before::Bytes(before) => Some(before),
            Before::Unknown => None,
        };
        self.change_parity(file, (disk, freed, FileSize::default()), difference).await
    }

    async fn cut_parity_at(
        &self,
        file: &MirroredFile,
        partner: &Partner,
        size: FileSize,
    ) -> Result<u64, Fault> {
        let record = Box::new(file.record.clone());
        let cut = ObjectRequest::CutParity { record, size };
        match self.ask(file, partner.server, cut, None).await? {
            Reply::Length { bytes } => Ok(bytes.unwrap_or(0)),
            other => Err(super::unexpected(&other)),
        }
    }

    /// Returns the length of an object.
    async fn length_of_part(&self, file: &MirroredFile, disk: DiskId) -> Result<u64, Fault> {
        let known = disk_of(&self.world, disk)?.metadata(file.file).await;
        let known = known.map_err(|error| disk_fault(self.own(), &error))?;
        Ok(known.map_or(0, |known| known.length))
    }

    /// Returns what a range of an object has, of which nothing changes.
    async fn before(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<Before<W::Payload>, Fault> {
        if file.lacks(disk, range.end) {
            return self.read_rows(file, disk, range).await.map(Before::Bytes);
        }
        let own = disk_of(&self.world, disk)?;
        let failed = |error: DiskError| disk_fault(self.own(), &error);
        let known = own.metadata(file.file).await.map_err(failed)?;
        if known.is_none_or(|known| known.length <= range.start) {
            return Ok(Before::Nothing);
        }
        let cause = match own.read(file.file, range.start, range.length()).await {
            Ok(before) => return Ok(Before::Bytes(before)),
            Err(error @ DiskError::Corrupt { .. }) => error,
            Err(error) => return Err(failed(error)),
        };
        match self.read_rows(file, disk, range).await {
            Ok(before) => Ok(Before::Bytes(before)),
            Err(fault) => {
                debug!(file = file.file.0, %cause, %fault, "what was there is not known");
                Ok(Before::Unknown)
            }
        }
    }
}

/// Content of a range before a change.
enum Before<P> {
    /// Zeros, since the object ends before it.
    Nothing,
    Bytes(P),
    Unknown,
}

/// Cuts a range of an object into pieces of rows that fit a message.
pub(super) fn row_pieces<'a>(
    rows: &'a Rows,
    file: &MirroredFile,
    disk: DiskId,
    range: ByteRange,
) -> impl Iterator<Item = RowPiece> + use<'a> {
    rows.pieces(file.place, disk, range).flat_map(cut_to_fit)
}

/// Cuts a piece of a row into such that fit a message.
pub(crate) fn cut_to_fit(piece: RowPiece) -> impl Iterator<Item = RowPiece> {
    pieces_of(piece.within).map(move |within| RowPiece {
        offset: piece.offset + (within.start - piece.within.start),
        within,
        ..piece
    })
}
