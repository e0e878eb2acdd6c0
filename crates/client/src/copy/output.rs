//! Local targets of a copy: regular files, devices and pipes.

use super::part::PartFile;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use units::Timestamp;

/// Symbolic links followed one after the other, as many as Linux follows.
const LINKS_MAX: usize = 40;

/// A local target. A regular file is replaced atomically when all data is written. A device or a
/// pipe takes the data directly and is never replaced.
pub struct LocalOutput(Kind);

enum Kind {
    /// A regular file. A symbolic link is resolved to its target.
    Part(PartFile),
    /// A device or a pipe.
    Stream(File),
}

impl LocalOutput {
    /// Opens `path` for writing. Opening a named pipe blocks until a reader opens it.
    ///
    /// # Errors
    /// Fails when it cannot be written to.
    pub fn open(path: &Path) -> io::Result<Self> {
        let target = followed(path)?;
        let kind = match fs::metadata(path) {
            // /dev/stdout leads here. Uses the open descriptor, whatever kind of file it is.
            _ if target == Path::new("/proc/self/fd/1") => {
                Kind::Stream(io::stdout().as_fd().try_clone_to_owned()?.into())
            }
            _ if target.starts_with("/proc") => {
                Kind::Stream(File::options().write(true).open(target)?)
            }
            Ok(found) if !found.is_file() && !found.is_dir() => {
                Kind::Stream(File::options().write(true).open(path)?)
            }
            _ => Kind::Part(PartFile::new(&target)?),
        };
        Ok(Self(kind))
    }

    /// True if the target is written sequentially, every byte, zeros too.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.0, Kind::Stream(_))
    }

    /// Writes `bytes` at `offset` of a regular file. A stream appends them instead.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.0 {
            Kind::Part(part) => part.as_file().write_all_at(bytes, offset),
            Kind::Stream(file) => (&*file).write_all(bytes),
        }
    }

    /// Sets the length of a regular file. Ranges that were not written are holes.
    pub(super) fn set_length(&self, bytes: u64) -> io::Result<()> {
        match &self.0 {
            Kind::Part(part) => part.as_file().set_len(bytes),
            Kind::Stream(_) => Ok(()),
        }
    }

    /// Sets the time of the last change of a regular file.
    pub(super) fn set_modified(&self, modified: Timestamp) -> io::Result<()> {
        match &self.0 {
            Kind::Part(part) => {
                let since_1970 = Duration::from_nanos(modified.as_ns());
                part.as_file().set_modified(UNIX_EPOCH + since_1970)
            }
            Kind::Stream(_) => Ok(()),
        }
    }

    /// Finishes the target after all data is written.
    ///
    /// # Errors
    /// Fails when a file cannot be renamed to its target, for example because that is a directory.
    pub fn keep(self) -> io::Result<()> {
        match self.0 {
            Kind::Part(part) => part.keep(),
            Kind::Stream(_) => Ok(()),
        }
    }
}

/// Resolves the symbolic links of a path, which need not exist. Links of /proc are not followed,
/// because their text need not be a path.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        if at.starts_with("/proc") {
            return Ok(at);
        }
        let Ok(to) = fs::read_link(&at) else { return Ok(at) };
        at = at.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(Errno::LOOP.into())
}

impl Write for LocalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Part(part) => part.write(bytes),
            Kind::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Part(part) => part.flush(),
            Kind::Stream(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: links are followed to their end, wherever they lie and whether or not anything is
    //! there, and links in a ring are refused.
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed() {
        let room = tempfile::tempdir().expect("a test must have room");
        let at = |name: &str| room.path().join(name);
        fs::create_dir(at("d")).expect("a test must have room");
        for (to, link) in [("d/second", "first"), ("../end", "d/second"), ("ring", "ring")] {
            symlink(to, at(link)).expect("a test must have room");
        }
        let ends = followed(&at("first")).map(|end| end == at("d/../end"));
        assert!(ends.is_ok_and(|same| same));
        assert!(followed(&at("none")).is_ok_and(|end| end == at("none")));
        assert!(followed(&at("ring")).is_err());
    }
}
