//! Processor time of the threads of a process, as the system's scheduler counts it.

use interface::{ExitCode, UserError};
use std::collections::BTreeMap;
use std::io;

/// Nanoseconds of processor time that the threads of a process have used, by the threads' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadTimes(BTreeMap<String, u64>);

impl ThreadTimes {
    /// Reads the times of process `pid`.
    ///
    /// # Errors
    /// Fails when the process has ended, or the system does not count.
    pub(crate) fn of(pid: u32) -> Result<Self, UserError> {
        read(pid).map(Self).map_err(|error| {
            UserError::new(
                ExitCode::Failed,
                "cannot measure the processor time of threads",
                format!("/proc/{pid}/task/*/schedstat: {error}"),
                "measure on a system whose kernel counts it (CONFIG_SCHED_INFO)",
            )
        })
    }

    /// Time since `earlier` of the threads whose name begins with `prefix`.
    pub(crate) fn since(&self, earlier: &Self, prefix: &str) -> u64 {
        let used = |(name, time): (&String, &u64)| {
            time.saturating_sub(earlier.0.get(name).copied().unwrap_or_default())
        };
        self.0.iter().filter(|(name, _)| name.starts_with(prefix)).map(used).sum()
    }

    /// Time since `earlier` of all threads.
    pub(crate) fn all_since(&self, earlier: &Self) -> u64 {
        self.since(earlier, "")
    }
}

fn read(pid: u32) -> io::Result<BTreeMap<String, u64>> {
    let mut times = BTreeMap::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path();
        // A thread may end meanwhile.
        let Ok(name) = std::fs::read_to_string(path.join("comm")) else { continue };
        let counted = match std::fs::read_to_string(path.join("schedstat")) {
            Ok(counted) => counted,
            Err(_) if !path.exists() => continue,
            Err(error) => return Err(error),
        };
        let first = counted.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let used = first.ok_or_else(|| io::Error::other("it has no number"))?;
        *times.entry(name.trim_end().to_owned()).or_default() += used;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    //! Proves: the time of a busy thread is counted under its name.
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_busy_thread_uses_time() {
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (ready, end) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel::<()>());
        let (told, is_ready) = ready;
        let busy = std::thread::Builder::new().name("busy one".to_owned()).spawn(move || {
            begun.recv().unwrap();
            let until = Instant::now() + Duration::from_millis(30);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            told.send(()).unwrap();
            end.1.recv().unwrap();
        });
        let busy = busy.unwrap();
        let before = ThreadTimes::of(std::process::id()).unwrap();
        begin.send(()).unwrap();
        is_ready.recv().unwrap();
        let after = ThreadTimes::of(std::process::id()).unwrap();
        end.0.send(()).unwrap();
        busy.join().unwrap();
        let used = after.since(&before, "busy");
        assert!((1_000_000..=40_000_000).contains(&used), "{used} ns");
        assert!(after.all_since(&before) >= used);
    }
}
