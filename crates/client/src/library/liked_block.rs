//! Size of the blocks of an ordinary file, as its file system likes it: Lustre's stripe, which its
//! extended attribute `lustre.lov` tells, else `st_blksize`.
//!
//! The attribute holds one of the structures `lov_user_md_v1`, `lov_user_md_v3` and
//! `lov_comp_md_v1` of Lustre's `lustre_user.h`, in the byte order of the host.
//!
//! *Invariant:* no bytes of an attribute make this panic; what is not understood is ignored.

use policy::BLOCK_BYTES_MAX;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use units::MIB;

/// Least number of bytes in a block: smaller ones would make one server's part of the file
/// alternate with another one's within what the file system transfers at a time.
const BLOCK_BYTES_MIN: u64 = MIB;

/// Number of bytes above which a block is a half, a quarter, … of a stripe: servers hold whole
/// blocks in memory.
const BLOCK_BYTES_USUAL_MAX: u64 = 16 * MIB;

/// Extended attribute of files on Lustre.
const LAYOUT: &str = "lustre.lov";

/// Maximum size of an extended attribute in Linux.
const LAYOUT_BYTES_MAX: usize = 64 << 10;

/// First words of the structures: `LOV_USER_MAGIC_V1`, `LOV_USER_MAGIC_V3`.
const PLAIN: [u32; 2] = [0x0bd1_0bd0, 0x0bd3_0bd0];

/// First word of a layout of several components: `LOV_USER_MAGIC_COMP_V1`.
const COMPOSITE: u32 = 0x0bd6_0bd0;

/// Place of `lmm_stripe_size` in a plain layout.
const STRIPE_SIZE: usize = 24;

/// Place of `lcm_entry_count` in a composite layout, and of its entries.
const ENTRY_COUNT: usize = 14;
const ENTRIES: usize = 32;

/// Bytes of an entry (`lov_comp_md_entry_v1`), and the places of `lcme_offset` and `lcme_size` in
/// it.
const ENTRY_BYTES: usize = 48;
const ENTRY_OFFSET: usize = 24;
const ENTRY_SIZE: usize = 28;

/// Returns the number of bytes in a block of an open file.
pub(super) fn block_bytes_for(file: &File) -> std::io::Result<u64> {
    let stripe = layout_of(file).and_then(|layout| stripe_bytes(&layout));
    let liked = match stripe {
        Some(stripe) => stripe,
        None => file.metadata()?.blksize(),
    };
    Ok(block_bytes_of(liked))
}

fn layout_of(file: &File) -> Option<Vec<u8>> {
    let mut layout = vec![0; LAYOUT_BYTES_MAX];
    let length = rustix::fs::fgetxattr(file, LAYOUT, &mut layout[..]).ok()?;
    layout.truncate(length);
    Some(layout)
}

/// Returns the size of blocks for a file system that likes transfers of `liked` bytes.
fn block_bytes_of(liked: u64) -> u64 {
    let mut unit = liked.clamp(1, BLOCK_BYTES_MAX);
    while unit > BLOCK_BYTES_USUAL_MAX && unit.is_multiple_of(2) {
        unit /= 2;
    }
    BLOCK_BYTES_MIN.next_multiple_of(unit).min(BLOCK_BYTES_MAX)
}

/// Returns the bytes of a stripe of a layout; of several components, a common multiple.
fn stripe_bytes(layout: &[u8]) -> Option<u64> {
    if word(layout, 0)? != COMPOSITE {
        return plain_stripe_bytes(layout);
    }
    let count = u16::from_ne_bytes(bytes_at(layout, ENTRY_COUNT)?);
    let entry = |number: u16| layout.get(ENTRIES + usize::from(number) * ENTRY_BYTES..);
    let component = |entry: &[u8]| {
        let start = word(entry, ENTRY_OFFSET)? as usize;
        let end = start.checked_add(word(entry, ENTRY_SIZE)? as usize)?;
        plain_stripe_bytes(layout.get(start..end)?)
    };
    let stripes = (0..count).map_while(entry).filter_map(component);
    stripes.reduce(common_multiple)
}

fn plain_stripe_bytes(layout: &[u8]) -> Option<u64> {
    let is_plain = PLAIN.contains(&word(layout, 0)?);
    let bytes = word(layout, STRIPE_SIZE).filter(|bytes| is_plain && *bytes > 0)?;
    Some(u64::from(bytes))
}

/// Returns the least common multiple of two sizes, or the greater one if it is too large.
fn common_multiple(one: u64, other: u64) -> u64 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let multiple = (one / divisor).checked_mul(other);
    multiple.filter(|bytes| *bytes <= BLOCK_BYTES_MAX).unwrap_or(one.max(other))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

fn bytes_at<const COUNT: usize>(bytes: &[u8], at: usize) -> Option<[u8; COUNT]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    //! Proves: stripes of plain and composite layouts of Lustre are found, damaged layouts are
    //! ignored, and blocks are whole stripes or whole parts of one.

    use super::*;

    /// `lov_user_md_v1` of one object, or `lov_user_md_v3`, which has the name of a pool more.
    fn plain(magic: u32, stripe_bytes: u32) -> Vec<u8> {
        let mut layout = Vec::new();
        layout.extend(magic.to_ne_bytes()); // lmm_magic
        layout.extend(1_u32.to_ne_bytes()); // lmm_pattern: RAID 0
        layout.extend([0x11; 16]); // lmm_oi
        layout.extend(stripe_bytes.to_ne_bytes()); // lmm_stripe_size
        layout.extend(4_u16.to_ne_bytes()); // lmm_stripe_count
        layout.extend(0_u16.to_ne_bytes()); // lmm_stripe_offset
        if magic == PLAIN[1] {
            layout.extend(b"flash\0\0\0\0\0\0\0\0\0\0\0"); // lmm_pool_name
        }
        layout.extend([0x22; 24]); // lmm_objects[0]
        layout
    }

    /// `lov_comp_md_v1` of these components.
    fn composite(components: &[Vec<u8>]) -> Vec<u8> {
        let bytes: usize = components.iter().map(Vec::len).sum();
        let mut start = ENTRIES + components.len() * ENTRY_BYTES;
        let mut layout = Vec::new();
        layout.extend(COMPOSITE.to_ne_bytes()); // lcm_magic
        layout.extend(((start + bytes) as u32).to_ne_bytes()); // lcm_size
        layout.extend(7_u32.to_ne_bytes()); // lcm_layout_gen
        layout.extend(0_u16.to_ne_bytes()); // lcm_flags
        layout.extend((components.len() as u16).to_ne_bytes()); // lcm_entry_count
        layout.extend([0; 16]); // lcm_mirror_count and padding
        for (number, component) in components.iter().enumerate() {
            layout.extend((number as u32 + 1).to_ne_bytes()); // lcme_id
            layout.extend(0x10_u32.to_ne_bytes()); // lcme_flags: LCME_FL_INIT
            layout.extend([0; 8]); // lcme_extent.e_start
            layout.extend([0xff; 8]); // lcme_extent.e_end
            layout.extend((start as u32).to_ne_bytes()); // lcme_offset
            layout.extend((component.len() as u32).to_ne_bytes()); // lcme_size
            layout.extend([0; 16]); // lcme_layout_gen, lcme_timestamp and padding
            start += component.len();
        }
        layout.extend(components.concat());
        layout
    }

    #[test]
    fn layouts_of_lustre_tell_their_stripes() {
        let [v1, v3] = PLAIN;
        assert_eq!(stripe_bytes(&plain(v1, 4 << 20)), Some(4 << 20));
        assert_eq!(stripe_bytes(&plain(v3, 1 << 20)), Some(1 << 20));
        let progressive = [plain(v1, 1 << 20), plain(v3, 4 << 20), plain(v1, 3 << 20)];
        assert_eq!(stripe_bytes(&composite(&progressive)), Some(12 << 20));
        assert_eq!(stripe_bytes(&composite(&[])), None);
    }

    #[test]
    fn damaged_layouts_are_ignored() {
        let layout = composite(&[plain(PLAIN[0], 1 << 20), plain(PLAIN[1], 2 << 20)]);
        for length in 0..layout.len() {
            let _ = stripe_bytes(&layout[..length]);
        }
        assert_eq!(stripe_bytes(&layout[..ENTRIES]), None);
        assert_eq!(stripe_bytes(&plain(0x0bd2_0bd0, 1 << 20)), None, "an unknown structure");
        assert_eq!(stripe_bytes(&plain(PLAIN[0], 0)), None);
        let mut beyond = layout;
        beyond[ENTRIES + ENTRY_OFFSET..][..8].fill(0xff);
        assert_eq!(stripe_bytes(&beyond), Some(2 << 20));
    }

    #[test]
    fn blocks_are_whole_stripes_or_parts_of_one() {
        let mib = MIB;
        let sizes = [(0, 1), (4096, 1), (mib, 1), (4 * mib, 4), (3 * mib, 3), (64 * mib, 16)];
        for (liked, expected) in sizes {
            assert_eq!(block_bytes_of(liked), expected * mib, "{liked}");
        }
        assert_eq!(block_bytes_of(96 * mib), 12 * mib);
        assert_eq!(block_bytes_of(u64::MAX), 16 * mib);
    }

    #[test]
    fn a_file_without_a_layout_has_blocks_of_its_file_system() {
        let file = tempfile::tempfile().expect("a test may make a file");
        let liked = file.metadata().expect("it is open").blksize();
        assert_eq!(block_bytes_for(&file).ok(), Some(block_bytes_of(liked)));
    }
}
