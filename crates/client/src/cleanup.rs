//! Cleanup after an interrupt: ends child processes and removes incomplete files.

use crate::instance::Instance;
use crate::session::Session;
use interface::{ExitCode, UserError};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One action to take when the user interrupts the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cleanup {
    /// Kills a child process of this process.
    Kill(u32),
    /// Removes a directory that this process made.
    Remove(PathBuf),
    /// Removes a local file that is not complete.
    RemoveFile(PathBuf),
    /// Removes a file of an instance that is not complete.
    RemoveCopy {
        /// Instance that holds the file.
        instance: Instance,
        /// Name of the file.
        name: String,
    },
}

/// Longest wait of an interrupted command for the servers to remove its incomplete files. The
/// servers themselves may be the reason for the interrupt.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);

static CLEANUPS: Mutex<Vec<Cleanup>> = Mutex::new(Vec::new());

fn forget(cleanup: &Cleanup) {
    CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != cleanup);
}

/// A cleanup that stays registered until this guard is dropped.
pub struct Undo(Cleanup);

impl Undo {
    /// Registers a cleanup.
    pub fn on_signals(cleanup: Cleanup) -> Self {
        CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner).push(cleanup.clone());
        Self(cleanup)
    }

    /// Makes what must be cleaned up, and registers its cleanup. An interrupt meanwhile waits until
    /// both are done, so it leaves nothing.
    ///
    /// # Errors
    /// Those of `make`; then nothing is registered.
    pub fn made<T, E>(
        make: impl FnOnce() -> Result<T, E>,
        cleanup: impl FnOnce(&T) -> Cleanup,
    ) -> Result<(T, Self), E> {
        let mut cleanups = CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make()?;
        let cleanup = cleanup(&made);
        cleanups.push(cleanup.clone());
        Ok((made, Self(cleanup)))
    }

    /// Returns at once unless the cleanup has begun. Then it blocks until the process exits.
    pub fn wait_if_begun(&self) {
        drop(CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        forget(&self.0);
    }
}

/// Installs a handler of SIGINT, SIGTERM and SIGHUP. The handler runs all registered cleanups and
/// ends the process with exit code 130.
///
/// # Errors
/// Fails when the system refuses, or a handler is there already.
pub fn clean_up_on_signals() -> Result<(), UserError> {
    let handled = ctrlc::set_handler(|| {
        clean_up_and_exit(
            130,
            "unisono: interrupted; started processes were ended and incomplete files were removed",
        )
    });
    handled.map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot prepare for Ctrl-C",
            error.to_string(),
            "start unisono from an ordinary shell",
        )
    })
}

/// Runs all registered cleanups, prints `message` to standard error, and ends the process.
pub fn clean_up_and_exit(code: i32, message: &str) -> ! {
    // The lock is never released: a thread that notices the end of its children blocks here until
    // the exit below, instead of ending this process with a code of its own.
    let cleanups = CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut killed = Vec::new();
    for cleanup in cleanups.iter() {
        if let Cleanup::Kill(id) = cleanup
            && let Some(id) = rustix::process::Pid::from_raw(*id as i32)
        {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            killed.push(id);
        }
    }
    for id in killed {
        // A process that is about to end may still make files, so wait for it. Another thread may
        // have reaped it already.
        let _ = rustix::process::waitpid(Some(id), rustix::process::WaitOptions::empty());
    }
    for cleanup in cleanups.iter() {
        match cleanup {
            Cleanup::Kill(_) => {}
            Cleanup::Remove(directory) => drop(std::fs::remove_dir_all(directory)),
            Cleanup::RemoveFile(file) => drop(std::fs::remove_file(file)),
            Cleanup::RemoveCopy { instance, name } => remove_copy(instance, name),
        }
    }
    // The terminal may be gone.
    let _ = writeln!(std::io::stderr(), "{message}");
    std::process::exit(code);
}

/// Asks the servers to remove a file, through a new client: the state of the client that was making
/// the file is unknown. The servers first end the transfers of that client.
fn remove_copy(instance: &Instance, name: &str) {
    let (done, ended) = channel();
    let (session, named) = (Session::new(instance.clone()), name.to_owned());
    std::thread::spawn(move || done.send(session.remove_if_any(&named)));
    let cause = match ended.recv_timeout(REMOVAL_TIMEOUT) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.cause,
        Err(_) => "the servers do not answer".to_owned(),
    };
    // The terminal may be gone.
    let _ = writeln!(
        std::io::stderr(),
        "unisono: {name:?} is incomplete and could not be removed: {cause}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::TryLockError;

    #[test]
    fn an_interrupt_waits_until_the_cleanup_of_what_is_made_is_known() {
        // Proves: cleanups cannot begin between the making of a thing and its registration, a thing
        // that was not made has none, and a dropped guard takes its cleanup back.
        let path = PathBuf::from("made-by-a-test");
        let begin = || matches!(CLEANUPS.try_lock(), Err(TryLockError::WouldBlock));
        let make = || {
            assert!(std::thread::scope(|scope| scope.spawn(begin).join()).expect("no panic"));
            Ok::<_, ()>(path.clone())
        };
        let (_, undo) = Undo::made(make, |path| Cleanup::Remove(path.clone())).expect("it is made");
        let registered = || {
            let cleanups = CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner);
            cleanups.iter().filter(|one| **one == Cleanup::Remove(path.clone())).count()
        };
        assert_eq!(registered(), 1);
        let failed = Undo::made(|| Err::<PathBuf, _>(5), |path| Cleanup::Remove(path.clone()));
        assert_eq!((failed.err(), registered()), (Some(5), 1));
        drop(undo);
        assert_eq!(registered(), 0);
    }
}
