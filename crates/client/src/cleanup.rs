//! What an interrupted command undoes: processes it started, and files that are not whole yet.

use crate::instance::Instance;
use crate::session::Session;
use interface::{ExitCode, UserError};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is to be done when the user interrupts the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cleanup {
    /// End a process that this one started.
    Kill(u32),
    /// Remove a directory that this process made.
    Remove(PathBuf),
    /// Remove a local file that is not whole yet.
    RemoveFile(PathBuf),
    /// Remove a file of an instance that is not whole yet.
    RemoveCopy {
        /// Where it is.
        instance: Instance,
        /// The file's name.
        name: String,
    },
}

/// The longest that an interrupted command waits for the servers to remove what it has half made;
/// they may be what it was interrupted for.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(5);

static CLEANUPS: Mutex<Vec<Cleanup>> = Mutex::new(Vec::new());

fn register(cleanup: Cleanup) {
    CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner).push(cleanup);
}

fn forget(cleanup: &Cleanup) {
    CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != cleanup);
}

/// A cleanup that is registered until this is dropped.
pub struct Undo(Cleanup);

impl Undo {
    /// Registers a cleanup.
    pub fn on_signals(cleanup: Cleanup) -> Self {
        register(cleanup.clone());
        Self(cleanup)
    }

    /// Returns unless the cleanup has begun: then it waits for the end of the process.
    pub fn wait_if_begun(&self) {
        drop(CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        forget(&self.0);
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP end what this process has started, remove what it has
/// made for the time of its run, and end it with exit code 130.
///
/// # Errors
/// When the system refuses, or a handler is there already.
pub fn clean_up_on_signals() -> Result<(), UserError> {
    let handled = ctrlc::set_handler(|| {
        // Never released: whoever finds that its children are gone waits here for the exit below
        // instead of ending this process with a code of its own.
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
            // A process that is about to end may still make files. Another thread may have seen
            // its end already.
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
        let _ = writeln!(
            std::io::stderr(),
            "unisono: interrupted; what it had started is ended, what was not whole is removed"
        );
        std::process::exit(130);
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

/// Asks the servers to remove a file, as a client of its own: the one that was making it may be in
/// the middle of anything. They end its transfers first.
fn remove_copy(instance: &Instance, name: &str) {
    let (done, ended) = channel();
    let (session, named) = (Session::new(instance.clone()), name.to_owned());
    std::thread::spawn(move || done.send(session.remove_if_any(&named)));
    let cause = match ended.recv_timeout(REMOVAL_PATIENCE) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.cause,
        Err(_) => "the servers do not answer".to_owned(),
    };
    // The terminal may be gone.
    let _ = writeln!(
        std::io::stderr(),
        "unisono: {name:?} is not whole and could not be removed: {cause}"
    );
}
