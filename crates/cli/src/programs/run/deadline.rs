//! The end of the time for a run, and the time to stage out before it.

use cluster::{JobProgram, SlurmJob};
use interface::UserError;
use jiff::Timestamp;
use std::time::{Duration, Instant, SystemTime};

/// Least time for staging out.
const MARGIN_MIN: Duration = Duration::from_secs(60);

/// Time for everything but the copy: the end of the program, the check, and the stop of servers.
const OVERHEAD: Duration = Duration::from_secs(30);

/// Interval between looks at the size of the files.
const LOOK_PAUSE: Duration = Duration::from_secs(10);

/// Longest wait for a program that was asked to end.
const GRACE_MAX: Duration = Duration::from_secs(30);

/// Longest time from now on that an end may lie away: 100 years.
const AHEAD_MAX: u64 = 100 * 366 * 86_400;

/// End of the time for a run.
pub(super) struct Deadline {
    end: Instant,
    /// Rate of copying out, in bytes a second.
    rate: f64,
}

impl Deadline {
    /// Makes the deadline of a run whose files are copied out at `rate`.
    pub(super) fn new(end: Instant, rate: f64) -> Self {
        Self { end, rate }
    }

    /// Waits for the end of the program. When time runs short, asks it to end, and then ends it.
    /// `bytes` looks how much there is to copy. Returns true if the program was asked.
    pub(super) fn wait(&self, program: &JobProgram, bytes: impl Fn() -> u64) -> bool {
        loop {
            let margin = self.margin(bytes());
            let last = self.end.checked_sub(margin).unwrap_or_else(Instant::now);
            if program.wait_until(last.min(Instant::now() + LOOK_PAUSE)) {
                return false;
            }
            if Instant::now() >= last {
                program.terminate();
                if !program.wait_until(Instant::now() + GRACE_MAX.min(margin / 4)) {
                    program.kill();
                }
                return true;
            }
        }
    }

    /// Time that it takes to copy `bytes` bytes out, twice as long as measured.
    fn margin(&self, bytes: u64) -> Duration {
        let copy = Duration::try_from_secs_f64(2.0 * bytes as f64 / self.rate.max(1.0));
        MARGIN_MIN.max(OVERHEAD.saturating_add(copy.unwrap_or(Duration::MAX)))
    }
}

/// Returns the end that the user or the batch system says, if there is one.
///
/// # Errors
/// Fails when `--until` is not a time.
pub(super) fn end_of_run(until: Option<&str>) -> Result<Option<Instant>, UserError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let until_then = |end: u64| Duration::from_secs(end).saturating_sub(now);
    let left = match until {
        Some(word) => Some(seconds_of(word).map(until_then).ok_or_else(|| {
            UserError::usage(
                format!("{word:?} is not an end for the run"),
                "it is neither a number of seconds since 1970 nor a time with a zone",
                "write it as 2030-01-31T12:00:00Z, or as date +%s --date=... prints it",
            )
        })?),
        // A value that is no time is no reason to refuse a job.
        None => match std::env::var("SLURM_JOB_END_TIME") {
            Ok(word) => seconds_of(&word).map(until_then),
            // Older versions of Slurm set no variable.
            Err(_) => SlurmJob::own().and_then(|job| job.time_left()),
        },
    };
    let left = left.filter(|left| left.as_secs() < AHEAD_MAX);
    Ok(left.map(|left| Instant::now() + left))
}

/// Seconds since 1970 of a time, as a number or with date and zone.
fn seconds_of(word: &str) -> Option<u64> {
    if let Ok(seconds) = word.parse::<u64>() {
        return Some(seconds);
    }
    u64::try_from(word.parse::<Timestamp>().ok()?.as_second()).ok()
}

#[cfg(test)]
mod tests {
    //! Proves: each form of a time is read, and the margin grows with the bytes to copy.
    use super::*;

    #[test]
    fn times_and_margins() {
        assert_eq!(seconds_of("1764000000"), Some(1_764_000_000));
        assert_eq!(seconds_of("1970-01-02T00:00:00Z"), Some(86_400));
        assert_eq!(seconds_of("noon"), None);
        let deadline = Deadline { end: Instant::now(), rate: 1e6 };
        assert_eq!(deadline.margin(1_000_000), MARGIN_MIN);
        assert_eq!(deadline.margin(100_000_000), Duration::from_secs(230));
    }
}
