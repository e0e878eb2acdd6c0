//! Checks that a launcher can start programs on each host.

use super::launcher::Launcher;
use super::plan::HostPlan;
use crate::process::{ProcessEnd, Program};
use client::for_each_at_once;
use interface::{ExitCode, UserError};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a trivial program on a host.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum length of a probe's output that is read, in bytes.
const SAID_BYTES_MAX: u64 = 8 << 10;

impl HostPlan {
    /// Runs `true` on all hosts at once.
    ///
    /// # Errors
    /// Of the first host on which that fails.
    pub(crate) fn probe_launcher(&self) -> Result<String, UserError> {
        let begun = Instant::now();
        let hosts = self.run_on_all(&["true".to_owned()], |_| Ok(()))?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(format!("{} runs `true` on {hosts} hosts, in {seconds:.2} s", self.launcher))
    }

    /// Asks this program on each host for its version.
    ///
    /// # Errors
    /// Fails when a host does not answer, or has another version than this program.
    pub(crate) fn probe_program(&self, program: &Program) -> Result<String, UserError> {
        let version = env!("CARGO_PKG_VERSION");
        let path = program.path.display().to_string();
        let hosts = self.run_on_all(&[path.clone(), "--version".to_owned()], |said| {
            let is_same = said.lines().any(|line| line.trim() == format!("unisono {version}"));
            is_same.then_some(()).ok_or_else(|| format!("it printed {said}, not unisono {version}"))
        })?;
        Ok(format!("{path} is version {version} on {hosts} hosts"))
    }

    fn run_on_all(
        &self,
        command: &[String],
        check: impl Fn(&str) -> Result<(), String> + Sync,
    ) -> Result<usize, UserError> {
        let hosts: Vec<&str> = self.hosts().collect();
        let tried = for_each_at_once(&hosts, |host| {
            let cannot = |cause: String| {
                UserError::new(
                    ExitCode::Failed,
                    format!("cannot run {} on {host}", command.join(" ")),
                    cause,
                    format!("try: {}", self.launcher.words(host, command).join(" ")),
                )
            };
            let (status, said) =
                run(&self.launcher, host, command).map_err(|error| cannot(error.to_string()))?;
            let said = said.trim();
            match status {
                Some(status) if status.success() => check(said).map_err(cannot),
                Some(status) => Err(cannot(format!("{status}: {said}"))),
                None => Err(cannot(format!(
                    "it did not end within {} s: {said}",
                    PROBE_TIMEOUT.as_secs()
                ))),
            }
        });
        tried.into_iter().collect::<Result<(), UserError>>().map(|()| hosts.len())
    }
}

/// Runs a command on a host. Returns its exit status, if it ended in time, and its output.
fn run(
    launcher: &Launcher,
    host: &str,
    command: &[String],
) -> io::Result<(Option<ExitStatus>, String)> {
    let mut said = tempfile::tempfile()?;
    let mut process = launcher.command(host, command);
    process.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?);
    let mut process = process.process_group(0).spawn()?;
    let id = process.id();
    let in_time =
        ProcessEnd::of(id).is_none_or(|end| end.wait_until(Instant::now() + PROBE_TIMEOUT));
    if !in_time && let Some(group) = Pid::from_raw(id as i32) {
        // The command may have ended already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = process.wait()?;
    let mut text = Vec::new();
    said.rewind()?;
    said.take(SAID_BYTES_MAX).read_to_end(&mut text)?;
    Ok((in_time.then_some(status), String::from_utf8_lossy(&text).into_owned()))
}
