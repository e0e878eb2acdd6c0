//! Paths of the local file system that lie below a mount of an instance (`unisono mount`).
//!
//! *Invariants:*
//! - Only a mount of an instance in the table of mounts is believed: a copy of a tree may have kept
//!   the attributes of the mount.
//! - A path means the file that the kernel would open or create by it: links are followed, also the
//!   last one. It never means a file of another instance.

use crate::instance::Instance;
use interface::{ErrorKind, UserError};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wire::instance_name;

/// Types of the file system of a mount, as `/proc/self/mountinfo` shows it. The one that root has
/// mounted has no second part.
pub const MOUNT_TYPES: [&[u8]; 2] = [b"fuse.unisono", b"fuse"];

/// Start of the source of a mount, before the directory of the instance.
pub const MOUNT_SOURCE: &str = "unisono:";

/// Extended attribute of each file and directory of a mount: the directory of the instance.
pub const INSTANCE_ATTRIBUTE: &str = "user.unisono.instance";

/// Extended attribute of each file and directory of a mount: its name in the instance, which of the
/// root is empty.
pub const NAME_ATTRIBUTE: &str = "user.unisono.path";

/// Most symbolic links that are followed in one path, as in Linux.
const LINKS_MAX: usize = 40;

/// Most bytes of the value of an attribute.
const ATTRIBUTE_BYTES_MAX: usize = 4096;

/// A file or directory below a mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountedName {
    /// Directory of the instance.
    pub instance: PathBuf,
    /// Name in the instance.
    pub name: String,
}

impl MountedName {
    /// Finds the instance and the name of a path, which need not exist. `None` for a path that does
    /// not lie below a mount.
    ///
    /// # Errors
    /// Fails when the process that served the mount has ended, and when the path lies below a mount
    /// whose attributes or own parts make no name.
    pub fn of_path(path: &Path) -> Result<Option<Self>, UserError> {
        match Mount::all() {
            mounts if mounts.is_empty() => Ok(None),
            mounts => find(&mounts, path),
        }
    }
}

impl Instance {
    /// The instance that a user names by a path: a directory below a mount stands for the instance
    /// that is mounted, any other directory is that of an instance.
    ///
    /// # Errors
    /// As for [`MountedName::of_path`].
    pub fn named(path: impl Into<PathBuf>) -> Result<Self, UserError> {
        let path = path.into();
        let mounted = MountedName::of_path(&path)?;
        Ok(Self::at(mounted.map_or(path, |mounted| mounted.instance)))
    }
}

/// A mount of an instance that this process sees.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    /// Number of the device, as `stat` gives it.
    device: u64,
    /// Directory at which it is mounted.
    point: PathBuf,
    /// True if that is the root of the instance, not a directory in it.
    is_root: bool,
    /// Directory of the instance.
    instance: PathBuf,
}

impl Mount {
    /// All of them; none where the system does not say.
    fn all() -> Vec<Self> {
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        table.split(|byte| *byte == b'\n').filter_map(Self::of_line).collect()
    }

    /// The mount that a line of `mountinfo` describes, if it is one of an instance:
    /// `36 35 0:52 / /mnt/u rw,nosuid - fuse.unisono unisono:/run/instance rw`.
    fn of_line(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let mut device = str::from_utf8(fields.nth(2)?).ok()?.split(':').map(str::parse);
        let (major, minor) = (device.next()?.ok()?, device.next()?.ok()?);
        let is_root = fields.next()? == b"/";
        let point = unescaped_path(fields.next()?);
        let mut kind_and_source = fields.skip_while(|field| *field != b"-").skip(1);
        let kind = kind_and_source.next()?;
        let instance = kind_and_source.next()?.strip_prefix(MOUNT_SOURCE.as_bytes())?;
        let instance = unescaped_path(instance);
        let device = rustix::fs::makedev(major, minor);
        MOUNT_TYPES.contains(&kind).then_some(Self { device, point, is_root, instance })
    }
}

/// A path as `/proc/self/mountinfo` writes it: spaces and the like are `\` and three octal digits.
pub fn unescaped_path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Finds the nearest part of a path that the kernel can reach, and asks it for its name. Parts
/// behind it are appended, so a file has a name before it exists, and after the servers have ended.
fn find(mounts: &[Mount], path: &Path) -> Result<Option<MountedName>, UserError> {
    let Ok(mut reached) = std::path::absolute(path) else { return Ok(None) };
    let mut missing: Vec<OsString> = Vec::new();
    let mut links = 0;
    loop {
        let failure = match attributes(mounts, &reached) {
            Ok(None) => return Ok(None),
            Ok(Some(attributes)) => return named(path, attributes, &missing).map(Some),
            Err(failure) => failure,
        };
        // A link whose target does not exist: a file that is created by it is the target.
        if let Ok(target) = reached.read_link() {
            links += 1;
            if links > LINKS_MAX {
                return Ok(None);
            }
            reached.pop();
            reached.push(target);
            continue;
        }
        if let Some(mount) = mounts.iter().find(|mount| is_at(&mount.point, &reached)) {
            // The mount answers, but its servers do not: connecting to them tells why.
            let has_ended = failure.kind() == io::ErrorKind::NotConnected;
            if has_ended || !mount.is_root {
                return Err(unusable(path, mount, &failure));
            }
            return named(path, (mount.instance.clone(), OsString::new()), &missing).map(Some);
        }
        // The kernel follows no ".." behind a part that does not exist.
        let Some(part) = reached.file_name() else { return Ok(None) };
        missing.push(part.to_owned());
        reached.pop();
    }
}

/// Directory of the instance and name in it, of a path that exists; `None` for one on another file
/// system.
fn attributes(mounts: &[Mount], path: &Path) -> io::Result<Option<(PathBuf, OsString)>> {
    let device = path.metadata()?.dev();
    if !mounts.iter().any(|mount| mount.device == device) {
        return Ok(None);
    }
    let read = |name: &str| -> io::Result<OsString> {
        let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
        let length = rustix::fs::getxattr(path, name, &mut value)?;
        value.truncate(length);
        Ok(OsString::from_vec(value))
    };
    Ok(Some((read(INSTANCE_ATTRIBUTE)?.into(), read(NAME_ATTRIBUTE)?)))
}

/// True if `path`, whose parent directory can be reached, is the mount point.
fn is_at(point: &Path, path: &Path) -> bool {
    let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else { return false };
    point.file_name() == Some(last)
        && parent.canonicalize().is_ok_and(|parent| point.parent() == Some(&parent))
}

/// The name of the parts that are missing, the last one first, behind the part with `attributes`.
fn named(
    path: &Path,
    (instance, directory): (PathBuf, OsString),
    missing: &[OsString],
) -> Result<MountedName, UserError> {
    let cannot = |cause: &str| {
        UserError::of_kind(
            ErrorKind::BadName,
            format!("cannot use {}", path.display()),
            format!("it lies below a mount of an instance, and {cause}"),
            "names in an instance are UTF-8; use one release for the mount and the program",
        )
    };
    if !instance.is_absolute() {
        return Err(cannot("the mount does not tell the directory of the instance"));
    }
    let parts = std::iter::once(&directory).chain(missing.iter().rev());
    let name = parts.map(OsString::as_os_str).collect::<Vec<&OsStr>>().join(OsStr::new("/"));
    match str::from_utf8(name.as_bytes()) {
        // Of the root, the first part is empty.
        Ok(name) => Ok(MountedName { instance, name: instance_name(name) }),
        Err(_) => Err(cannot("its name is not UTF-8")),
    }
}

/// The error of a mount whose own directory cannot be used.
fn unusable(path: &Path, mount: &Mount, failure: &io::Error) -> UserError {
    let (point, instance) = (mount.point.display(), mount.instance.display());
    UserError::of_kind(
        ErrorKind::NoInstance,
        format!("cannot use {}", path.display()),
        match failure.kind() {
            io::ErrorKind::NotConnected => {
                format!("the process that served the mount {point} of {instance} has ended")
            }
            _ => format!("the mount {point} of {instance} does not tell names: {failure}"),
        },
        format!("unmount it with: unisono unmount --lazy {point}   and mount the instance again"),
    )
}

#[cfg(test)]
mod tests;
