//! Mount points of this machine, and how they are freed.

use client::{MOUNT_SOURCE, MOUNT_TYPES, unescaped_path};
use interface::{ErrorKind, UserError};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount as unmount_point};
use std::io;
use std::path::Path;
use std::process::Command;

/// A program of the system that frees mount points of ordinary users.
const HELPER: &str = "fusermount3";

/// File system that is mounted on a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MountPoint {
    /// Nothing.
    Free,
    /// An instance.
    Instance,
    /// Another file system.
    Other,
}

/// Returns what is mounted on a directory, whose path must be absolute and without links.
///
/// # Errors
/// Fails when the system does not list its mount points.
pub fn mount_point(directory: &Path) -> io::Result<MountPoint> {
    let all = std::fs::read("/proc/self/mountinfo")?;
    let mut found = MountPoint::Free;
    for line in all.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ');
        let is_there = words.nth(4).is_some_and(|path| unescaped_path(path) == directory);
        // Behind a lone dash are the type and the source. The last of several mounts is the one
        // that is seen.
        if is_there {
            words.find(|word| *word == b"-");
            let is_known = words.next().is_some_and(|kind| MOUNT_TYPES.contains(&kind));
            let source = words.next().unwrap_or_default();
            let is_instance = is_known && source.starts_with(MOUNT_SOURCE.as_bytes());
            found = if is_instance { MountPoint::Instance } else { MountPoint::Other };
        }
    }
    Ok(found)
}

/// Unmounts an instance from a directory. With `lazy` also while programs use it: they keep what
/// they have open, and the name is free at once.
///
/// # Errors
/// Fails when no instance is mounted there, or when programs use it.
pub fn unmount(directory: &Path, lazy: bool) -> Result<(), UserError> {
    let what = format!("cannot unmount {}", directory.display());
    // A mount whose process has ended cannot be resolved any more, but its parent can.
    let place = std::fs::canonicalize(directory).or_else(|error| match directory.file_name() {
        Some(name) => {
            let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
            std::fs::canonicalize(parent.unwrap_or(Path::new("."))).map(|it| it.join(name))
        }
        None => Err(error),
    });
    let failed = |error: io::Error| {
        let help = "name the directory of a mount; `mount | grep unisono:` lists them";
        UserError::of_kind(ErrorKind::Usage, &what, error.to_string(), help)
    };
    let place = place.map_err(failed)?;
    if mount_point(&place).map_err(failed)? != MountPoint::Instance {
        let cause = "no instance is mounted there";
        let help = "name the directory of a mount; `mount | grep unisono:` lists them";
        return Err(UserError::of_kind(ErrorKind::Usage, what, cause, help));
    }
    release(&place, lazy).map_err(|error| match error.raw_os_error() == Some(16) {
        true => UserError::of_kind(
            ErrorKind::Usage,
            &what,
            "programs use files or directories in it",
            "end them (`fuser -m DIR` lists them), or use --lazy",
        ),
        false => {
            let help = format!("unmount as the user who mounted it; {HELPER} must be installed");
            UserError::of_kind(ErrorKind::Usage, &what, error.to_string(), help)
        }
    })
}

/// Frees a mount point, by the system or, as an ordinary user must, by its helper.
pub(crate) fn release(place: &Path, lazy: bool) -> io::Result<()> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match unmount_point(place, flags) {
        Err(Errno::PERM) => {}
        other => return other.map_err(io::Error::from),
    }
    let mut helper = Command::new(HELPER);
    helper.arg("-u").args(lazy.then_some("-z")).arg("--").arg(place);
    let ended = helper.output()?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    match ended.stderr.windows(4).any(|word| word == b"busy") {
        true => Err(io::Error::from_raw_os_error(16)),
        false => Err(io::Error::other(said)),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: what is mounted on a directory is told apart from what is below it.
    use super::*;

    #[test]
    fn the_root_is_another_file_system() {
        assert_eq!(mount_point(Path::new("/")).ok(), Some(MountPoint::Other));
        assert_eq!(mount_point(Path::new("/no such directory")).ok(), Some(MountPoint::Free));
    }
}
