//! Checksums of one object, in a file beside the file of its bytes.
//!
//! ```text
//! byte 0        8       12        28    32       40      48    56     64      68      72
//!      | magic | state | session | crc | object | first | end | disk | sum 0 | sum 1 | ...
//! ```
//!
//! All numbers are little-endian; `first` and `end` delimit the pieces that may change. For a
//! synced object `first` is its size in bytes, and `end` the complement of that. `disk` is the
//! identity of the disk from its configuration. Bit 0 of `state` says that pieces may change; the
//! other bits are the number of the generation of the last change.
//!
//! A checksum is the CRC32C of a piece of 64 KiB, padded with zeros beyond the end of the object,
//! or one of two marks. Invariants, which make a crash at any time harmless:
//!
//! - A checksum is [`Checksum::IN_FLUX`] from before its piece is written until after.
//! - A checksum changes only while the header on the device is `unsynced`, covers the piece, and
//!   names the session since which the object was not synced; or while there is no header yet.
//!   After that session it is unknown which pages reached the device, and the checksums of these
//!   pieces become in flux. All others are as they were at the last sync.
//! - An object is in the [`ObjectLog`](super::object_log::ObjectLog) only while this file, with its
//!   header, must be there. If it is missing then, it was lost, and no bytes can be verified. If it
//!   names an earlier generation than the log, both files are from an older copy.

use super::data::Data;
use super::failure::Failure;
use super::object_log::Known;
use super::session::Session;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use units::{ByteRange, FileId};
use world::Damage;

/// Bytes that share a checksum.
pub(super) const PIECE_BYTES: u64 = 64 << 10;

/// Context of checksums.
#[derive(Clone, Copy)]
pub(super) struct Present {
    /// Identity of the disk.
    pub(super) disk: u64,
    pub(super) session: Session,
    /// Number of the generation.
    pub(super) number: u32,
}

const MAGIC: [u8; 8] = *b"unisums1";
const HEADER_BYTES: usize = 64;
const SUM_BYTES: u64 = 4;

/// Checksums written at a time when there are many.
const SUMS_AT_ONCE: u64 = 16 << 10;

/// Checksum of a piece, or a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Checksum(u32);

impl Checksum {
    /// Piece that was never written: all zeros.
    pub(super) const HOLE: Self = Self(0);
    /// Piece that was being written: any bytes match.
    pub(super) const IN_FLUX: Self = Self(1);

    /// Returns the checksum of a piece. Values equal to a mark are replaced: one damage in two
    /// thousand million more is not detected.
    pub(super) fn of(piece: &[u8]) -> Self {
        match crc32c::crc32c(piece) {
            mark @ (0 | 1) => Self(!mark),
            sum => Self(sum),
        }
    }

    /// True if `piece` matches; always true in flux.
    pub(super) fn allows(self, piece: &[u8]) -> bool {
        static ZEROS: [u8; PIECE_BYTES as usize] = [0; PIECE_BYTES as usize];
        match self {
            Self::IN_FLUX => true,
            Self::HOLE => piece == &ZEROS[..piece.len()],
            sum => sum == Self::of(piece),
        }
    }

    /// Returns the checksum after `piece` was read: bytes in flux are accepted from then on.
    pub(super) fn settled(self, piece: &[u8]) -> Self {
        if self == Self::IN_FLUX { Self::of(piece) } else { self }
    }
}

/// Returns the pieces that hold a byte of `bytes`.
pub(super) fn pieces_of(bytes: ByteRange) -> Range<u64> {
    bytes.start / PIECE_BYTES..bytes.end.div_ceil(PIECE_BYTES)
}

/// Minimum number of pieces added at a time to those that may change, because each addition waits
/// for the device. An addition at most doubles them.
const MARKED_AT_ONCE: u64 = 16;

/// True if the end of an object differs from its last sync where no checksum can tell: zeros were
/// added, or removed within the last piece. (Whole missing pieces do not match their checksums, and
/// all others can be read.)
fn is_other_end(synced_bytes: u64, data_bytes: u64) -> bool {
    let is_of_one_piece = pieces_of(ByteRange::new(0, synced_bytes)).end
        == pieces_of(ByteRange::new(0, data_bytes)).end;
    data_bytes > synced_bytes || data_bytes < synced_bytes && is_of_one_piece
}

/// State of a header.
enum Header {
    /// Valid.
    Whole { state: State, session: Session, number: u32 },
    /// Missing or zero: the machine crashed before the header reached the device.
    Missing,
    /// Anything else.
    Damaged,
}

/// Contents of a header.
#[derive(Clone, PartialEq, Eq)]
enum State {
    /// Everything is on the device. The value is the size of the object, if it was recorded.
    Synced(Option<u64>),
    /// These pieces may have changed.
    Unsynced(Range<u64>),
}

/// Checksum file of an object.
pub(super) struct Checksums {
    file: File,
    object: FileId,
    present: Present,
    /// Number of the generation in the header.
    generation: u32,
    /// Pieces that may have changed since the last sync, from the header on the device.
    unsynced: Option<Range<u64>>,
}

/// Contents of the header of an object that was never synced.
const ALL_PIECES: Range<u64> = 0..u64::MAX;

impl Checksums {
    /// Creates the checksums of a new object: all holes.
    pub(super) fn create(
        directory: &OwnedFd,
        object: FileId,
        present: Present,
    ) -> Result<Self, Failure> {
        let flags = OFlags::CREATE | OFlags::TRUNC;
        let file = open(directory, &name(object), flags)?;
        // No sync is needed: without the header all pieces are in flux.
        file.write_all_at(&header(object, &State::Unsynced(ALL_PIECES), &present), 0)?;
        Ok(Self { file, object, present, generation: present.number, unsynced: Some(ALL_PIECES) })
    }

    /// Opens the checksums of an existing object with these bytes. Fails if the file is missing and
    /// must be there, or both are from an older copy.
    pub(super) fn open(
        directory: &OwnedFd,
        object: FileId,
        data: &Data,
        known: Option<Known>,
        present: Present,
    ) -> Result<Self, Failure> {
        let data_bytes = data.length()?;
        let all = |damage| Err(Failure::Corrupt(object, ByteRange::new(0, data_bytes), damage));
        let file = match open(directory, &name(object), OFlags::empty()) {
            Err(Errno::NOENT) if known.is_some() => return all(Damage::Mismatch),
            Err(Errno::NOENT) => {
                // From then on the object counts as durable.
                data.sync()?;
                return Self::adopt(directory, object, data_bytes, present);
            }
            opened => opened?,
        };
        let mut sums = Self { file, object, present, generation: 0, unsynced: Some(ALL_PIECES) };
        let unknown = match sums.header()? {
            Header::Damaged => return all(Damage::Mismatch),
            Header::Missing if known.is_some() => return all(Damage::Mismatch),
            Header::Missing => ALL_PIECES,
            Header::Whole { number, .. } if known.is_some_and(|known| number < known.number) => {
                return all(Damage::Older);
            }
            Header::Whole { state: State::Synced(Some(bytes)), .. }
                if is_other_end(bytes, data_bytes) =>
            {
                let other = ByteRange::new(bytes.min(data_bytes), bytes.max(data_bytes));
                return Err(Failure::Corrupt(object, other, Damage::Mismatch));
            }
            Header::Whole { state: State::Synced(_), number, .. } => {
                (sums.unsynced, sums.generation) = (None, number);
                return Ok(sums);
            }
            Header::Whole { state: State::Unsynced(pieces), session, number } => {
                sums.generation = number;
                if session == present.session {
                    sums.unsynced = Some(pieces);
                    return Ok(sums);
                }
                pieces
            }
        };
        data.sync()?;
        sums.forget(unknown, data_bytes)?;
        Ok(sums)
    }

    /// Creates checksums for bytes of which nothing is known.
    fn adopt(
        directory: &OwnedFd,
        object: FileId,
        data_bytes: u64,
        present: Present,
    ) -> Result<Self, Failure> {
        let (name, new) = (name(object), format!("{}.new", name(object)));
        let file = open(directory, &new, OFlags::CREATE | OFlags::TRUNC)?;
        let mut sums = Self { file, object, present, generation: 0, unsynced: Some(ALL_PIECES) };
        sums.forget(ALL_PIECES, data_bytes)?;
        rustix::fs::renameat(directory, &new, directory, &name)?;
        Ok(sums)
    }

    /// Returns the maximum size that an object without a file of bytes had, if all its bytes were
    /// on stable storage or its checksums are damaged; `None` if it had no bytes, or that is
    /// unknown.
    pub(super) fn bytes_missing(
        directory: &OwnedFd,
        object: FileId,
        present: Present,
    ) -> Result<Option<u64>, Failure> {
        let file = match open(directory, &name(object), OFlags::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        let sums = Self { file, object, present, generation: 0, unsynced: Some(ALL_PIECES) };
        let count = sums.count()?;
        Ok(match sums.header()? {
            Header::Whole { state: State::Synced(_), .. } => {
                (count > 0).then_some(count * PIECE_BYTES)
            }
            Header::Whole { .. } | Header::Missing => None,
            Header::Damaged => Some(count.max(1) * PIECE_BYTES),
        })
    }

    /// Number of the generation of the last change.
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the number of pieces with checksums; later pieces are holes.
    fn count(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len().saturating_sub(HEADER_BYTES as u64) / SUM_BYTES)
    }

    /// Reads the checksums of `pieces`.
    pub(super) fn read(&self, pieces: Range<u64>) -> std::io::Result<Vec<Checksum>> {
        let mut bytes = vec![0; ((pieces.end - pieces.start) * SUM_BYTES) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], place(pieces.start) + filled as u64) {
                // Pieces beyond the end are holes.
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let sum = |bytes: &[u8]| {
            Checksum(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        Ok(bytes.chunks_exact(SUM_BYTES as usize).map(sum).collect())
    }

    /// Writes the checksums from piece `first` on.
    pub(super) fn write(&mut self, first: u64, sums: &[Checksum]) -> std::io::Result<()> {
        self.begin(first..first + sums.len() as u64)?;
        self.put(first, sums)
    }

    /// Marks `pieces` as in flux.
    pub(super) fn put_in_flux(&mut self, pieces: Range<u64>) -> std::io::Result<()> {
        self.begin(pieces.clone())?;
        self.fill_in_flux(pieces)
    }

    /// Removes the checksums of all pieces but the first `count`; the others become holes.
    pub(super) fn truncate(&mut self, count: u64) -> std::io::Result<()> {
        self.begin(count..self.count()?.max(count))?;
        self.file.set_len(place(count))
    }

    /// True if nothing has changed since the last sync.
    pub(super) fn is_synced(&self) -> bool {
        self.unsynced.is_none()
    }

    /// Returns when all checksums are on stable storage. The `data_bytes` bytes must be before.
    pub(super) fn sync(&mut self, data_bytes: u64) -> std::io::Result<()> {
        self.file.sync_data()?;
        // No sync is needed: until the header reaches the device, a crash of the machine only costs
        // checksums.
        self.put_synced(data_bytes)
    }

    fn put_synced(&mut self, data_bytes: u64) -> std::io::Result<()> {
        let state = State::Synced(Some(data_bytes));
        let present = Present { number: self.generation, ..self.present };
        self.file.write_all_at(&header(self.object, &state, &present), 0)?;
        self.unsynced = None;
        Ok(())
    }

    fn header(&self) -> std::io::Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        let count = self.file.read_at(&mut bytes, 0)?;
        Ok(match parse(self.object, self.present.disk, &bytes) {
            Some((state, Present { session, number, .. })) if count == HEADER_BYTES => {
                Header::Whole { state, session, number }
            }
            _ if bytes == [0; HEADER_BYTES] => Header::Missing,
            _ => Header::Damaged,
        })
    }

    /// Marks `pieces` as changing in the header.
    fn begin(&mut self, pieces: Range<u64>) -> std::io::Result<()> {
        let is_current = self.generation == self.present.number;
        let wanted = match &self.unsynced {
            Some(marked) if marked.start <= pieces.start && pieces.end <= marked.end => {
                if is_current {
                    return Ok(());
                }
                marked.clone()
            }
            Some(marked) => {
                // Doubles the range, so that sequential writers need not wait each time.
                let more = (marked.end - marked.start).max(MARKED_AT_ONCE);
                let is_before = pieces.start < marked.start;
                let start =
                    if is_before { pieces.start.saturating_sub(more) } else { marked.start };
                let is_behind = pieces.end > marked.end;
                let end = if is_behind { pieces.end.saturating_add(more) } else { marked.end };
                start..end
            }
            None => pieces.start..pieces.end.saturating_add(MARKED_AT_ONCE),
        };
        let state = State::Unsynced(wanted.clone());
        self.file.write_all_at(&header(self.object, &state, &self.present), 0)?;
        self.file.sync_data()?;
        (self.unsynced, self.generation) = (Some(wanted), self.present.number);
        Ok(())
    }

    /// Accepts the bytes of `pieces` as they are, whatever the checksums are.
    fn forget(&mut self, pieces: Range<u64>, data_bytes: u64) -> std::io::Result<()> {
        let count = data_bytes.div_ceil(PIECE_BYTES);
        self.fill_in_flux(pieces.start..pieces.end.min(count))?;
        // A piece beyond the end is a hole, unless it existed at the last sync.
        let end = self.count()?;
        if pieces.end >= end {
            self.file.set_len(place(pieces.start.max(count).min(end)))?;
        } else {
            self.fill(pieces.start.max(count)..pieces.end, Checksum::HOLE)?;
        }
        self.file.sync_data()?;
        self.put_synced(data_bytes)?;
        self.file.sync_data()
    }

    fn fill_in_flux(&self, pieces: Range<u64>) -> std::io::Result<()> {
        self.fill(pieces, Checksum::IN_FLUX)
    }

    fn fill(&self, pieces: Range<u64>, sum: Checksum) -> std::io::Result<()> {
        let mut first = pieces.start;
        while first < pieces.end {
            let count = (pieces.end - first).min(SUMS_AT_ONCE);
            self.put(first, &vec![sum; count as usize])?;
            first += count;
        }
        Ok(())
    }

    fn put(&self, first: u64, sums: &[Checksum]) -> std::io::Result<()> {
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.0.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, place(first))
    }
}

/// Removes the checksums of `object`; returns true if there were any.
pub(super) fn remove(directory: &OwnedFd, object: FileId) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(directory, name(object), rustix::fs::AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn open(directory: &OwnedFd, name: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Returns the file name of an object's checksums.
pub(super) fn name(object: FileId) -> String {
    format!("{:016x}.sums", object.0)
}

/// Returns the file offset of the checksum of a piece.
fn place(piece: u64) -> u64 {
    HEADER_BYTES as u64 + piece * SUM_BYTES
}

fn header(object: FileId, state: &State, present: &Present) -> [u8; HEADER_BYTES] {
    let mut bytes = diskless_header(object, state, present);
    bytes[56..64].copy_from_slice(&present.disk.to_le_bytes());
    seal(&mut bytes, 64);
    bytes
}

/// Encodes a header of an earlier format, without the disk.
fn diskless_header(object: FileId, state: &State, present: &Present) -> [u8; HEADER_BYTES] {
    let mut bytes = rangeless_header(object, matches!(state, State::Unsynced(_)), present);
    let (first, end) = match state {
        State::Synced(None) => (0, 0),
        State::Synced(Some(length)) => (*length, !length),
        State::Unsynced(pieces) => (pieces.start, pieces.end),
    };
    bytes[40..48].copy_from_slice(&first.to_le_bytes());
    bytes[48..56].copy_from_slice(&end.to_le_bytes());
    seal(&mut bytes, 56);
    bytes
}

/// Encodes a header of an earlier format, without the pieces that may have changed.
fn rangeless_header(object: FileId, is_unsynced: bool, present: &Present) -> [u8; HEADER_BYTES] {
    let mut bytes = nameless_header(is_unsynced, present);
    bytes[32..40].copy_from_slice(&object.0.to_le_bytes());
    seal(&mut bytes, 40);
    bytes
}

/// Encodes a header of the first format, without the object.
fn nameless_header(is_unsynced: bool, present: &Present) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    let state = u32::from(is_unsynced) | present.number << 1;
    bytes[8..12].copy_from_slice(&state.to_le_bytes());
    bytes[12..28].copy_from_slice(&present.session);
    seal(&mut bytes, 32);
    bytes
}

/// Stores the checksum of the first `end` bytes of a header, computed without the checksum itself.
fn seal(bytes: &mut [u8; HEADER_BYTES], end: usize) {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..28]), &bytes[32..end]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
}

/// Decodes the state and the context of a header; `None` when it is damaged, or of another object
/// or disk.
fn parse(object: FileId, disk: u64, bytes: &[u8; HEADER_BYTES]) -> Option<(State, Present)> {
    let session: Session = bytes[12..28].try_into().ok()?;
    let number = u32::from_le_bytes(bytes[8..12].try_into().ok()?) >> 1;
    let word = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
    let (first, end, named) = (word(40)?, word(48)?, word(56)?);
    let of = |disk| Present { disk, session, number };
    for state in [State::Synced(Some(first)), State::Unsynced(first..end)] {
        let is_of = |disk| header(object, &state, &of(disk)) == *bytes;
        // A disk without identity, now or when the header was written, accepts objects of any disk.
        let is_of_disk = if disk == 0 { is_of(named) } else { is_of(disk) || is_of(0) };
        if is_of_disk || diskless_header(object, &state, &of(0)) == *bytes {
            return Some((state, of(disk)));
        }
    }
    let is_old = |is_unsynced: &bool| {
        rangeless_header(object, *is_unsynced, &of(0)) == *bytes
            || nameless_header(*is_unsynced, &of(0)) == *bytes
    };
    let is_unsynced = [false, true].into_iter().find(is_old)?;
    let state = if is_unsynced { State::Unsynced(ALL_PIECES) } else { State::Synced(None) };
    Some((state, of(0)))
}
