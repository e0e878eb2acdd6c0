//! The process that holds the memory of a server, and does nothing else.

use crate::process::outlast_sigterm;
use interface::{ExitCode, UserError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, inotify, openat, statat};
use rustix::io::Errno;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// File in the data directory that names the keeper.
pub(crate) const KEEPER_FILE: &str = "memory.json";

/// Role of the keeper on the command line.
pub(crate) const ROLE: &str = "keep-memory";

/// Line by which a keeper says that it holds the memory.
pub(crate) const READY: &str = "ready";

/// Time for which a keeper waits for the file that names it.
const NAMED_TIMEOUT: Duration = Duration::from_secs(30);

/// Holds the memory that is this process's standard output, until the file in `directory` that
/// names this process is gone, or SIGTERM ends it, unless it `outlasts_sigterm`. Says on standard
/// error when it does.
///
/// # Errors
/// Fails when the directory cannot be watched.
pub fn keep_memory(directory: &Path, outlasts_sigterm: bool) -> Result<(), UserError> {
    if outlasts_sigterm {
        outlast_sigterm()?;
    }
    let refused = |error: Errno| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot watch {}", directory.display()),
            error.to_string(),
            "a limit of the system may be reached, such as fs.inotify.max_user_instances",
        )
    };
    // The directory itself: it may get another path.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = openat(CWD, directory, flags, Mode::empty()).map_err(refused)?;
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
    let watch = watch.map_err(refused)?;
    let events = inotify::WatchFlags::DELETE
        | inotify::WatchFlags::DELETE_SELF
        | inotify::WatchFlags::MOVED_FROM
        | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, directory, events).map_err(refused)?;
    // If the server is gone, no file names this process.
    let _ = writeln!(std::io::stderr(), "{READY}");
    let begun = Instant::now();
    let mut was_named = false;
    loop {
        match statat(&held, KEEPER_FILE, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => was_named = true,
            Err(Errno::NOENT) if was_named || begun.elapsed() >= NAMED_TIMEOUT => return Ok(()),
            Err(_) => {}
        }
        let limit = Timespec { tv_sec: NAMED_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let mut polled = [PollFd::new(&watch, PollFlags::IN)];
        // An interrupted wait looks again.
        let _ = poll(&mut polled, if was_named { None } else { Some(&limit) });
        let mut events = [0; 4096];
        while matches!(rustix::io::read(&watch, &mut events), Ok(read) if read > 0) {}
    }
}
