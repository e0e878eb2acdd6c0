//! Processes that a start has left: found by the locks of their logs, and ended.
//!
//! The standard error of a server on this machine, and of a supervisor, is its log, which the
//! process that starts it has locked. The lock belongs to the open file: it is held from before the
//! process exists until after its end, whatever ends it, and no other process can have it.
//!
//! *Invariants:*
//! - A process that no instance names has no clients, or ends with all data written back.
//! - Only a holder of such a lock gets a signal.

use crate::durable::cannot_write;
use crate::process::ProcessEnd;
use client::Instance;
use interface::{ExitCode, UserError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Log of the supervisor of launchers.
pub(crate) const KEEPER_LOG: &str = "keeper.log";

/// Time limit of a leftover process to end after SIGTERM, or SIGINT: a supervisor gives its
/// launchers as long.
const TERM_TIMEOUT: Duration = Duration::from_secs(75);

/// Time limit of a leftover process to end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between looks at the locks.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens the log of a process that is about to be started, for its standard error, and locks it for
/// that process.
pub(crate) fn open_log(path: &Path) -> Result<File, UserError> {
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    let log = opened.map_err(|error| cannot_write(path, &error))?;
    match flock(&log, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(UserError::new(
            ExitCode::Failed,
            format!("cannot write {}", path.display()),
            "another process of this instance is writing it",
            "stop the instance with: unisono stop",
        )),
        // Without locks on this file system, the locks of the data directories remain.
        Ok(()) | Err(_) => Ok(log),
    }
}

/// A process that holds the log at this path locked.
struct Holder {
    pid: u32,
    process: ProcessEnd,
}

/// Logs of the instance that are locked.
fn locked_logs(instance: &Instance) -> Vec<PathBuf> {
    let entries = fs::read_dir(instance.directory()).into_iter().flatten().flatten();
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == KEEPER_LOG || (name.starts_with("server-") && name.ends_with(".log"))
    };
    entries.map(|entry| entry.path()).filter(is_log).filter(|path| is_locked(path)).collect()
}

fn is_locked(path: &Path) -> bool {
    let Ok(log) = OpenOptions::new().append(true).open(path) else { return false };
    flock(&log, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}

/// Processes of this user that hold one of these logs locked.
fn holders(logs: &[PathBuf]) -> Vec<Holder> {
    holders_by(logs, |pid| vec![PathBuf::from(format!("/proc/{pid}/fd/2"))])
}

/// Process ids of the processes of this user whose log this is, and locked.
fn lock_holders_of_log(log: &Path) -> Vec<u32> {
    holders(&[log.to_owned()]).iter().map(|holder| holder.pid).collect()
}

/// Process ids of the processes of this user that hold a file or directory locked.
pub(crate) fn lock_holders(path: &Path) -> Vec<u32> {
    let all = |pid| {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    holders_by(&[path.to_owned()], all).iter().map(|holder| holder.pid).collect()
}

/// Processes of which one of the `descriptors` is one of these files, and locked.
fn holders_by(files: &[PathBuf], descriptors: impl Fn(u32) -> Vec<PathBuf>) -> Vec<Holder> {
    if files.is_empty() {
        return Vec::new();
    }
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let files: Vec<(u64, u64)> = files.iter().filter_map(|file| identity(file)).collect();
    let is_lock = |pid: u32, descriptor: &PathBuf| {
        let number = descriptor.file_name().unwrap_or_default().display();
        // Others may have the file open to read it.
        let locks = || fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}"));
        identity(descriptor).is_some_and(|file| files.contains(&file))
            && locks().is_ok_and(|locks| locks.contains("FLOCK"))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holder = |pid: u32| {
        let process = ProcessEnd::of(pid)?;
        // Looked at after the handle was taken: from then on no other process can have its id.
        let holds = descriptors(pid).iter().any(|descriptor| is_lock(pid, descriptor));
        holds.then_some(Holder { pid, process })
    };
    pids.filter_map(holder).collect()
}

/// Continues the processes of an instance on this machine that a signal has stopped.
pub(crate) fn resume(instance: &Instance) {
    for holder in holders(&locked_logs(instance)) {
        holder.process.signal(Signal::CONT);
    }
}

/// Process ids of the processes on this machine that a start has left. Call it while holding the
/// lock of the instance.
pub(crate) fn leftovers(instance: &Instance) -> Vec<u32> {
    holders(&locked_logs(instance)).iter().map(|holder| holder.pid).collect()
}

/// Ends the processes that a start has left. Returns their number, as far as they were seen.
///
/// # Errors
/// Fails when one does not end, as while its disk does not answer.
pub(crate) fn end_leftovers(instance: &Instance) -> Result<usize, UserError> {
    let mut seen = Vec::new();
    for (signal, timeout) in [(Signal::TERM, TERM_TIMEOUT), (Signal::KILL, KILL_TIMEOUT)] {
        let deadline = Instant::now() + timeout;
        let mut signalled = Vec::new();
        loop {
            let logs = locked_logs(instance);
            if logs.is_empty() {
                return Ok(seen.len());
            }
            // A process that is just being made may have no log yet, so look again.
            let supervisors = lock_holders_of_log(&instance.directory().join(KEEPER_LOG));
            for Holder { pid, process } in holders(&logs) {
                if !signalled.contains(&pid) {
                    // The supervisor of a run outlasts SIGTERM.
                    let is_gentle = signal == Signal::TERM && supervisors.contains(&pid);
                    process.signal(if is_gentle { Signal::INT } else { signal });
                    process.signal(Signal::CONT);
                    signalled.push(pid);
                }
                if !seen.contains(&pid) {
                    seen.push(pid);
                }
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
    Err(does_not_end(instance))
}

fn does_not_end(instance: &Instance) -> UserError {
    let logs = locked_logs(instance);
    let log = logs.first().cloned().unwrap_or_else(|| instance.directory().to_owned());
    let pids: Vec<String> = holders(&logs).iter().map(|holder| holder.pid.to_string()).collect();
    let (cause, help) = match &pids[..] {
        [] => (
            format!("a process that cannot be seen from here holds {}", log.display()),
            format!("end the process that this shows: fuser {}", log.display()),
        ),
        pids => (
            format!("process {} holds {}, also after SIGKILL", pids.join(", "), log.display()),
            "the process may wait for a disk that does not answer: try again when it does"
                .to_owned(),
        ),
    };
    UserError::new(ExitCode::Failed, "processes of an earlier start do not end", cause, help)
}

#[cfg(test)]
mod tests {
    //! Proves: a process that has a locked log as its standard error is found, stopped or not, and
    //! ended; one that only reads the log is not.
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn holders_of_locks_are_ended() {
        let room = tempfile::tempdir().expect("a test must have room");
        let instance = Instance::at(room.path());
        let log = || open_log(&instance.log_path(0));
        let sleeper = |errors: Stdio| {
            let mut command = Command::new("sleep");
            command.arg("1000").stdout(Stdio::null()).stderr(errors);
            command.spawn().expect("there is a sleep")
        };
        let mut holder = sleeper(log().expect("it is free").into());
        let open = File::open(instance.log_path(0)).expect("it is there");
        let mut reader = sleeper(open.into());
        assert!(log().is_err(), "it is locked");
        assert_eq!(leftovers(&instance), [holder.id()]);
        assert_eq!(lock_holders(&instance.log_path(0)), [holder.id()]);
        ProcessEnd::of(holder.id()).expect("it runs").signal(Signal::STOP);
        assert_eq!(end_leftovers(&instance).ok(), Some(1));
        assert!(!holder.wait().expect("it is a child").success());
        assert_eq!(end_leftovers(&instance).ok(), Some(0));
        assert!(log().is_ok(), "it is free again");
        assert!(reader.try_wait().expect("it is a child").is_none());
        reader.kill().expect("it runs");
        reader.wait().expect("it is a child");
    }
}
