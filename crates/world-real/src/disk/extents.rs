//! Physical extents of a file, from the file system (FIEMAP).
#![allow(unsafe_code)]

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use units::ByteRange;

/// Maximum number of extents of one file; bytes beyond count as unmapped.
const EXTENTS_MAX: usize = 65_536;

/// Extents requested at a time: 14 KiB.
const EXTENTS_AT_ONCE: usize = 256;

/// Bytes that are contiguous both in a file and on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// Byte range in the file.
    pub(super) bytes: ByteRange,
    /// Physical address of the first byte.
    pub(super) physical: u64,
}

/// Returns the extents of a file, ascending, and true if no other will appear without another
/// write: dirty pages have no address yet.
pub(super) fn extents(file: impl AsFd) -> Result<(Vec<Extent>, bool), Errno> {
    let (mut found, mut is_settled, mut start) = (Vec::new(), true, 0);
    while found.len() < EXTENTS_MAX {
        let query = ask(&file, start)?;
        let reported = &query.extents[..query.mapped.min(EXTENTS_AT_ONCE as u32) as usize];
        for extent in reported {
            match extent.known() {
                Some(known) => append(&mut found, known),
                None => is_settled = false,
            }
        }
        let Some(last) = reported.last().filter(|last| last.flags & LAST == 0) else { break };
        start = last.logical.saturating_add(last.length);
    }
    Ok((found, is_settled))
}

/// Appends an extent, merged with the last one if both are contiguous.
fn append(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last)
            if last.bytes.end == next.bytes.start
                && last.physical + last.bytes.length() == next.physical =>
        {
            last.bytes.end = next.bytes.end;
        }
        _ => extents.push(next),
    }
}

// Below: `struct fiemap` of linux/fiemap.h.

const LAST: u32 = 0x1;
/// Flags of extents without a usable address: unknown, delayed allocation, encoded, not aligned,
/// inline.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400;

#[repr(C)]
struct Query {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_AT_ONCE],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

impl FiemapExtent {
    fn known(&self) -> Option<Extent> {
        let bytes = ByteRange::checked_at(self.logical, self.length)?;
        let has_place = self.flags & NO_PLACE == 0;
        has_place.then_some(Extent { bytes, physical: self.physical })
    }
}

/// Size of the 32 bytes before the extents, as the ioctl encodes it.
const FIEMAP: Opcode = opcode::read_write::<[u64; 4]>(b'f', 11);

fn ask(file: impl AsFd, start: u64) -> Result<Box<Query>, Errno> {
    let mut query = Box::new(Query {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped: 0,
        count: EXTENTS_AT_ONCE as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); EXTENTS_AT_ONCE],
    });
    // SAFETY: FIEMAP reads and writes a `struct fiemap` and at most `count` extents after it, which
    // is what `Query` is: plain numbers, for which all bytes are valid.
    let call = unsafe { Updater::<FIEMAP, Query>::new(&mut query) };
    // SAFETY: the opcode is that of the argument, as above.
    unsafe { ioctl(file, call) }?;
    Ok(query)
}

#[cfg(test)]
mod tests {
    //! Proves: contiguous extents are merged, and the extents of a real file cover its contents.
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn extents_that_continue_are_one() {
        let mut extents = Vec::new();
        for (start, length, physical) in [(0, 10, 100), (10, 5, 110), (15, 5, 200), (30, 5, 215)] {
            append(&mut extents, Extent { bytes: ByteRange::at(start, length), physical });
        }
        let expected = [(0, 15, 100), (15, 5, 200), (30, 5, 215)];
        let expected = expected.map(|(start, length, physical)| Extent {
            bytes: ByteRange::at(start, length),
            physical,
        });
        assert_eq!(extents, expected);
    }

    #[test]
    fn a_stored_file_has_a_place_for_each_byte() {
        let path = std::env::temp_dir().join(format!("unisono-extents-{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("a test has room");
        file.write_all_at(&[1; 300_000], 1 << 20).expect("a test has room");
        file.sync_all().expect("it is stored");
        let queried = extents(&file);
        std::fs::remove_file(&path).expect("it was made above");
        let Ok((extents, _)) = queried else {
            println!("skipped: this file system does not report where files are");
            return;
        };
        let bytes: u64 = extents.iter().map(|extent| extent.bytes.length()).sum();
        assert!((300_000..400_000).contains(&bytes), "{extents:?}");
        assert!(extents.iter().all(|extent| extent.bytes.start >= 1 << 20 && extent.physical > 0));
    }
}
