//! Commands that run, and their results.

use super::{DONE, STALL_TIMEOUT, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Variables that would name an instance, an input, or the hosts of a job.
const UNWANTED: [&str; 9] = [
    "UNISONO_INSTANCE",
    "UNISONO_LAUNCHER",
    "INPUT",
    "SLURM_JOB_ID",
    "PBS_NODEFILE",
    "LSB_DJOB_HOSTFILE",
    "LSB_HOSTS",
    "OAR_NODEFILE",
    "PE_HOSTFILE",
];

/// The command `unisono` with `words`, without anything that the environment would add.
pub(crate) fn unisono<S: AsRef<OsStr>>(words: &[S]) -> Command {
    program(env!("CARGO_BIN_EXE_unisono"), words)
}

/// A program that is such a command, with `words`.
pub(crate) fn program<S: AsRef<OsStr>>(path: impl AsRef<OsStr>, words: &[S]) -> Command {
    let mut command = Command::new(path);
    command.args(words);
    for variable in UNWANTED {
        command.env_remove(variable);
    }
    // Tests also run where there is no other user.
    command.env("UNISONO_ALLOW_ROOT", "true");
    command
}

/// Runs a command to its end.
pub(crate) fn run(command: Command) -> Ended {
    Running::start(command).end()
}

/// A command that runs; killed when dropped before its end.
pub(crate) struct Running {
    pid: u32,
    shown: String,
    ended: Receiver<std::io::Result<Output>>,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::start_as_is(command)
    }

    /// Starts it with the standard streams that it was given.
    pub(crate) fn start_as_is(mut command: Command) -> Self {
        let shown = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        let (pid, (sender, ended)) = (child.id(), channel());
        std::thread::spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(child.wait_with_output());
        });
        Self { pid, shown, ended }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end, which must come in time.
    pub(crate) fn end(self) -> Ended {
        let ended = self.ended.recv_timeout(STALL_TIMEOUT);
        let ended = ended.unwrap_or_else(|_| panic!("{} does not end", self.shown));
        let Output { status, stdout, stderr } = ended.expect("a child can be waited for");
        let error = String::from_utf8_lossy(&stderr).into_owned();
        Ended { shown: self.shown.clone(), status, output: stdout, error }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.ended.try_recv(), Err(TryRecvError::Empty)) {
            signal(self.pid, Signal::KILL);
        }
    }
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    shown: String,
    status: ExitStatus,
    /// Its standard output.
    pub(crate) output: Vec<u8>,
    /// Its standard error.
    pub(crate) error: String,
}

impl Ended {
    /// Its exit code, if it was not killed.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Proves that it ended with `code`.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        let (found, output) = (self.status, String::from_utf8_lossy(&self.output));
        let shown = &self.shown;
        assert_eq!(found.code(), Some(code), "{shown}: {found}\n{output}\n{}", self.error);
        self
    }

    /// Proves that it did what was asked.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        self.code(DONE)
    }

    /// Proves that it failed with `code`, without a result, and said so in three parts, the first
    /// two of which hold each of `words`.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.output, b"", "{}: a failure has no result", self.shown);
        self.failed(code, words)
    }

    /// As [`Ended::refused`], of a command that may have had results before.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, words: &[&str]) -> Self {
        let ended = self.code(code);
        let text = &ended.error;
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("error: "));
        let at = at.unwrap_or_else(|| panic!("{}: no error is told: {text}", ended.shown));
        let [error, cause, help] = lines[at..] else { panic!("not three parts: {text}") };
        let parts = [("error: ", error), ("cause: ", cause), ("help:  ", help)];
        for (name, line) in parts {
            let told = line.strip_prefix(name).is_some_and(|told| !told.trim().is_empty());
            assert!(told, "{}: {name:?} is missing in {text}", ended.shown);
        }
        for word in words {
            let told = error.contains(word) || cause.contains(word);
            assert!(told, "{}: {word:?} is missing in {text}", ended.shown);
        }
        assert!(!text.contains("panicked"), "{}: {text}", ended.shown);
        ended
    }

    /// Its output as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.output).expect("a result is text")
    }

    /// Its output as the one JSON object that it must be.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_slice::<Value>(&self.output);
        let value =
            parsed.unwrap_or_else(|error| panic!("{}: {error}: {}", self.shown, self.text()));
        assert!(value.is_object(), "{} printed no object: {value}", self.shown);
        value
    }
}
