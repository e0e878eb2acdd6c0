//! Sessions: what a process writes to files is there for the next one while the machine runs and
//! the file system stays mounted.
//!
//! Later, only what a sync has covered is sure to be there: a file system that was shut down after
//! an error, repaired and mounted again has lost as much as one whose machine crashed.

use rustix::fs::{AtFlags, StatxFlags, major, minor};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

/// Identity of one session.
pub(super) type Session = [u8; 16];

/// `STATX_MNT_ID_UNIQUE` (since Linux 6.8): a mount number that is never used again.
const MOUNT_NUMBER: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Returns the present session of the file system of a directory.
pub(super) fn present_session(directory: &OwnedFd) -> Session {
    let mount = mount_in_sysfs(directory).or_else(|| mount_number(directory)).unwrap_or_default();
    (u128::from_be_bytes(present_boot()) ^ u128::from(mount)).to_be_bytes()
}

/// Returns the short form of a session, for the log.
pub(super) fn log_session(session: Session) -> u64 {
    let [first, second] = [0, 8].map(|at| {
        session[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    });
    // The log has no place for the largest number.
    (first ^ second).min(u64::MAX - 1)
}

/// Returns the inode of the directory that the system makes for a mounted file system, as ext4, XFS
/// and F2FS have one. No other mount gets the same. It does not depend on who looks.
fn mount_in_sysfs(directory: &OwnedFd) -> Option<u64> {
    let device = rustix::fs::fstat(directory).ok()?.st_dev;
    let name = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let name = fs::read_link(name).ok()?.file_name()?.to_owned();
    let kinds = fs::read_dir("/sys/fs").ok()?.flatten();
    kinds.filter_map(|kind| Some(fs::metadata(kind.path().join(&name)).ok()?.ino())).next()
}

/// Returns the number of the mount, if the system numbers them. A process with other mounts has
/// another number.
fn mount_number(directory: &OwnedFd) -> Option<u64> {
    let found = rustix::fs::statx(directory, c"", AtFlags::EMPTY_PATH, MOUNT_NUMBER).ok()?;
    let is_unique = StatxFlags::from_bits_retain(found.stx_mask).contains(MOUNT_NUMBER);
    is_unique.then_some(found.stx_mnt_id)
}

/// Returns the identity of the current boot. If the system does not tell, returns a unique one, so
/// that every start counts as a boot.
fn present_boot() -> Session {
    let told = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
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

#[cfg(test)]
mod tests {
    //! Proves: a directory stays in its session.
    use super::*;
    use rustix::fs::{Mode, OFlags};

    #[test]
    fn a_directory_has_one_session() {
        let place = tempfile::tempdir().expect("a test can have a directory");
        let open = || rustix::fs::open(place.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        assert_eq!(present_session(&open()), present_session(&open()));
        assert_ne!(present_session(&open()), [0; 16]);
    }
}
