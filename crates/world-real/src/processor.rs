//! Processor time of this process, as the kernel counts it.

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use units::Duration;
use world::ProcessorTime;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Index of `stime` among the words of /proc/PID/stat after the name of the process (proc(5): field
/// 15, where the name is field 2).
const SYSTEM_TIME: usize = 12;

/// Returns the time that all threads of this process have used. The part in the kernel is counted
/// in whole ticks, usually of 10 ms, and is none where `/proc` is not mounted.
pub(crate) fn used() -> ProcessorTime {
    let all = clock_gettime(ClockId::ProcessCPUTime);
    let all = Duration::from_ns(all.tv_sec as u64 * NS_PER_SECOND + all.tv_nsec as u64);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let system = system_ticks(&stat) * (NS_PER_SECOND / clock_ticks_per_second().max(1));
    ProcessorTime { all, system: Duration::from_ns(system).min(all) }
}

/// Returns the time in the kernel, in ticks, from a line of /proc/PID/stat. The name of a process
/// is in parentheses, and may have some itself.
fn system_ticks(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let word = after_name.split_whitespace().nth(SYSTEM_TIME);
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    //! Proves: the time in the kernel is found behind any name, and the time of this process grows
    //! with its work.
    use super::*;

    #[test]
    fn the_time_in_the_kernel_is_found() {
        let line = "7 (a) b) R 1 7 7 0 -1 4194304 99 0 0 0 250 31 0 0 20 0 1 0 12345 1 2";
        assert_eq!(system_ticks(line), 31);
        assert_eq!(system_ticks(""), 0);
    }

    #[test]
    fn work_is_counted() {
        let begin = used();
        while used().all == begin.all {
            std::hint::spin_loop();
        }
        assert!(used().system <= used().all);
    }
}
