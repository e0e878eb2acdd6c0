//! The checksums of one object, in a file beside the one of its bytes.
//!
//! ```text
//! byte 0        8       12        28    32       40      64      68      72
//!      | magic | state | boot id | crc | object | zeros | sum 0 | sum 1 | ...  all little-endian
//! ```
//!
//! A sum is the CRC32C of a piece of 64 KiB, zeros beyond the end of the object included, or one of
//! two marks. Invariants, which make a crash at any moment harmless:
//!
//! - A sum says [`Sum::IN_FLUX`] from before its piece is written until after.
//! - A sum changes only while the header on the device says `unsynced` and names the boot of the
//!   machine since which the object was not synced, or is not there yet. When that boot is over,
//!   nobody knows which pages got to the device, and all sums become in flux.
//! - An object is [`Stored`](super::stored::Stored) only while this file, with its header, is on
//!   the device: what is missing then was lost, and nobody knows which bytes are right.

use super::data::Data;
use super::failure::Failure;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use units::{ByteRange, FileId};

/// Bytes that share a checksum.
pub(super) const PIECE_BYTES: u64 = 64 << 10;

/// The identity of one boot of the machine.
pub(super) type Boot = [u8; 16];

const MAGIC: [u8; 8] = *b"unisums1";
const HEADER_BYTES: usize = 64;
const SUM_BYTES: u64 = 4;
const SYNCED: u32 = 0;
const UNSYNCED: u32 = 1;

/// Sums that are written at a time when there are many.
const SUMS_AT_ONCE: u64 = 16 << 10;

/// What is known of the bytes of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sum(u32);

impl Sum {
    /// Never written: all zeros.
    pub(super) const HOLE: Self = Self(0);
    /// Being written when last heard of: any bytes will do.
    pub(super) const IN_FLUX: Self = Self(1);

    /// The sum of the bytes of a piece. The two that are marks stand in for others: one damage in
    /// two thousand million more goes unseen.
    pub(super) fn of(piece: &[u8]) -> Self {
        match crc32c::crc32c(piece) {
            mark @ (0 | 1) => Self(!mark),
            sum => Self(sum),
        }
    }

    /// Whether `piece` may be what was written: in flux, nobody can know.
    pub(super) fn allows(self, piece: &[u8]) -> bool {
        static ZEROS: [u8; PIECE_BYTES as usize] = [0; PIECE_BYTES as usize];
        match self {
            Self::IN_FLUX => true,
            Self::HOLE => piece == &ZEROS[..piece.len()],
            sum => sum == Self::of(piece),
        }
    }

    /// What it is once `piece` was given out: bytes in flux are taken for right from then on.
    pub(super) fn settled(self, piece: &[u8]) -> Self {
        if self == Self::IN_FLUX { Self::of(piece) } else { self }
    }
}

/// The pieces that hold a byte of `bytes`.
pub(super) fn pieces_of(bytes: ByteRange) -> Range<u64> {
    bytes.start / PIECE_BYTES..bytes.end.div_ceil(PIECE_BYTES)
}

/// What the first bytes of a file of sums are.
enum Header {
    /// A state and a boot.
    Whole(u32, Boot),
    /// Not there, or zeros: the machine crashed before they got to the device.
    Missing,
    /// Anything else.
    Damaged,
}

/// The file of an object's checksums.
pub(super) struct Sums {
    file: File,
    object: FileId,
    boot: Boot,
    /// What the header on the device says.
    unsynced: bool,
}

impl Sums {
    /// The sums of an object that does not exist yet: all holes.
    pub(super) fn create(directory: &OwnedFd, object: FileId, boot: Boot) -> Result<Self, Failure> {
        let flags = OFlags::CREATE | OFlags::TRUNC;
        let file = open(directory, &name(object), flags)?;
        // That this gets to the device need not be waited for: without it all are in flux.
        file.write_all_at(&header(object, UNSYNCED, &boot), 0)?;
        Ok(Self { file, object, boot, unsynced: true })
    }

    /// The sums of an object that is there, with these bytes. They must be there too where they
    /// were on stable storage.
    pub(super) fn open(
        directory: &OwnedFd,
        object: FileId,
        data: &Data,
        are_stored: bool,
        boot: Boot,
    ) -> Result<Self, Failure> {
        let data_bytes = data.length()?;
        let damaged = || Err(Failure::Corrupt(object, ByteRange::new(0, data_bytes)));
        let file = match open(directory, &name(object), OFlags::empty()) {
            Err(Errno::NOENT) if are_stored => return damaged(),
            Err(Errno::NOENT) => {
                // From then on it counts as stored.
                data.sync()?;
                return Self::adopt(directory, object, data_bytes, boot);
            }
            opened => opened?,
        };
        let mut sums = Self { file, object, boot, unsynced: true };
        match sums.header()? {
            Header::Damaged => return damaged(),
            Header::Missing if are_stored => return damaged(),
            Header::Whole(SYNCED, _) => sums.unsynced = false,
            Header::Whole(_, of_boot) if of_boot == boot => {}
            Header::Missing | Header::Whole(..) => {
                data.sync()?;
                sums.forget(data_bytes)?;
            }
        }
        Ok(sums)
    }

    /// Sums for bytes of which nothing is known.
    fn adopt(
        directory: &OwnedFd,
        object: FileId,
        data_bytes: u64,
        boot: Boot,
    ) -> Result<Self, Failure> {
        let (name, new) = (name(object), format!("{}.new", name(object)));
        let file = open(directory, &new, OFlags::CREATE | OFlags::TRUNC)?;
        let mut sums = Self { file, object, boot, unsynced: true };
        sums.forget(data_bytes)?;
        rustix::fs::renameat(directory, &new, directory, &name)?;
        Ok(sums)
    }

    /// Of an object without bytes: how many it should have at most, when all that it had were on
    /// stable storage; `None` where it had none, or nobody knows.
    pub(super) fn bytes_missing(
        directory: &OwnedFd,
        object: FileId,
    ) -> Result<Option<u64>, Failure> {
        let file = match open(directory, &name(object), OFlags::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        let count = (file.metadata()?.len().saturating_sub(HEADER_BYTES as u64)) / SUM_BYTES;
        let sums = Self { file, object, boot: Boot::default(), unsynced: true };
        let is_stored = matches!(sums.header()?, Header::Whole(SYNCED, _));
        Ok((is_stored && count > 0).then_some(count * PIECE_BYTES))
    }

    /// The sums of `pieces`.
    pub(super) fn read(&self, pieces: Range<u64>) -> std::io::Result<Vec<Sum>> {
        let mut bytes = vec![0; ((pieces.end - pieces.start) * SUM_BYTES) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], place(pieces.start) + filled as u64) {
                // Beyond the end all are holes.
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let sum =
            |bytes: &[u8]| Sum(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
        Ok(bytes.chunks_exact(SUM_BYTES as usize).map(sum).collect())
    }

    /// Sets the sums from piece `first` on.
    pub(super) fn write(&mut self, first: u64, sums: &[Sum]) -> std::io::Result<()> {
        self.begin()?;
        self.put(first, sums)
    }

    /// Says of `pieces` that any bytes will do.
    pub(super) fn put_in_flux(&mut self, pieces: Range<u64>) -> std::io::Result<()> {
        self.begin()?;
        self.fill_in_flux(pieces)
    }

    /// Forgets the sums of all pieces but the first `count`, which become holes.
    pub(super) fn truncate(&mut self, count: u64) -> std::io::Result<()> {
        self.begin()?;
        self.file.set_len(place(count))
    }

    /// Whether nothing has changed since the object was last on stable storage.
    pub(super) fn is_synced(&self) -> bool {
        !self.unsynced
    }

    /// Returns when all sums are on stable storage. The bytes must be before.
    pub(super) fn sync(&mut self) -> std::io::Result<()> {
        self.file.sync_data()?;
        // That this gets to the device need not be waited for: until it does, a crash of the
        // machine only costs sums.
        self.file.write_all_at(&header(self.object, SYNCED, &self.boot), 0)?;
        self.unsynced = false;
        Ok(())
    }

    fn header(&self) -> std::io::Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        let count = self.file.read_at(&mut bytes, 0)?;
        Ok(match parse(self.object, &bytes) {
            Some((state, boot)) if count == HEADER_BYTES => Header::Whole(state, boot),
            _ if bytes == [0; HEADER_BYTES] => Header::Missing,
            _ => Header::Damaged,
        })
    }

    /// Lets sums change.
    fn begin(&mut self) -> std::io::Result<()> {
        if !self.unsynced {
            self.file.write_all_at(&header(self.object, UNSYNCED, &self.boot), 0)?;
            self.file.sync_data()?;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Takes the bytes for right as they are, whatever the sums say: all become in flux.
    fn forget(&mut self, data_bytes: u64) -> std::io::Result<()> {
        let count = data_bytes.div_ceil(PIECE_BYTES);
        self.fill_in_flux(0..count)?;
        self.file.set_len(place(count))?;
        self.file.sync_data()?;
        self.file.write_all_at(&header(self.object, SYNCED, &self.boot), 0)?;
        self.file.sync_data()?;
        self.unsynced = false;
        Ok(())
    }

    fn fill_in_flux(&self, pieces: Range<u64>) -> std::io::Result<()> {
        let mut first = pieces.start;
        while first < pieces.end {
            let count = (pieces.end - first).min(SUMS_AT_ONCE);
            self.put(first, &vec![Sum::IN_FLUX; count as usize])?;
            first += count;
        }
        Ok(())
    }

    fn put(&self, first: u64, sums: &[Sum]) -> std::io::Result<()> {
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.0.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, place(first))
    }
}

/// Removes the sums of `object`; says whether there were any.
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

fn name(object: FileId) -> String {
    format!("{:016x}.sums", object.0)
}

/// Where the sum of a piece lies, in bytes.
fn place(piece: u64) -> u64 {
    HEADER_BYTES as u64 + piece * SUM_BYTES
}

fn header(object: FileId, state: u32, boot: &Boot) -> [u8; HEADER_BYTES] {
    let mut bytes = nameless_header(state, boot);
    bytes[32..40].copy_from_slice(&object.0.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..28]), &bytes[32..40]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// A header as it once was: it says of no object that these are its sums.
fn nameless_header(state: u32, boot: &Boot) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&state.to_le_bytes());
    bytes[12..28].copy_from_slice(boot);
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The state and the boot that a header names; `None` when it is damaged, or of another object.
fn parse(object: FileId, bytes: &[u8; HEADER_BYTES]) -> Option<(u32, Boot)> {
    let boot: Boot = bytes[12..28].try_into().ok()?;
    let is_it = |state: &u32| {
        header(object, *state, &boot) == *bytes || nameless_header(*state, &boot) == *bytes
    };
    let state = [SYNCED, UNSYNCED].into_iter().find(is_it)?;
    Some((state, boot))
}

/// The identity of the present boot. Where the system does not tell, one that no other time has:
/// then every start counts as a boot.
pub(super) fn present_boot() -> Boot {
    let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = told.chars().filter(char::is_ascii_hexdigit).collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(number) => number.to_be_bytes(),
        Err(_) => {
            let mut boot = [0; 16];
            crate::fill_random(&mut boot);
            boot
        }
    }
}
