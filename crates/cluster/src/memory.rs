//! Memory of a server's disk, which outlives the server: a process that does nothing else, the
//! *memory keeper*, holds it too.
//!
//! The data directory of such a server has its records, and a file that names the keeper. The
//! keeper ends when that file is gone.
//!
//! *Invariants:*
//! - Memory that holds data of files goes only when the user says so, or with its machine.
//! - A server never begins with new memory where data of files has been lost.

use crate::durable::replace;
use crate::process::{ProcessEnd, Program, cannot_start};
use crate::process_name::{end_of, name_of};
use client::ProcessName;
use interface::{ExitCode, UserError, size_word};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use world_real::{ReserveError, memory_in_use, reserve_memory, use_memory};

/// File in the data directory that names the keeper.
const KEEPER_FILE: &str = "memory.json";

/// Time for which a keeper waits for the file that names it.
const NAMED_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a keeper to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Role of the keeper on the command line.
const ROLE: &str = "keep-memory";

/// Content of [`KEEPER_FILE`].
#[derive(Serialize, Deserialize)]
struct Kept {
    keeper: ProcessName,
    bytes: u64,
}

impl Kept {
    /// Path of the memory.
    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/1", self.keeper.pid).into()
    }

    /// True if the keeper holds the memory. One that has ended has its name until it is waited for.
    fn is_held(&self) -> bool {
        end_of(&self.keeper).is_some() && fs::symlink_metadata(self.path()).is_ok()
    }
}

/// Refuses a data directory whose memory is gone, with data of files. `server` is the number of
/// its server.
pub(crate) fn refuse_lost(directory: &Path, server: u32) -> Result<(), UserError> {
    match kept(directory)? {
        Some(kept) if !kept.is_held() => Err(UserError::new(
            ExitCode::NoServer,
            format!("the memory of server {server} is gone"),
            format!("process {}, which held it, has ended, or the machine", kept.keeper.pid),
            format!(
                "its files are lost; to begin again: unisono stop --discard   (on another host: \
                 rm -r {})",
                directory.display()
            ),
        )),
        _ => Ok(()),
    }
}

/// Makes `bytes` of memory the disk of this process, with room for `other_bytes` of other data:
/// that of an earlier process of this server, or new one.
pub(crate) fn open(
    directory: &Path,
    server: u32,
    bytes: u64,
    other_bytes: u64,
) -> Result<(), UserError> {
    refuse_lost(directory, server)?;
    let file = match kept(directory)? {
        Some(kept) if kept.bytes != bytes => {
            let (has, wanted) = (size_word(kept.bytes), size_word(bytes));
            return Err(UserError::usage(
                format!("server {server} has other memory"),
                format!("it has {has} with files, and {wanted} are wanted"),
                format!("start with --memory {has}"),
            ));
        }
        Some(kept) => {
            let file = File::options().read(true).write(true).open(kept.path());
            // The keeper was there after its file was opened, so the file was its file.
            refuse_lost(directory, server)?;
            file.map_err(|error| cannot_use(server, &error.to_string()))?
        }
        None => {
            let made = reserve_memory(bytes, other_bytes);
            let file = made.map_err(|error| cannot_reserve(server, bytes, &error))?;
            keep(directory, &file, bytes)?;
            file
        }
    };
    let used = use_memory(file).map(|_| ());
    used.map_err(|cause| cannot_use(server, &cause))
}

/// Starts the keeper of new memory.
fn keep(directory: &Path, file: &File, bytes: u64) -> Result<(), UserError> {
    let role = [ROLE, "--directory", &directory.display().to_string()].map(str::to_owned);
    let mut command: Command = Program::current()?.command(&role);
    let held = file.try_clone().map_err(|error| cannot_start(&command, &error))?;
    command.stdin(Stdio::null()).stdout(held).stderr(Stdio::null()).process_group(0);
    let keeper = command.current_dir("/").spawn();
    let keeper = keeper.map_err(|error| cannot_start(&command, &error))?;
    let no_name = || cannot_start(&command, &std::io::Error::other("it has ended"));
    let kept = Kept { keeper: name_of(keeper.id()).ok_or_else(no_name)?, bytes };
    let text = serde_json::to_vec(&kept).unwrap_or_default();
    let path = directory.join(KEEPER_FILE);
    replace(&path, &text).map_err(|error| crate::durable::cannot_write(&path, &error))
}

/// Gives the memory of this server back, when the server ends and it holds no data of files.
pub(crate) fn give_back_empty(directory: &Path) {
    if memory_in_use() == Some(0) {
        // If this fails, the memory stays until the user discards it.
        let _ = discard(directory);
    }
}

/// Ends the keeper of a data directory. What the memory holds is lost. Returns `false` if the
/// directory has none.
pub(crate) fn discard(directory: &Path) -> Result<bool, UserError> {
    let Some(kept) = kept(directory)? else { return Ok(false) };
    let keeper: Option<ProcessEnd> = end_of(&kept.keeper);
    let path = directory.join(KEEPER_FILE);
    fs::remove_file(&path).map_err(|error| crate::durable::cannot_write(&path, &error))?;
    if let Some(keeper) = keeper {
        keeper.signal(Signal::TERM);
        keeper.signal(Signal::CONT);
        keeper.wait_until(Instant::now() + END_TIMEOUT);
    }
    Ok(true)
}

/// True if a process holds the memory of a data directory.
pub(crate) fn is_held(directory: &Path) -> bool {
    kept(directory).ok().flatten().is_some_and(|kept| kept.is_held())
}

/// The keeper of a data directory, as its file says.
fn kept(directory: &Path) -> Result<Option<Kept>, UserError> {
    let path = directory.join(KEEPER_FILE);
    let unreadable = |cause: String| {
        UserError::usage(
            format!("cannot read {}", path.display()),
            cause,
            "it names the process that holds the files of a server; restore it",
        )
    };
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// Holds the memory that is this process's standard output, until the file in `directory` that
/// names this process is gone.
///
/// # Errors
/// Fails when the directory cannot be watched.
pub fn keep_memory(directory: &Path) -> Result<(), UserError> {
    let refused = |error: std::io::Error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot watch {}", directory.display()),
            error.to_string(),
            "this process holds the memory of a server, which starts it",
        )
    };
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
    let watch = watch.map_err(|error| refused(error.into()))?;
    let events = inotify::WatchFlags::DELETE
        | inotify::WatchFlags::DELETE_SELF
        | inotify::WatchFlags::MOVED_FROM
        | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, directory, events).map_err(|error| refused(error.into()))?;
    let path: PathBuf = directory.join(KEEPER_FILE);
    let begun = Instant::now();
    let mut was_named = false;
    loop {
        match path.exists() {
            true => was_named = true,
            false if was_named || begun.elapsed() >= NAMED_TIMEOUT => return Ok(()),
            false => {}
        }
        let limit = Timespec { tv_sec: NAMED_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let mut polled = [PollFd::new(&watch, PollFlags::IN)];
        // An interrupted wait looks again.
        let _ = poll(&mut polled, if was_named { None } else { Some(&limit) });
        let mut events = [0; 4096];
        while matches!(rustix::io::read(&watch, &mut events), Ok(read) if read > 0) {}
    }
}

fn cannot_reserve(server: u32, bytes: u64, error: &ReserveError) -> UserError {
    let wanted = size_word(bytes);
    let (cause, help) = match error {
        ReserveError::NotAvailable { available_bytes } => {
            let available = size_word(available_bytes >> 20 << 20);
            (
                format!("{available} were available to this server and those beside it"),
                "start with less: --memory is the memory of each server",
            )
        }
        ReserveError::Refused(cause) => (cause.clone(), "start with --data instead of --memory"),
    };
    UserError::new(
        ExitCode::NoServer,
        format!("server {server} cannot reserve {wanted} of memory"),
        cause,
        help,
    )
}

fn cannot_use(server: u32, cause: &str) -> UserError {
    UserError::new(
        ExitCode::NoServer,
        format!("server {server} cannot use its memory"),
        cause,
        "to begin again without its files: unisono stop --discard",
    )
}
