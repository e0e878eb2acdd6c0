//! Mount points of this machine, and how they are freed.

use interface::{ErrorKind, UserError};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount as unmount_point};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Start of the source of a mount of an instance, as the system lists it. Behind it is the
/// directory of the instance.
pub(crate) const SOURCE: &str = "unisono:";

/// A program of the system that frees mount points of ordinary users.
const HELPER: &str = "fusermount3";

/// What is mounted on a directory.
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
        let is_there = words.nth(4).is_some_and(|path| unescaped(path) == directory);
        // Behind a lone dash are the type and the source. The last of several mounts is the one
        // that is seen.
        if is_there {
            words.find(|word| *word == b"-");
            let is_fuse = words.next().is_some_and(|kind| kind.starts_with(b"fuse"));
            let source = words.next().unwrap_or_default();
            let is_instance = is_fuse && source.starts_with(SOURCE.as_bytes());
            found = if is_instance { MountPoint::Instance } else { MountPoint::Other };
        }
    }
    Ok(found)
}

/// Reads a path of the list of mount points, which writes some bytes as a backslash and three octal
/// digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let (mut path, mut left) = (Vec::with_capacity(word.len()), word);
    while let Some((first, rest)) = left.split_first() {
        let digits = rest.get(..3).filter(|_| *first == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                left = &rest[3..];
            }
            None => {
                path.push(*first);
                left = rest;
            }
        }
    }
    OsString::from_vec(path).into()
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
    //! Proves: paths of mount points are read as the system writes them.
    use super::*;

    #[test]
    fn escaped_bytes_are_read() {
        for (written, path) in [
            ("/mnt", "/mnt"),
            ("/a\\040b", "/a b"),
            ("/tab\\011", "/tab\t"),
            ("/slash\\134x", "/slash\\x"),
            ("/end\\1", "/end\\1"),
        ] {
            assert_eq!(unescaped(written.as_bytes()), Path::new(path));
        }
    }

    #[test]
    fn the_root_is_another_file_system() {
        assert_eq!(mount_point(Path::new("/")).ok(), Some(MountPoint::Other));
        assert_eq!(mount_point(Path::new("/no such directory")).ok(), Some(MountPoint::Free));
    }
}
