//! Files in an instance's directory that a start writes: the lock, the key, and `instance.json`.
//!
//! *Invariants:*
//! - One process of a machine starts or stops the servers of an instance at a time.
//! - `instance.json` is there only while its servers run, or after they were killed. It appears in
//!   one step, which completes the start.

use crate::data::remember;
use crate::durable::{cannot_write, replace};
use crate::leftovers::{end_leftovers, lock_holders};
use crate::private;
use crate::process_name::end_of;
use client::{CLIENTS_DIRECTORY, Instance, InstanceFile, for_each_at_once, server_answers};
use interface::{ExitCode, UserError};
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time limit of waiting for another command that starts or stops servers of the instance.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// Interval between attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// File that lists the data directories of the last instance on this machine.
const DIRECTORIES: &str = "directories.json";

/// Lock for starting and stopping the servers of an instance. One process of a machine holds it.
pub(crate) struct Starting(#[expect(dead_code, reason = "it is locked while it is open")] File);

/// Makes the directory of the instance and takes its lock, which is released when the result is
/// dropped.
pub(crate) fn begin_start(instance: &Instance) -> Result<Starting, UserError> {
    private::make_directory(instance.directory())?;
    let starting = lock(instance)?;
    private::make_instance_directory(instance.directory())?;
    Ok(starting)
}

/// Takes the lock of the instance. Waits at most [`LOCK_TIMEOUT`] for other processes.
pub(crate) fn lock(instance: &Instance) -> Result<Starting, UserError> {
    let unusable = |error: std::io::Error| cannot_write(instance.directory(), &error);
    let directory = File::open(instance.directory()).map_err(unusable)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(Starting(directory)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Err(in_use(instance)),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
    }
}

/// Error of an instance that another command has been starting or stopping for too long.
fn in_use(instance: &Instance) -> UserError {
    let pids = lock_holders(instance.directory());
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let (process, help) = match &pids[..] {
        [] => ("another command".to_owned(), "wait for the other command, or end it".to_owned()),
        pids => (
            format!("process {}", pids.join(", ")),
            format!("wait for it, or end it: kill -9 {}", pids.join(" ")),
        ),
    };
    UserError::new(
        ExitCode::Failed,
        format!("the instance at {} is in use", instance.directory().display()),
        format!("{process} has been starting or stopping its servers for minutes"),
        help,
    )
}

/// Name of the instance's data directory, where many instances have theirs. It does not reveal the
/// key.
pub(crate) fn data_name(instance: &Instance) -> Result<String, UserError> {
    let digest = Sha256::new_with_prefix("unisono data of ").chain_update(instance.key()?);
    let bytes = &digest.finalize()[..8];
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// File whose presence has servers on hosts remove their data directories when they end.
pub(crate) fn discard_mark(instance: &Instance) -> PathBuf {
    instance.directory().join("discard")
}

/// Ends what an interrupted start has left, forgets an instance whose servers have ended, and makes
/// the key, unless an instance runs here.
pub(crate) fn make_ready(instance: &Instance) -> Result<(), UserError> {
    if let Ok(file) = instance.read()
        && let Some(cause) = why_running(instance, &file)
    {
        return Err(UserError::usage(
            format!("an instance is running at {}", instance.directory().display()),
            cause,
            "stop it with: unisono stop   (or name another with --instance)",
        ));
    }
    end_leftovers(instance)?;
    forget(instance)?;
    let mark = discard_mark(instance);
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(cannot_write(&mark, &error));
        }
        _ => {}
    }
    private::make_directory(&instance.directory().join(CLIENTS_DIRECTORY))?;
    make_key(instance)
}

/// Returns why an instance counts as running, if it does.
pub(crate) fn why_running(instance: &Instance, file: &InstanceFile) -> Option<String> {
    if let Some(server) = file.servers.iter().find(|server| instance.is_running(server)) {
        return Some(format!("server {} is process {}", server.id, server.pid));
    }
    let supervisor = file.supervisor.as_ref()?;
    if end_of(supervisor).is_some() {
        return Some(format!("the supervisor of its servers is process {}", supervisor.pid));
    }
    let node = instance.client_node(file).ok()?;
    let answer = for_each_at_once(&file.servers, |one| server_answers(one, node.clone()));
    let (server, _) = file.servers.iter().zip(answer).find(|(_, answers)| *answers)?;
    Some(format!("server {} answers at {}", server.id, server.address))
}

/// Removes the list of the servers started last, and the mark of the directory. Records their data
/// directories before, if they are on this machine.
pub(crate) fn forget(instance: &Instance) -> Result<(), UserError> {
    let directory = instance.directory();
    if let Ok(file) = instance.read()
        && file.servers.iter().all(|server| server.host.is_none())
    {
        let data: Vec<&[PathBuf]> = file.servers.iter().map(|server| &server.data[..]).collect();
        let memory = directories(instance);
        remember(&data, &memory).map_err(|error| cannot_write(&memory, &error))?;
    }
    for file in ["instance.json", "origin"] {
        let path = directory.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(cannot_write(&path, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Path of the file that lists the data directories of the last instance on this machine.
pub(crate) fn directories(instance: &Instance) -> PathBuf {
    instance.directory().join(DIRECTORIES)
}

fn make_key(instance: &Instance) -> Result<(), UserError> {
    let path = instance.directory().join("key");
    if path.exists() {
        return instance.key().map(|_| ());
    }
    let mut key = [0; 32];
    let made = getrandom::fill(&mut key).map_err(std::io::Error::from);
    made.and_then(|()| replace(&path, &key)).map_err(|error| cannot_write(&path, &error))
}

/// Writes `instance.json`, which completes the start.
pub(crate) fn write(instance: &Instance, file: &InstanceFile) -> Result<(), UserError> {
    let path = instance.directory().join("instance.json");
    let text = serde_json::to_vec_pretty(file).unwrap_or_default();
    replace(&path, &text).map_err(|error| cannot_write(&path, &error))
}

#[cfg(test)]
mod tests {
    //! Proves: a command that holds an instance for too long is named, with what to do.
    use super::*;

    #[test]
    fn the_holder_of_an_instance_is_named() {
        let room = tempfile::tempdir().expect("a test must have room");
        let instance = Instance::at(room.path());
        let held = lock(&instance).expect("nobody else holds it");
        let error = in_use(&instance);
        let own = std::process::id();
        assert!(error.cause.contains(&format!("process {own} has been")), "{error:?}");
        assert!(error.help.contains(&format!("kill -9 {own}")), "{error:?}");
        drop(held);
        assert!(in_use(&instance).cause.contains("another command"));
    }
}
