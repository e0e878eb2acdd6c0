//! Files of an instance that lack bytes, because data directories are lost.

use crate::instance::LostDisk;
use crate::session::Session;
use interface::UserError;
use policy::Location;
use units::{ByteRange, DiskId, ServerId};
use wire::{EntryKind, FileRecord};

/// A file that has bytes in lost data directories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostFile {
    /// Name of the file.
    pub name: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of bytes that cannot be read, as far as they were written.
    pub lost_bytes: u64,
    /// The first bytes that cannot be read.
    pub first: ByteRange,
}

impl Session {
    /// The files that have bytes in lost data directories, and in no copy that is sure to have all
    /// changes. Sorted by name, and with the number of all files.
    pub fn lost_files(&self) -> Result<(Vec<LostFile>, usize), UserError> {
        let lost = self.instance().read()?.degraded.unwrap_or_default();
        let entries = self.walk("")?;
        let files = entries.into_iter().filter_map(|entry| match entry.kind {
            EntryKind::File(record) => Some(record),
            EntryKind::Directory(_) | EntryKind::Special(_) => None,
        });
        let files: Vec<FileRecord> = files.collect();
        let statuses = self.status()?.into_iter().filter_map(|state| state.status.ok());
        let behind: Vec<ServerId> = statuses.flat_map(|status| status.behind).collect();
        let lost_of = |file| lost_of(file, &lost, &behind);
        Ok((files.iter().filter_map(lost_of).collect(), files.len()))
    }
}

/// Bytes that a file lacks; `None` if it lacks none. Copies of the parts of the servers `behind`
/// may lack changes.
fn lost_of(file: &FileRecord, lost: &[LostDisk], behind: &[ServerId]) -> Option<LostFile> {
    let stripe = &file.stripe;
    let is_lost = |at: ServerId| lost.iter().any(|one| one.server == at.0);
    let has_copy = |place: ServerId, disk: DiskId| {
        if file.protection.rows(stripe).is_some() {
            // Its rows have nothing against a second loss.
            let mut others = file.servers().filter(|other| *other != file.pool.server(place));
            return !others.any(is_lost) && !behind.contains(&file.pool.server(place));
        }
        let Some(copy) = file.protection.copy_of(place, stripe.servers) else { return false };
        let at = file.pool.server(copy);
        let is_lost = lost.iter().any(|one| one.server == at.0 && one.disk == disk.0);
        !is_lost && !behind.contains(&file.pool.server(place))
    };
    let lost_part = |lost: &LostDisk| {
        let server = file.pool.place_of(ServerId(lost.server), stripe.servers)?;
        let disk = Some(DiskId(lost.disk)).filter(|disk| disk.0 < stripe.disks_per_server)?;
        if has_copy(server, disk) {
            return None;
        }
        let bytes = stripe.object_bytes(server, disk, file.bytes);
        (bytes > 0).then(|| {
            let first = stripe.block_of(Location { server, disk, slot: 0 });
            (bytes, stripe.block_range(first, file.bytes))
        })
    };
    let parts: Vec<(u64, ByteRange)> = lost.iter().filter_map(lost_part).collect();
    let first = parts.iter().map(|(_, first)| *first).min_by_key(|first| first.start)?;
    let lost_bytes = parts.iter().map(|(bytes, _)| bytes).sum();
    Some(LostFile { name: file.name.clone(), bytes: file.bytes, lost_bytes, first })
}

#[cfg(test)]
mod tests {
    //! Proves: the bytes that a file lacks are counted, and its first block among them is named.
    use super::*;
    use policy::{Buffering, Pool, Protection, Stripe};
    use units::FileId;

    /// Lost bytes, and first range, of a file on servers 1, 2 and 0, with 2 disks each.
    fn lost(bytes: u64, lost: &[(u32, u32)]) -> Option<(u64, u64, u64)> {
        lost_with(Protection::None, bytes, lost, &[])
    }

    /// Lost bytes of a file with a protection, where copies of parts of some servers are behind.
    fn lost_with(
        protection: Protection,
        bytes: u64,
        lost: &[(u32, u32)],
        behind: &[u32],
    ) -> Option<(u64, u64, u64)> {
        let (stripe, pool) = (Stripe::round_robin(10, 3, 2), Pool::Consecutive { first: 1, of: 3 });
        let (name, buffering) = ("f".to_owned(), Buffering::default());
        let (cuts, file) = (0, FileId(1));
        let record = FileRecord { file, name, bytes, cuts, stripe, pool, buffering, protection };
        let of = |(server, disk): &(u32, u32)| LostDisk {
            server: *server,
            disk: *disk,
            cause: String::new(),
        };
        let behind: Vec<ServerId> = behind.iter().copied().map(ServerId).collect();
        let found = lost_of(&record, &lost.iter().map(of).collect::<Vec<_>>(), &behind)?;
        Some((found.lost_bytes, found.first.start, found.first.end))
    }

    #[test]
    fn lost_bytes_are_counted() {
        // Blocks 0, 6, 12 are on disk 0 of server 1, blocks 4 and 10 on disk 1 of server 2.
        assert_eq!(lost(125, &[(1, 0)]), Some((25, 0, 10)));
        assert_eq!(lost(125, &[(2, 1)]), Some((20, 40, 50)));
        assert_eq!(lost(125, &[(2, 1), (1, 0)]), Some((45, 0, 10)));
        assert_eq!(lost(35, &[(2, 1)]), None, "it has no block there");
        assert_eq!(lost(125, &[(2, 5)]), None, "it does not use such a disk");
        assert_eq!(lost(0, &[(1, 0)]), None);
    }

    #[test]
    fn bytes_with_a_copy_are_not_lost() {
        let mirrored =
            |lost: &[(u32, u32)], behind: &[u32]| lost_with(Protection::Mirror, 125, lost, behind);
        // The copy of server 1 is on server 2, and that of server 2 on server 0.
        assert_eq!(mirrored(&[(1, 0)], &[]), None);
        assert_eq!(mirrored(&[(1, 0), (2, 1)], &[]), None, "another disk has the copy");
        assert_eq!(mirrored(&[(1, 0), (2, 0)], &[]), Some((25, 0, 10)), "both are lost");
        assert_eq!(mirrored(&[(1, 0)], &[1]), Some((25, 0, 10)), "the copy may lack changes");
        assert_eq!(mirrored(&[(1, 0)], &[2]), None);
    }
}
