//! Renewal of parity that may lack changes of this server's parts: it is made anew, row by row.
//!
//! Invariant: parity counts as equal only if it has missed no change since its renewal began.

use super::mirrored_file::MirroredFile;
use super::mirrors::Mirrors;
use super::parity_changes::{cut_to_fit, row_pieces};
use super::partner::Partner;
use crate::server::faults::{disk_fault, disk_of};
use policy::{Location, RowPiece, Rows};
use std::ops::Range;
use units::{ByteRange, DiskId, ServerId};
use wire::{Fault, FileSize, ObjectRequest, Reply};
use world::{Disk, Payload, World};

impl<W: World> Mirrors<W> {
    /// Makes all parity of a file anew that is behind. Returns the number of changes after which it
    /// was equal, if none was active.
    pub(super) async fn renew_parity(
        &self,
        file: &MirroredFile,
        rows: &Rows,
    ) -> Result<Option<u64>, String> {
        let told = |fault: Fault| fault.to_string();
        let (behind, current): (Vec<&Partner>, Vec<&Partner>) =
            file.partners.iter().partition(|partner| partner.is_behind());
        let before = behind.iter().map(|partner| (partner.missed(), self.ended(partner)));
        let before: Vec<(u64, u64)> = before.collect();
        for partner in &behind {
            for row in self.rows_at(file, rows, partner).await.map_err(told)? {
                if !self.may_lack_row(file, rows, partner, row) {
                    continue;
                }
                if !self.knows(file) {
                    return Ok(None);
                }
                match self.encode_row(file, rows, row).await {
                    // It was removed while this server was away.
                    Err(Fault::NoSuchFile { .. }) => {
                        self.forget(file.file);
                        return Ok(None);
                    }
                    made => made.map_err(told)?,
                }
            }
        }
        let changes = file.ended_changes();
        let cut_to = file.has_cut_to().max(self.kept_sizes.of(file.file).await.map_err(told)?);
        let size = FileSize {
            cuts: file.record.cuts.max(cut_to.cuts),
            bytes: self.own_reach(&file.record).await.map_err(told)?,
        };
        for disk in (0..file.disks).map(DiskId) {
            let synced = disk_of(&self.world, disk).map_err(told)?.sync(file.file).await;
            synced.map_err(|error| disk_fault(self.own(), &error).to_string())?;
        }
        // The mark stands for what those have not stored, too.
        for partner in current {
            let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
            self.ask(file, partner.server, sync, None).await.map_err(told)?;
        }
        let mut is_equal = true;
        for (partner, (missed, ended)) in behind.into_iter().zip(before) {
            let reached = ObjectRequest::Reached { file: file.file, size };
            self.ask(file, partner.server, reached, None).await.map_err(told)?;
            let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
            self.ask(file, partner.server, sync, None).await.map_err(told)?;
            if self.ended(partner) != ended {
                return Err("its server was not connected all the time".to_owned());
            }
            is_equal &= partner.caught_up(missed, ended);
        }
        let _ = self.notice_ended_connection(file);
        match is_equal {
            true => Ok(changes),
            false => Err("it has missed further changes".to_owned()),
        }
    }

    /// Makes the parity of a row anew.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub(crate) async fn encode_row(
        &self,
        file: &MirroredFile,
        rows: &Rows,
        row: u64,
    ) -> Result<(), Fault> {
        let within = ByteRange::new(0, rows.stripe().block_bytes);
        for piece in cut_to_fit(RowPiece { row, offset: 0, within }) {
            self.encode(file, piece).await?;
        }
        Ok(())
    }

    /// True if the parity of a range is that of its pieces, as far as this server answers for it:
    /// of each row, the server of the first block does. Damage of the parity is a difference.
    /// Damage of other pieces is left to their servers.
    pub(super) async fn is_parity_equal(
        &self,
        file: &MirroredFile,
        rows: &Rows,
        (disk, range): (DiskId, ByteRange),
        own: &W::Payload,
    ) -> Result<bool, Fault> {
        for piece in first_pieces(rows, file, disk, range) {
            let part = ByteRange::new(piece.offset, piece.offset + piece.within.length());
            let others = match self.digests_of_others(file, rows, piece).await {
                Err(Fault::DiskFailed { server, .. }) => {
                    let parity = rows.parity(piece.row).server;
                    if server == file.record.pool.server(parity) {
                        return Ok(false);
                    }
                    continue;
                }
                others => others?,
            };
            let made = match W::Payload::digest_of_xor(&others, part.length()) {
                Some(digest) => digest,
                None => self.read_rows(file, disk, part).await?.digest(),
            };
            if made != own.slice(part.start - range.start, part.length()).digest() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the parity of a range anew, of which nothing changes here, on stable storage.
    pub(super) async fn encode_again(
        &self,
        file: &MirroredFile,
        rows: &Rows,
        (disk, range): (DiskId, ByteRange),
    ) -> Result<(), Fault> {
        for piece in first_pieces(rows, file, disk, range) {
            self.encode_row(file, rows, piece.row).await?;
            let server = file.record.pool.server(rows.parity(piece.row).server);
            let sync = ObjectRequest::Sync { file: file.file, disks: file.disks };
            self.ask(file, server, sync, None).await?;
        }
        Ok(())
    }

    /// Rows up to the last one of which this server has data or a partner parity.
    async fn rows_at(
        &self,
        file: &MirroredFile,
        rows: &Rows,
        partner: &Partner,
    ) -> Result<Range<u64>, Fault> {
        let mut end = rows.row_count(self.own_reach(&file.record).await?);
        let Some(server) = file.record.place_of(partner.server) else { return Ok(0..end) };
        for disk in (0..file.disks).map(DiskId) {
            let length = ObjectRequest::Length { file: file.file, disk };
            let length = match self.ask(file, partner.server, length, None).await? {
                Reply::Length { bytes } => bytes.unwrap_or(0),
                other => return Err(super::unexpected(&other)),
            };
            if let Some(slot) = length.div_ceil(rows.stripe().block_bytes).checked_sub(1) {
                end = end.max(rows.row_at(Location { server, disk, slot }) + 1);
            }
        }
        Ok(0..end)
    }

    /// True if a partner has the parity of a row, which may lack changes of this server's block.
    fn may_lack_row(&self, file: &MirroredFile, rows: &Rows, partner: &Partner, row: u64) -> bool {
        let within = ByteRange::new(0, rows.stripe().block_bytes);
        let is_at = |place: ServerId| file.record.pool.server(place) == partner.server;
        let mut own = rows.data(row).into_iter().filter(|at| at.server == file.place);
        is_at(rows.parity(row).server)
            && own.any(|at| partner.may_lack(rows.object_range(at, within)))
    }
}

/// Pieces of a range that are of the first block of a row.
fn first_pieces(
    rows: &Rows,
    file: &MirroredFile,
    disk: DiskId,
    range: ByteRange,
) -> impl Iterator<Item = RowPiece> {
    let is_first = |piece: &RowPiece| {
        let first = rows.stripe().locate(rows.blocks(piece.row).start);
        first.server == file.place
    };
    row_pieces(rows, file, disk, range).filter(move |piece| is_first(piece))
}
