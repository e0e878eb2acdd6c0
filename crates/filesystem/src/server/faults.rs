//! Faults of disks, as answers to clients.

use crate::server::files::open_file::OpenFile;
use policy::Location;
use units::{DiskId, ServerId};
use wire::Fault;
use world::{DiskError, Disks, RecordsError};

/// Returns a disk of this server, or the fault of a request that names another one.
pub(crate) fn disk_of<W: Disks>(world: &W, disk: DiskId) -> Result<&W::Disk, Fault> {
    let gone = || Fault::BadRequest { cause: format!("this server has no {disk}") };
    world.disks().get(disk.0 as usize).ok_or_else(gone)
}

/// Returns the fault of the records of server `server`.
pub(crate) fn records_fault(server: ServerId, error: &RecordsError) -> Fault {
    let cause = error.to_string();
    match error {
        RecordsError::NoSpace { .. } => Fault::NoSpace { server, cause },
        RecordsError::Failed { .. } => Fault::DiskFailed { server, cause },
    }
}

/// Returns the fault of a disk of server `server`.
pub(crate) fn disk_fault(server: ServerId, error: &DiskError) -> Fault {
    let cause = error.to_string();
    match error {
        DiskError::NoSpace { .. } => Fault::NoSpace { server, cause },
        DiskError::Vanished { .. } | DiskError::Failed { .. } | DiskError::Corrupt { .. } => {
            Fault::DiskFailed { server, cause }
        }
    }
}

/// Returns the fault of disk `disk` of server `server` during work on `file`.
pub(crate) fn file_fault(
    server: ServerId,
    file: &OpenFile,
    disk: DiskId,
    error: &DiskError,
) -> Fault {
    let (stripe, block_bytes) = (&file.stripe, file.stripe.block_bytes);
    let place = file.place_of(server).filter(|_| disk.0 < stripe.disks_per_server);
    match (error, place) {
        (DiskError::Corrupt { offset, length, .. }, Some(place)) => {
            let slot = offset / block_bytes;
            let block = stripe.block_of(Location { server: place, disk, slot });
            let range = file.block_range(block);
            // Damage that goes on in the next block of the object is not the following range of the
            // file.
            let start = range.start.saturating_add(offset % block_bytes).min(range.end);
            let length = (range.end - start).min(*length);
            let (file, cause) = (file.name().clone(), error.to_string());
            Fault::Corrupt { file, offset: start, length, server, cause }
        }
        (DiskError::Failed { .. }, _) => {
            let cause = format!("{error} (it belongs to {:?})", *file.name());
            Fault::DiskFailed { server, cause }
        }
        (other, _) => disk_fault(server, other),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: damage of an object is reported as bytes of its file, within its block and the file.
    use super::*;
    use policy::{Buffering, Pool, Protection, Stripe};
    use units::FileId;
    use wire::FileRecord;
    use world::Damage;

    /// Reported range for damage at `offset` of the object of 3 servers with 2 disks, on disk 1 of
    /// server 3, the last of the three, which has blocks 5, 11, 17 and so on.
    fn fault_range(block_bytes: u64, file_bytes: u64, offset: u64) -> Option<(u64, u64)> {
        let stripe = Stripe::round_robin(block_bytes, 3, 2);
        let (file, name) = (FileId(1), "f".to_owned());
        let (pool, buffering) = (Pool::Consecutive { first: 1, of: 4 }, Buffering::default());
        let (bytes, cuts, protection) = (file_bytes, 0, Protection::None);
        let record = FileRecord { file, name, bytes, cuts, stripe, pool, buffering, protection };
        let record = OpenFile::new(record);
        let (disk, object, length) = ("d".to_owned(), file, 65_536);
        let damage = Damage::Mismatch;
        let error = DiskError::Corrupt { disk, object, offset, length, damage };
        match file_fault(ServerId(3), &record, DiskId(1), &error) {
            Fault::Corrupt { file, offset, length, server: ServerId(3), .. } if file == "f" => {
                Some((offset, length))
            }
            _ => None,
        }
    }

    #[test]
    fn corrupt_disk_range_is_reported_as_file_bytes() {
        const PIECE: u64 = 65_536;
        const MIB: u64 = 1 << 20;
        assert_eq!(fault_range(MIB, 100 * MIB, 3 * PIECE), Some((5 * MIB + 3 * PIECE, PIECE)));
        assert_eq!(fault_range(MIB, 100 * MIB, MIB), Some((11 * MIB, PIECE)));
        // A damaged piece of several blocks is reported as its first block, up to the block's end.
        assert_eq!(fault_range(8192, 100 * MIB, PIECE), Some(((8 * 6 + 5) * 8192, 8192)));
        assert_eq!(fault_range(PIECE + 10, 100 * MIB, PIECE), Some((5 * (PIECE + 10) + PIECE, 10)));
        // The file ends within the piece, or before it.
        assert_eq!(fault_range(MIB, 5 * MIB + 100, 0), Some((5 * MIB, 100)));
        assert_eq!(fault_range(MIB, 5 * MIB, 0), Some((5 * MIB, 0)));
    }

    #[test]
    fn a_disk_without_the_file_is_a_disk_that_failed() {
        let stripe = Stripe::round_robin(1, 1, 1);
        let (pool, buffering, name) = (Pool::all(1), Buffering::default(), String::new());
        let file = FileId(1);
        let (bytes, cuts, protection) = (1, 0, Protection::None);
        let file = FileRecord { file, name, bytes, cuts, stripe, pool, buffering, protection };
        let file = OpenFile::new(file);
        let object = FileId(1);
        let (disk, damage) = (String::new(), Damage::Missing);
        let error = DiskError::Corrupt { disk, object, offset: 0, length: 1, damage };
        let fault = file_fault(ServerId(0), &file, DiskId(1), &error);
        assert!(matches!(fault, Fault::DiskFailed { .. }), "{fault:?}");
    }
}
