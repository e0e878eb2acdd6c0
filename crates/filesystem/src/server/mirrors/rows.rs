//! Pieces of rows that several servers combine: to make what one of them lacks, and to make parity
//! anew.
//!
//! Each server keeps its piece as it is and asks the next one, in the order of their places; the
//! one with the parity comes last. So all pieces are as they are at one moment, and no two servers
//! wait for one another.
//!
//! Invariants:
//! - A piece counts only if the parity is known to have all changes of it.
//! - A change waits for the parity's server only, which waits for nobody.

use super::mirrored_file::MirroredFile;
use super::mirrors::Mirrors;
use super::parity_changes::row_pieces;
use crate::server::faults::{disk_fault, disk_of};
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, try_join_all};
use futures_util::stream::{self, StreamExt};
use policy::{Location, RowPiece, Rows};
use std::rc::Rc;
use units::{ByteRange, DiskId, Run, ServerId};
use wire::{Fault, FileSize, ObjectRequest, Reply, RowRequest};
use world::{Disk, DiskError, Memory, Payload, World};

/// Number of pieces that are made at the same time for one range.
const PIECES_AT_ONCE: usize = 4;

impl<W: World> Mirrors<W> {
    /// Makes a range of an object of this server, which lacks it or has damage there, from the
    /// other pieces of its rows and their parity.
    ///
    /// # Errors
    /// Fails when a piece or the parity cannot be read, or lacks changes.
    pub(super) async fn read_rows(
        &self,
        file: &MirroredFile,
        disk: DiskId,
        range: ByteRange,
    ) -> Result<W::Payload, Fault> {
        let Some(rows) = &file.rows else { return Err(bad("the file has no parity")) };
        let memory = self.world.memory(range.length());
        // Their bytes are not counted: what they wait for may wait until such bytes have arrived.
        let gathered = row_pieces(rows, file, disk, range).map(async |piece| {
            let body = self.gather(file, rows, piece).await?;
            let run = Run::contiguous(piece.offset - range.start, piece.within.length());
            memory.scatter(&[run], &body);
            Ok::<_, Fault>(())
        });
        let mut gathered = stream::iter(gathered).buffer_unordered(PIECES_AT_ONCE);
        while let Some(outcome) = gathered.next().await {
            outcome?;
        }
        drop(gathered);
        Ok(memory.freeze())
    }

    async fn gather(
        &self,
        file: &MirroredFile,
        rows: &Rows,
        piece: RowPiece,
    ) -> Result<W::Payload, Fault> {
        let parity = rows.parity(piece.row).server;
        if !file.has_filling() {
            let partner = file.partner_at(parity).ok_or_else(|| bad("it has no parity"))?;
            let range = ByteRange::at(piece.offset, piece.within.length());
            self.check_current_at(file, partner, range).await?;
        }
        let data = rows.data(piece.row).into_iter().map(|at| at.server);
        let others = data.filter(|place| *place != file.place).chain([parity]);
        let gathered = self.ask_row(file, piece, others.collect(), None, ObjectRequest::Gather);
        let length = piece.within.length();
        let none = || bad("a piece of a row was answered without bytes");
        gathered.await?.filter(|body| body.length() == length).ok_or_else(none)
    }

    /// Makes a piece of the parity of a row anew.
    ///
    /// # Errors
    /// Fails when a piece of the row cannot be read, or the parity not be written.
    pub(crate) async fn encode(&self, file: &MirroredFile, piece: RowPiece) -> Result<(), Fault> {
        let Some(rows) = &file.rows else { return Ok(()) };
        let data = rows.data(piece.row).into_iter().map(|at| at.server);
        let all = data.chain([rows.parity(piece.row).server]).collect();
        self.ask_row(file, piece, all, None, ObjectRequest::Encode).await.map(|_| ())
    }

    /// Has the first of some places do its part with a piece, and then the others.
    async fn ask_row(
        &self,
        file: &MirroredFile,
        piece: RowPiece,
        mut places: Vec<ServerId>,
        body: Option<W::Payload>,
        kind: fn(Box<RowRequest>) -> ObjectRequest,
    ) -> Result<Option<W::Payload>, Fault> {
        let first = file.record.pool.server(places.remove(0));
        let request = Box::new(RowRequest {
            record: file.record.clone(),
            row: piece.row,
            offset: piece.within.start,
            length: piece.within.length(),
            rest: places,
        });
        if first == self.own {
            return self.take_part(request, body, kind).await;
        }
        self.call(file, first, kind(request), body).await.map(|(_, body)| body)
    }

    /// Does the part of this server with a piece of a row: reads it, and has the next server do its
    /// part, while the piece does not change.
    pub(crate) fn take_part(
        &self,
        request: Box<RowRequest>,
        body: Option<W::Payload>,
        kind: fn(Box<RowRequest>) -> ObjectRequest,
    ) -> LocalBoxFuture<'_, Result<Option<W::Payload>, Fault>> {
        self.take_part_of(request, body, kind).boxed_local()
    }

    async fn take_part_of(
        &self,
        request: Box<RowRequest>,
        body: Option<W::Payload>,
        kind: fn(Box<RowRequest>) -> ObjectRequest,
    ) -> Result<Option<W::Payload>, Fault> {
        let is_gathered = matches!(kind(request.clone()), ObjectRequest::Gather(_));
        let own = self.own_piece(&request, body.as_ref())?;
        let (file, piece) = (&own.file, own.piece);
        if let PieceKind::Parity = own.kind {
            return match (is_gathered, body) {
                (true, _) => self.read_parity(file, own.disk, own.range).await.map(Some),
                (false, Some(body)) => {
                    self.store_parity(file, (own.disk, own.range), body).await.map(|()| None)
                }
                (false, None) => Err(bad("parity is stored from bytes")),
            };
        }
        let parity = is_gathered.then(|| own.rows.parity(piece.row));
        self.check_piece(&own, parity)?;
        let _held = file.hold(own.disk, own.range).await;
        self.check_piece(&own, parity)?;
        let read = self.read_piece(&own).await?;
        if request.rest.is_empty() {
            return Err(bad("a row ends with its parity"));
        }
        match is_gathered {
            true => {
                let next = self.ask_row(file, piece, request.rest, None, kind).await?;
                let next = next.filter(|next| next.length() == read.length());
                let next = next.ok_or_else(|| bad("a piece was answered without bytes"))?;
                Ok(Some(read.xor(&next)))
            }
            false => {
                let combined = body.map_or(read.clone(), |body| body.xor(&read));
                self.ask_row(file, piece, request.rest, Some(combined), kind).await
            }
        }
    }

    /// Returns the digests of the other pieces of a row, of which this server has one, and of the
    /// parity.
    ///
    /// # Errors
    /// Fails when one of them cannot be read, or may lack changes.
    pub(super) async fn digests_of_others(
        &self,
        file: &MirroredFile,
        rows: &Rows,
        piece: RowPiece,
    ) -> Result<Vec<u32>, Fault> {
        let data = rows.data(piece.row).into_iter().map(|at| at.server);
        let others = data.filter(|place| *place != file.place);
        let others = others.chain([rows.parity(piece.row).server]).collect();
        self.ask_digests(file, piece, others).await
    }

    /// Returns the digests of a piece of a row at some places, the last one first.
    async fn ask_digests(
        &self,
        file: &MirroredFile,
        piece: RowPiece,
        mut places: Vec<ServerId>,
    ) -> Result<Vec<u32>, Fault> {
        let first = file.record.pool.server(places.remove(0));
        let (record, row) = (file.record.clone(), piece.row);
        let (offset, length) = (piece.within.start, piece.within.length());
        let request = Box::new(RowRequest { record, row, offset, length, rest: places });
        match self.call(file, first, ObjectRequest::RowDigests(request), None).await? {
            (Reply::Digests(digests), _) => Ok(digests),
            (other, _) => Err(super::unexpected(&other)),
        }
    }

    /// Returns the digests of a piece of a row that other servers and this one have, while it does
    /// not change.
    pub(crate) fn row_digests(
        &self,
        request: Box<RowRequest>,
    ) -> LocalBoxFuture<'_, Result<Vec<u32>, Fault>> {
        self.row_digests_of(request).boxed_local()
    }

    async fn row_digests_of(&self, request: Box<RowRequest>) -> Result<Vec<u32>, Fault> {
        let own = self.own_piece(&request, None)?;
        if let PieceKind::Parity = own.kind {
            let parity = self.read_parity(&own.file, own.disk, own.range).await?;
            return Ok(vec![parity.digest()]);
        }
        let parity = Some(own.rows.parity(own.piece.row));
        self.check_piece(&own, parity)?;
        let _held = own.file.hold(own.disk, own.range).await;
        self.check_piece(&own, parity)?;
        let read = self.read_piece(&own).await?;
        if request.rest.is_empty() {
            return Err(bad("a row ends with its parity"));
        }
        let mut digests = self.ask_digests(&own.file, own.piece, request.rest).await?;
        digests.push(read.digest());
        Ok(digests)
    }

    /// Finds the piece of a row that this server has.
    fn own_piece(
        &self,
        request: &RowRequest,
        body: Option<&W::Payload>,
    ) -> Result<OwnPiece, Fault> {
        let (rows, piece) = piece_of::<W>(request, body)?;
        let record = &request.record;
        let place = record.place_of(self.own).ok_or_else(|| bad("no part of it is here"))?;
        let file = self.of(record.file, || record.clone());
        let file = file.ok_or_else(|| bad("no part of the file is here"))?;
        let parity = rows.parity(piece.row);
        let (kind, at) = match parity.server == place {
            true => (PieceKind::Parity, parity),
            false => {
                let own = rows.data(piece.row).into_iter().find(|at| at.server == place);
                (PieceKind::Data, own.ok_or_else(|| bad("no piece of that row is here"))?)
            }
        };
        let range = rows.object_range(at, piece.within);
        Ok(OwnPiece { file, rows, piece, kind, disk: at.disk, range })
    }

    async fn read_piece(&self, own: &OwnPiece) -> Result<W::Payload, Fault> {
        let disk = disk_of(&self.world, own.disk)?;
        let read = disk.read(own.file.file, own.range.start, own.range.length());
        read.await.map_err(|error: DiskError| disk_fault(self.own, &error))
    }

    /// Refuses a piece that this server lacks, or whose changes the parity may lack.
    fn check_piece(&self, own: &OwnPiece, parity: Option<Location>) -> Result<(), Fault> {
        let OwnPiece { file, disk, range, .. } = own;
        let _ = self.notice_ended_connection(file);
        if self.lacking.is_lost(file.file, *disk) || file.lacks(*disk, range.end) {
            return Err(bad("another piece of the row is lost too"));
        }
        let partner = parity.and_then(|parity| file.partner_at(parity.server));
        match partner.is_some_and(|partner| partner.may_lack(*range)) {
            true => Err(bad("the parity may lack changes of another piece of the row")),
            false => Ok(()),
        }
    }

    /// Returns the size of a file, as far as the other servers with pieces or parity know it.
    pub(super) async fn reached_by_others(&self, file: &MirroredFile) -> Result<FileSize, Fault> {
        let reached = file.partners.iter().map(async |partner| {
            let reach = ObjectRequest::Reach { record: Box::new(file.record.clone()) };
            match self.ask(file, partner.server, reach, None).await? {
                Reply::Size(size) => Ok(size),
                other => Err(super::unexpected(&other)),
            }
        });
        Ok(try_join_all(reached).await?.into_iter().max().unwrap_or_default())
    }
}

/// Piece of a row that this server has.
struct OwnPiece {
    file: Rc<MirroredFile>,
    rows: Rows,
    piece: RowPiece,
    kind: PieceKind,
    disk: DiskId,
    range: ByteRange,
}

enum PieceKind {
    Data,
    Parity,
}

fn bad(cause: &str) -> Fault {
    Fault::BadRequest { cause: cause.to_owned() }
}

/// Returns the rows of the file of a request, and the piece that it is about.
fn piece_of<W: World>(
    request: &RowRequest,
    body: Option<&W::Payload>,
) -> Result<(Rows, RowPiece), Fault> {
    let RowRequest { record, row, offset, length, rest } = request;
    let servers = record.stripe.servers;
    if rest.len() > servers as usize || rest.iter().any(|place| place.0 >= servers) {
        return Err(bad("a row has pieces at places of its file only"));
    }
    let rows = record.protection.rows(&record.stripe);
    let rows = rows.ok_or_else(|| bad("the file has no parity"))?;
    let end = offset.checked_add(*length).filter(|end| *end <= record.stripe.block_bytes);
    let end = end.filter(|_| *length <= wire::LINE_BYTES_MAX && *length > 0);
    let end = end.ok_or_else(|| bad("a piece of a row lies in its block and fits a message"))?;
    if *row >= rows.row_count(policy::BYTES_MAX) {
        return Err(bad("no file has such a row"));
    }
    if body.is_some_and(|body| body.length() != *length) {
        return Err(bad("the bytes of a piece are as long as the piece"));
    }
    Ok((rows, RowPiece { row: *row, offset: 0, within: ByteRange::new(*offset, end) }))
}
