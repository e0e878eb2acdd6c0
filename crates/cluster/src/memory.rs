//! Memory of a server's disk, which outlives the server: a process that does nothing else, the
//! *memory keeper*, holds it too.
//!
//! The data directory of such a server has its records, and a file that names the keeper. The
//! keeper ends when that file is gone.
//!
//! *Invariants:*
//! - Memory that holds data of files goes only when the user says so, or with its machine.
//! - A server never begins with new memory where data of files has been lost.
//! - One server uses a memory at a time: it has it locked.

use crate::durable::{cannot_write, replace};
use crate::memory_keeper::{KEEPER_FILE, READY, ROLE};
use crate::process::{ProcessEnd, Program, cannot_start};
use crate::process_name::{end_of, name_of};
use client::ProcessName;
use interface::{ExitCode, UserError, size_word};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use world_real::{ReserveError, holds_objects, memory_in_use, reserve_memory, use_memory};

/// Time limit of a keeper to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Content of [`KEEPER_FILE`].
#[derive(Serialize, Deserialize)]
struct Kept {
    keeper: ProcessName,
    bytes: u64,
    /// Device and inode of the directory: a copy of it does not have the memory.
    directory: (u64, u64),
}

/// A keeper that holds memory.
struct Holder {
    keeper: ProcessEnd,
    /// Path of the memory.
    path: PathBuf,
}

impl Kept {
    /// The keeper, if it holds the memory of this directory.
    fn holder(&self, directory: &Path) -> Option<Holder> {
        let keeper = end_of(&self.keeper)?;
        let path = PathBuf::from(format!("/proc/{}/fd/1", self.keeper.pid));
        // A process that has ended has its name until it is waited for, but no files.
        let is_held = fs::symlink_metadata(&path).is_ok();
        (is_held && identity(directory).ok()? == self.directory).then_some(Holder { keeper, path })
    }
}

fn identity(directory: &Path) -> std::io::Result<(u64, u64)> {
    fs::metadata(directory).map(|found| (found.dev(), found.ino()))
}

/// What is known of the memory of a data directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryState {
    /// It has none.
    None,
    /// A process holds it: so many bytes.
    Held(u64),
    /// Nobody holds it any more.
    Lost,
}

/// Looks for the memory of a data directory.
pub(crate) fn state(directory: &Path) -> Result<MemoryState, UserError> {
    Ok(match kept(directory)? {
        None => MemoryState::None,
        Some(kept) if kept.holder(directory).is_some() => MemoryState::Held(kept.bytes),
        Some(_) => MemoryState::Lost,
    })
}

/// Refuses a data directory whose memory is gone. `server` is the number of its server.
pub(crate) fn refuse_lost(directory: &Path, server: u32) -> Result<(), UserError> {
    if state(directory)? != MemoryState::Lost {
        return Ok(());
    }
    Err(UserError::new(
        ExitCode::NoServer,
        format!("the memory of server {server} is gone"),
        "the process that held it has ended, or the machine was restarted, or this directory is a \
         copy",
        format!(
            "files in it are lost; to begin again: unisono stop --discard   (on other hosts, \
             remove {} on each)",
            directory.display()
        ),
    ))
}

/// Memory of this server. When it is dropped, memory without files is given back.
pub(crate) struct OwnMemory(PathBuf);

impl OwnMemory {
    /// Makes `bytes` of memory the disk of this process, with room for `other_bytes` of other data:
    /// that of an earlier process of this server, or new one, whose keeper ignores SIGTERM if it
    /// `outlasts_sigterm`.
    pub(crate) fn open(
        directory: &Path,
        server: u32,
        (bytes, other_bytes): (u64, u64),
        outlasts_sigterm: bool,
    ) -> Result<Self, UserError> {
        refuse_lost(directory, server)?;
        let unusable = |error: std::io::Error| cannot_use(server, &error.to_string());
        let held = kept(directory)?.and_then(|kept| Some((kept.holder(directory)?, kept.bytes)));
        let held = match held {
            Some((_, other)) if other != bytes => {
                if !discard_empty(directory)? {
                    return Err(other_size(server, other, bytes));
                }
                None
            }
            held => held,
        };
        let (own, file) = match held {
            Some((Holder { path, .. }, _)) => {
                let file = File::options().read(true).write(true).open(path);
                // The keeper was there after its file was opened, so the file was its file.
                refuse_lost(directory, server)?;
                (Self(directory.to_owned()), file.map_err(unusable)?)
            }
            None => {
                let made = reserve_memory(bytes, other_bytes);
                let made = made.map_err(|error| cannot_reserve(server, bytes, &error))?;
                keep(directory, &made, bytes, outlasts_sigterm)?;
                let own = Self(directory.to_owned());
                // Opened again: a lock belongs to what was opened, which the keeper has too.
                let path = format!("/proc/self/fd/{}", made.as_raw_fd());
                let file = File::options().read(true).write(true).open(path);
                (own, file.map_err(unusable)?)
            }
        };
        if let Err(error) = file.try_lock() {
            // It is not this server's to give back.
            std::mem::forget(own);
            return Err(cannot_use(server, &format!("another server uses it: {error}")));
        }
        use_memory(file).map_err(|cause| cannot_use(server, &cause))?;
        Ok(own)
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        give_back_empty(&self.0);
    }
}

/// Gives the memory of this server back, if it holds no data of files.
pub(crate) fn give_back_empty(directory: &Path) {
    if memory_in_use() == Some(0) {
        // If this fails, the memory stays until the user discards it.
        let _ = discard(directory);
    }
}

/// Starts the keeper of new memory.
fn keep(
    directory: &Path,
    file: &File,
    bytes: u64,
    outlasts_sigterm: bool,
) -> Result<(), UserError> {
    let role = [ROLE, "--directory", &directory.display().to_string()].map(str::to_owned);
    let mut command: Command = Program::current()?.command(&role);
    command.args(outlasts_sigterm.then_some("--outlasts-sigterm"));
    let failed = |command: &Command, error: std::io::Error| cannot_start(command, &error);
    let held = file.try_clone().map_err(|error| failed(&command, error))?;
    command.stdin(Stdio::null()).stdout(held).stderr(Stdio::piped()).process_group(0);
    let keeper = command.current_dir("/").spawn();
    let mut keeper = keeper.map_err(|error| failed(&command, error))?;
    let mut said = String::new();
    if let Some(errors) = keeper.stderr.take() {
        let mut errors = BufReader::new(errors);
        // If nothing can be read, it is not ready.
        let _ = errors.read_line(&mut said);
        if said.trim() != READY {
            let _ = errors.read_to_string(&mut said);
        }
    }
    let ended = || std::io::Error::other(said.trim().replace('\n', "; "));
    if said.trim() != READY {
        let _ = keeper.wait();
        return Err(failed(&command, ended()));
    }
    let directory_identity = identity(directory).map_err(|error| failed(&command, error))?;
    let name = name_of(keeper.id()).ok_or_else(|| failed(&command, ended()))?;
    let kept = Kept { keeper: name, bytes, directory: directory_identity };
    let text = serde_json::to_vec(&kept).unwrap_or_default();
    let path = directory.join(KEEPER_FILE);
    replace(&path, &text).map_err(|error| cannot_write(&path, &error))
}

/// Ends the keeper of a data directory, if its memory holds no data of files. Returns `false` if it
/// does, or that is not known.
pub(crate) fn discard_empty(directory: &Path) -> Result<bool, UserError> {
    let Some(holder) = kept(directory)?.and_then(|kept| kept.holder(directory)) else {
        return Ok(true);
    };
    let file = File::options().read(true).write(true).open(holder.path);
    let is_empty =
        file.is_ok_and(|file| file.try_lock().is_ok() && holds_objects(&file) == Ok(false));
    if is_empty {
        discard(directory)?;
    }
    Ok(is_empty)
}

/// Ends the keeper of a data directory. What the memory holds is lost. Returns `false` if the
/// directory has none.
pub(crate) fn discard(directory: &Path) -> Result<bool, UserError> {
    let Some(kept) = kept(directory)? else { return Ok(false) };
    let holder = kept.holder(directory);
    let path = directory.join(KEEPER_FILE);
    fs::remove_file(&path).map_err(|error| cannot_write(&path, &error))?;
    if let Some(Holder { keeper, .. }) = holder {
        keeper.signal(Signal::TERM);
        keeper.signal(Signal::CONT);
        keeper.wait_until(Instant::now() + END_TIMEOUT);
    }
    Ok(true)
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

fn other_size(server: u32, has: u64, wanted: u64) -> UserError {
    let (has, wanted) = (size_word(has), size_word(wanted));
    UserError::usage(
        format!("server {server} has other memory"),
        format!("it has {has}, which hold files, and {wanted} are wanted"),
        format!("start with --memory {has}, or remove the files: unisono stop --discard"),
    )
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
        "remove what the cause names; without its files it goes too: unisono stop --discard",
    )
}
