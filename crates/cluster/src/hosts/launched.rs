//! One launcher and the server behind it, as seen by their supervisor.

use super::launcher::Launcher;
use crate::control::{LINE_BYTES_MAX, ServerMessage, line, parse_message};
use interface::{ExitCode, UserError};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Time limit of a launcher to end after it was asked to.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of last log lines quoted in an error.
const TAIL_LINES_MAX: usize = 5;
const TAIL_BYTES_MAX: u64 = 8 << 10;

/// One launcher and the server behind it.
pub(super) struct Launched<'a> {
    pub(super) id: u32,
    pub(super) host: &'a str,
    launcher: &'a Launcher,
    log_path: PathBuf,
    log_begin: u64,
    process: Child,
    group: Option<Pid>,
    /// The server serves as long as this is open.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl<'a> Launched<'a> {
    /// Starts the launcher of server `id`, which runs `command` on its host.
    pub(super) fn start(
        id: u32,
        host: &'a str,
        launcher: &'a Launcher,
        command: &[String],
        log_path: PathBuf,
    ) -> Result<Self, UserError> {
        let (log, log_begin) = open_log(&log_path).map_err(|error| {
            UserError::usage(
                format!("cannot write {}", log_path.display()),
                error.to_string(),
                "name another instance directory with --instance",
            )
        })?;
        let mut process = Command::from(launcher.command(host, command));
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let started = process.process_group(0).kill_on_drop(true).spawn();
        let cannot = |error: io::Error| {
            UserError::new(
                ExitCode::NoServer,
                format!("cannot start {launcher} for server {id} on {host}"),
                error.to_string(),
                "name another launcher with --launcher: ssh, srun, mpiexec, or a program of your \
                 own",
            )
        };
        let mut process = started.map_err(cannot)?;
        let group = process.id().and_then(|id| Pid::from_raw(id as i32));
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(cannot(io::Error::other("it has no standard input and output")));
        };
        let (input, output) = (Some(input), BufReader::new(output));
        Ok(Self { id, host, launcher, log_path, log_begin, process, group, input, output })
    }

    /// Sends the server a message.
    pub(super) async fn send(&mut self, what: &impl Serialize) {
        if let Some(input) = &mut self.input {
            // If this fails, the server's answer or its end tells the reason.
            let _ = input.write_all(line(what).as_bytes()).await;
            let _ = input.flush().await;
        }
    }

    /// Waits for the next message of the server, at most `limit`.
    pub(super) async fn receive(&mut self, limit: Duration) -> Result<ServerMessage, UserError> {
        let waited = timeout(limit, async {
            while let Some(line) = next_line(&mut self.output).await {
                match parse_message(&line) {
                    Some(said) => return Some(said),
                    None => self.keep_in_log(&line),
                }
            }
            None
        });
        match waited.await {
            Ok(Some(ServerMessage::Failed(failure))) => {
                let error = UserError::from(failure);
                Err(UserError { error: format!("{} on {}", error.error, self.host), ..error })
            }
            Ok(Some(said)) => Ok(said),
            Ok(None) => {
                let ended = timeout(TERM_TIMEOUT, self.process.wait()).await;
                let status = ended.ok().and_then(Result::ok).map(|status| status.to_string());
                Err(self.failed(&status.unwrap_or_else(|| "it sent no further message".to_owned())))
            }
            Err(_) => Err(self.failed(&format!("it sent nothing within {} s", limit.as_secs()))),
        }
    }

    /// Waits until the launcher has ended, then closes the server's input.
    pub(super) async fn stay(&mut self) {
        let (output, process, log) = (&mut self.output, &mut self.process, &self.log_path);
        let listen = async {
            while let Some(line) = next_line(output).await {
                append(log, &line);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = process.wait() => {}
            () = listen => {}
        }
        self.input = None;
    }

    /// Ends the launcher: closes the server's input, and after `limit` sends SIGTERM, then
    /// SIGKILL. Continues it first, in case that a signal has stopped it.
    pub(super) async fn end(&mut self, limit: Duration) {
        self.input = None;
        self.signal(Signal::CONT);
        for (limit, next) in
            [(limit, Some(Signal::TERM)), (TERM_TIMEOUT, Some(Signal::KILL)), (TERM_TIMEOUT, None)]
        {
            if timeout(limit, self.stay()).await.is_ok() {
                return;
            }
            if let Some(next) = next {
                self.signal(next);
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The launcher may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn failed(&self, how: &str) -> UserError {
        let tail = self.tail();
        let cause = match tail.is_empty() {
            true => format!("{} printed nothing: {how}", self.launcher),
            false => format!("{} ({how})", tail.join("; ")),
        };
        let probe = self.launcher.words(self.host, &["true".to_owned()]).join(" ");
        UserError::new(
            ExitCode::NoServer,
            format!("server {} did not start on {}", self.id, self.host),
            cause,
            format!("see {}, or try: {probe}", self.log_path.display()),
        )
    }

    /// Last lines of the log since the start.
    fn tail(&self) -> Vec<String> {
        let read = || -> io::Result<Vec<u8>> {
            let mut log = File::open(&self.log_path)?;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(self.log_begin.max(length.saturating_sub(TAIL_BYTES_MAX))))?;
            let mut text = Vec::new();
            log.take(TAIL_BYTES_MAX).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        let last = lines.len().saturating_sub(TAIL_LINES_MAX);
        lines[last..].iter().map(|line| (*line).to_owned()).collect()
    }

    fn keep_in_log(&self, line: &str) {
        append(&self.log_path, line);
    }
}

/// Opens the log of a server. Also returns its length, where new output begins.
fn open_log(path: &Path) -> io::Result<(File, u64)> {
    let mut log = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let begin = log.seek(SeekFrom::End(0))?;
    Ok((log, begin))
}

fn append(log: &Path, line: &str) {
    // A log that cannot be written is no reason to end servers.
    let _ = OpenOptions::new().append(true).open(log).and_then(|mut log| writeln!(log, "{line}"));
}

/// Reads the next line, or a part of one that is too long; `None` at the end.
async fn next_line(output: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = Vec::new();
    let read = output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
    read.ok().filter(|read| *read > 0).map(|_| String::from_utf8_lossy(&line).trim_end().to_owned())
}
