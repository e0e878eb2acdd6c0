//! What is written to under a local name.

use super::part::PartFile;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// As many symbolic links as Linux follows, one after the other.
const LINKS_MAX: usize = 40;

/// A file that is made or replaced when it is whole; or a device or a pipe, which takes what is
/// written to it and is never replaced.
pub struct LocalOutput(Kind);

enum Kind {
    /// A file; where its name is that of a symbolic link, what that leads to.
    Part(PartFile),
    /// A device or a pipe.
    Stream(File),
}

impl LocalOutput {
    /// Begins to write to `path`. A pipe with a name waits for somebody who reads it.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn open(path: &Path) -> io::Result<Self> {
        let target = followed(path)?;
        let kind = match fs::metadata(path) {
            // What /dev/stdout leads to: what this process has open already, whatever that is.
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

    /// Whether it takes every byte in its turn, zeros too.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.0, Kind::Stream(_))
    }

    /// Writes `bytes` at `offset` of a file; of a stream, where the bytes before them end.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.0 {
            Kind::Part(part) => part.as_file().write_all_at(bytes, offset),
            Kind::Stream(file) => (&*file).write_all(bytes),
        }
    }

    /// Says how long a file is: what was not written of it is a hole.
    pub(super) fn set_length(&self, bytes: u64) -> io::Result<()> {
        match &self.0 {
            Kind::Part(part) => part.as_file().set_len(bytes),
            Kind::Stream(_) => Ok(()),
        }
    }

    /// Ends it when everything is written.
    ///
    /// # Errors
    /// When a file cannot be in its place, for example because a directory is.
    pub fn keep(self) -> io::Result<()> {
        match self.0 {
            Kind::Part(part) => part.keep(),
            Kind::Stream(_) => Ok(()),
        }
    }
}

/// What a path leads to, whether or not anything is there. Links of /proc are not followed: what
/// they say need not be a path.
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
