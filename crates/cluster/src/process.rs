//! Processes of an instance or a benchmark.
//!
//! Invariants: a [`Child`] does not outlive its parent: it watches its standard input, which the
//! parent holds open, so it ends even when the parent is killed. Ctrl-C reaches the parent alone,
//! which then ends its children; so the parent always says how it ended.

use client::{Cleanup, Undo};
use interface::{ExitCode, UserError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};

/// Command that starts this program again in another role.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Arguments before those of the role.
    pub arguments: Vec<String>,
}

impl Program {
    /// The executable that runs now.
    pub fn current() -> Result<Self, UserError> {
        let path = std::env::current_exe().map_err(|error| {
            UserError::new(
                ExitCode::Failed,
                "cannot find the unisono executable",
                error.to_string(),
                "start unisono by its full path",
            )
        })?;
        Ok(Self { path, arguments: Vec::new() })
    }

    /// Command that runs this program in a role, not yet started.
    pub fn command(&self, role: &[String]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).args(role);
        command
    }
}

/// A child process that ends with its parent.
pub struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
    is_attached: bool,
    // Dropped last, after the child has ended.
    _undo: Undo,
}

impl Child {
    /// Starts a child with `errors` as its standard error.
    pub fn start(mut command: Command, errors: Stdio) -> Result<Self, UserError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        let (mut process, undo) =
            spawn(&mut command).map_err(|error| cannot_start(&command, &error))?;
        let output = process.stdout.take().ok_or_else(|| {
            cannot_start(&command, &std::io::Error::other("it has no standard output"))
        })?;
        Ok(Self { process, output: BufReader::new(output), is_attached: true, _undo: undo })
    }

    /// Lets the child go on, without its standard input, when this process ends.
    pub fn detach(mut self) {
        self.is_attached = false;
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Writes a line to the child's standard input, which stays open.
    pub fn send_line(&mut self, line: &str) -> std::io::Result<()> {
        match self.process.stdin.as_mut() {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Reads the next line of the child's standard output; `None` at its end.
    pub fn read_line(&mut self) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(line.trim_end().to_owned())),
        }
    }

    /// Waits until the standard output of one of `children` has more or has ended; `among` has the
    /// numbers of those that count. Returns its number, or `None` if the deadline passes first.
    pub fn first_with_output(
        children: &[Self],
        among: &[usize],
        deadline: Option<Instant>,
    ) -> Option<usize> {
        let has_read = |number: &&usize| !children[**number].output.buffer().is_empty();
        if let Some(number) = among.iter().find(has_read) {
            return Some(*number);
        }
        let outputs: Vec<&ChildStdout> =
            among.iter().map(|number| children[*number].output.get_ref()).collect();
        first_ready_by(&outputs, deadline).map(|at| among[at])
    }

    /// Waits until the child's standard output has more or has ended. Returns `false` if the
    /// deadline passes first.
    pub fn has_output_by(&self, deadline: Instant) -> bool {
        let this = std::slice::from_ref(self);
        Self::first_with_output(this, &[0], Some(deadline)).is_some()
    }

    /// Waits for the child's end.
    pub fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_attached {
            return;
        }
        // The child may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes this process outlast SIGTERM from now on: whoever started it ends it.
///
/// # Errors
/// Fails when the system refuses.
pub fn outlast_sigterm() -> Result<(), UserError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let caught = runtime.and_then(|runtime| {
        let _inside = runtime.enter();
        // The handler stays when nobody listens any more.
        signal(SignalKind::terminate()).map(drop)
    });
    caught.map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot prepare for SIGTERM",
            error.to_string(),
            "a limit of the system may be reached, such as the number of open files",
        )
    })
}

/// Runs another program to its end. An interrupt by the user kills it, but it outlives this process
/// if that is killed. Returns only its standard error.
pub fn run_to_end(mut command: Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let (process, _ended_with_this_one) = spawn(&mut command)?;
    process.wait_with_output()
}

/// Starts a child that an interrupt by the user kills.
fn spawn(command: &mut Command) -> std::io::Result<(std::process::Child, Undo)> {
    Undo::made(|| command.spawn(), |process| Cleanup::Kill(process.id()))
}

/// Handle to wait for the end of a process that need not be a child of this one.
///
/// A process that ends loses its command line first and its files last, so what is gone from
/// `/proc` may still lock its data. This end is that of everything it had.
pub(crate) struct ProcessEnd(OwnedFd);

impl ProcessEnd {
    /// The end of process `id`, if that is there.
    pub(crate) fn of(id: u32) -> Option<Self> {
        let id = Pid::from_raw(id as i32)?;
        let handle = pidfd_open(id, PidfdFlags::empty());
        handle.ok().map(Self)
    }

    /// Sends the process a signal, if it has not ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }

    /// Waits for the first end of some processes.
    pub(crate) fn wait_for_first(all: &[&Self]) {
        let handles: Vec<&OwnedFd> = all.iter().map(|one| &one.0).collect();
        first_ready_by(&handles, None);
    }

    /// Waits for the end. Returns `false` if the deadline passes first.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        first_ready_by(&[&self.0], Some(deadline)).is_some()
    }
}

/// Waits until one of some descriptors can be read or has ended. Returns its index, or `None` if
/// the deadline passes first.
fn first_ready_by(descriptors: &[&impl AsFd], deadline: Option<Instant>) -> Option<usize> {
    let mut polled: Vec<PollFd<'_>> =
        descriptors.iter().map(|one| PollFd::new(*one, PollFlags::IN)).collect();
    loop {
        let left = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut polled, left.as_ref()) {
            Err(Errno::INTR) => {}
            Err(_) => return None,
            Ok(_) => return polled.iter().position(|one| !one.revents().is_empty()),
        }
    }
}

pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        format!("cannot start {}", command.get_program().to_string_lossy()),
        error.to_string(),
        "check that the executable exists and that you may start more processes",
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

/// A directory that is removed when dropped, or when the user interrupts, unless it is kept.
pub(crate) struct TemporaryDirectory {
    path: PathBuf,
    // Dropped last, after the directory is gone. None while the directory is kept.
    undo: Option<Undo>,
}

impl TemporaryDirectory {
    /// Makes a directory that only this user may enter, below `parent`.
    pub(crate) fn new(parent: &std::path::Path) -> Result<Self, UserError> {
        let private = std::fs::Permissions::from_mode(0o700);
        let mut new = tempfile::Builder::new();
        new.prefix("unisono-").permissions(private);
        let made = Undo::made(
            || new.tempdir_in(parent).map(tempfile::TempDir::keep),
            |path| Cleanup::Remove(path.clone()),
        );
        let (path, undo) = made.map_err(|error| {
            UserError::usage(
                format!("cannot make a directory in {}", parent.display()),
                error.to_string(),
                "name a directory that you may write to with --directory",
            )
        })?;
        Ok(Self { path, undo: Some(undo) })
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Keeps the directory from now on, or removes it at the end again.
    pub(crate) fn keep(&mut self, keep: bool) {
        self.undo = (!keep).then(|| Undo::on_signals(Cleanup::Remove(self.path.clone())));
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if self.undo.is_some() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
