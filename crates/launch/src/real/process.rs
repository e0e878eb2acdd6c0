//! Processes that an instance or a bench is made of.
//!
//! Invariants: a [`Child`] does not outlive its parent: it watches its standard input, which the
//! parent holds open, so it ends even when the parent is killed. Ctrl-C reaches the parent alone,
//! which then ends its children; so the parent always says how it ended.

use crate::error::{ExitCode, LaunchError};
use crate::real::{Instance, Session};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How to start this program again in another role.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Words before those of the role.
    pub arguments: Vec<String>,
}

impl Program {
    /// The executable that runs now.
    pub fn current() -> Result<Self, LaunchError> {
        let path = std::env::current_exe().map_err(|error| {
            LaunchError::new(
                ExitCode::Failed,
                "cannot find the unisono executable",
                error.to_string(),
                "start unisono by its full path",
            )
        })?;
        Ok(Self { path, arguments: Vec::new() })
    }

    pub(crate) fn command(&self, role: &[String]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).args(role);
        command
    }
}

/// A child process that ends with its parent.
pub(crate) struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts a child; its standard error is `errors`.
    pub(crate) fn start(mut command: Command, errors: Stdio) -> Result<Self, LaunchError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        let mut process = command.spawn().map_err(|error| cannot_start(&command, &error))?;
        let output = process.stdout.take().ok_or_else(|| {
            cannot_start(&command, &std::io::Error::other("it has no standard output"))
        })?;
        register(Cleanup::Kill(process.id()));
        Ok(Self { process, output: BufReader::new(output) })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Writes a line to its standard input, which stays open.
    pub(crate) fn tell(&mut self, line: &str) -> std::io::Result<()> {
        match self.process.stdin.as_mut() {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The next line of its standard output; `None` at its end.
    pub(crate) fn hear(&mut self) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(line.trim_end().to_owned())),
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        forget(&Cleanup::Kill(self.process.id()));
    }
}

/// Runs another program to its end; it is killed when the user interrupts, but outlives this
/// process if that is killed. Only what it says on standard error is kept.
pub(crate) fn run_to_end(mut command: Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let process = command.spawn()?;
    let _ended_with_this_one = Undo::on_signals(Cleanup::Kill(process.id()));
    process.wait_with_output()
}

/// The end of a process that need not be a child of this one.
///
/// A process that ends loses its command line first and its files last, so what is gone from
/// `/proc` may still lock its data. This end is that of everything it had.
pub(crate) struct ProcessEnd(OwnedFd);

impl ProcessEnd {
    /// The end of process `id`, if that is there.
    pub(crate) fn of(id: u32) -> Option<Self> {
        let id = rustix::process::Pid::from_raw(id as i32)?;
        let handle = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty());
        handle.ok().map(Self)
    }

    /// Waits for it; `false` when it has not come by the deadline.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Err(Errno::INTR) => {}
                ended => return ended == Ok(1),
            }
        }
    }
}

pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> LaunchError {
    LaunchError::new(
        ExitCode::Failed,
        format!("cannot start {}", command.get_program().to_string_lossy()),
        error.to_string(),
        "check that the executable is there and that you may start more processes",
    )
}

/// Calls `act` on a thread of its own when standard input ends: the parent is gone.
pub(crate) fn on_stdin_closed(act: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let mut rest = [0; 256];
        let mut input = std::io::stdin().lock();
        while matches!(input.read(&mut rest), Ok(read) if read > 0) {}
        act();
    });
}

/// What is to be done when the user interrupts the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cleanup {
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

pub(crate) fn register(cleanup: Cleanup) {
    CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner).push(cleanup);
}

pub(crate) fn forget(cleanup: &Cleanup) {
    CLEANUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| other != cleanup);
}

/// A cleanup that is registered until this is dropped.
pub(crate) struct Undo(Cleanup);

impl Undo {
    pub(crate) fn on_signals(cleanup: Cleanup) -> Self {
        register(cleanup.clone());
        Self(cleanup)
    }

    /// Returns unless the cleanup has begun: then it waits for the end of the process.
    pub(crate) fn wait_if_begun(&self) {
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
pub fn clean_up_on_signals() -> Result<(), LaunchError> {
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
        LaunchError::new(
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

/// A directory that is removed when dropped, or when the user interrupts.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes a directory that only this user may enter, below `parent`.
    pub(crate) fn new(parent: &std::path::Path) -> Result<Self, LaunchError> {
        let private = std::fs::Permissions::from_mode(0o700);
        let made =
            tempfile::Builder::new().prefix("unisono-").permissions(private).tempdir_in(parent);
        let path = made.map(tempfile::TempDir::keep).map_err(|error| {
            LaunchError::usage(
                format!("cannot make a directory in {}", parent.display()),
                error.to_string(),
                "name a directory that you may write to with --directory",
            )
        })?;
        register(Cleanup::Remove(path.clone()));
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        forget(&Cleanup::Remove(self.0.clone()));
    }
}
