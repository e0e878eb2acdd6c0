//! Slurm's answers about the job in which this process runs.

use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest wait for an answer of Slurm, in seconds.
const ANSWER_SECONDS: &str = "10";

/// Time from SIGTERM to SIGKILL, where Slurm does not say it: its default.
const KILL_WAIT: Duration = Duration::from_secs(30);

/// A job of Slurm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlurmJob(String);

impl SlurmJob {
    /// The job of this process, if it is in one.
    pub fn own() -> Option<Self> {
        std::env::var("SLURM_JOB_ID").ok().map(Self)
    }

    /// Time that is left for the job, if it is limited.
    pub fn time_left(&self) -> Option<Duration> {
        duration_of(self.asked("%L")?.trim())
    }

    /// True if Slurm is ending the job: all its processes have got SIGTERM, and get SIGKILL.
    pub(super) fn is_ending(&self) -> bool {
        self.asked("%T").is_some_and(|state| state.trim() == "COMPLETING")
    }

    /// Answer of `squeue` in a format.
    fn asked(&self, format: &str) -> Option<String> {
        let format = format!("--format={format}");
        answer(&["squeue", "--noheader", &format, "--job", &self.0])
    }
}

/// Time from SIGTERM to SIGKILL for the processes of a job that ends.
pub(super) fn kill_wait() -> Duration {
    let shown = answer(&["scontrol", "show", "config"]).unwrap_or_default();
    kill_wait_of(&shown).unwrap_or(KILL_WAIT)
}

/// Finds `KillWait = 30 sec` among the lines of a configuration.
fn kill_wait_of(shown: &str) -> Option<Duration> {
    let value = shown.lines().find_map(|line| line.trim().strip_prefix("KillWait"))?;
    let seconds = value.trim_start().strip_prefix('=')?.split_whitespace().next()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// Output of a command of Slurm, if it succeeds in time.
fn answer(words: &[&str]) -> Option<String> {
    let mut command = Command::new("timeout");
    command.arg(ANSWER_SECONDS).args(words).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// A duration as Slurm writes it: `2-01:00:00`, `1:00:00` or `5:00`. `None` for words.
fn duration_of(word: &str) -> Option<Duration> {
    let (days, time) = word.split_once('-').unwrap_or(("0", word));
    let seconds = time
        .split(':')
        .try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))?;
    let days = days.parse::<u64>().ok()?.checked_mul(86_400)?;
    Some(Duration::from_secs(days.checked_add(seconds)?))
}

#[cfg(test)]
mod tests {
    //! Proves: durations and the time before SIGKILL are read as Slurm writes them.
    use super::*;

    #[test]
    fn answers_are_read() {
        assert_eq!(duration_of("4:59"), Some(Duration::from_secs(299)));
        assert_eq!(duration_of("2-01:00:01"), Some(Duration::from_secs(176_401)));
        assert_eq!(duration_of("UNLIMITED"), None);
        assert_eq!(duration_of(""), None);
        let shown = "KeepAliveTime           = SYSTEM_DEFAULT\nKillOnBadExit           = 0\n\
                     KillWait                = 45 sec\nLaunchParameters        = (null)\n";
        assert_eq!(kill_wait_of(shown), Some(Duration::from_secs(45)));
        assert_eq!(kill_wait_of("KillWait"), None);
    }
}
