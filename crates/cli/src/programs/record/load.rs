//! Load of this host while a program runs: time in which tasks waited for a processor, and time
//! that other virtual machines took. The system counts both, so the shares are exact means.

use std::time::Instant;

/// Counters at some time.
pub(super) struct Load {
    at: Instant,
    /// Microseconds in which some task waited for a processor.
    waited_us: Option<u64>,
    /// Ticks of all processors: those that others took, and all.
    ticks: Option<(u64, u64)>,
}

/// Shares of the time between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    pub(super) processor_pressure_percent: Option<f64>,
    pub(super) steal_percent: Option<f64>,
}

impl Load {
    /// Reads the counters.
    pub(super) fn read() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).ok();
        Self {
            at: Instant::now(),
            waited_us: text("/proc/pressure/cpu").and_then(|text| waited_us(&text)),
            ticks: text("/proc/stat").and_then(|text| ticks(&text)),
        }
    }

    /// Shares of the time from this reading to a later one.
    pub(super) fn until(&self, later: &Self) -> Shares {
        let percent = |part: u64, all: f64| (all > 0.0).then(|| 100.0 * part as f64 / all);
        let passed_us = later.at.saturating_duration_since(self.at).as_micros() as f64;
        let waited = self.waited_us.zip(later.waited_us);
        let ticks = self.ticks.zip(later.ticks);
        Shares {
            processor_pressure_percent: waited
                .and_then(|(from, to)| percent(to.saturating_sub(from), passed_us)),
            steal_percent: ticks.and_then(|((stolen, all), (stolen_later, all_later))| {
                let all = all_later.saturating_sub(all) as f64;
                percent(stolen_later.saturating_sub(stolen), all)
            }),
        }
    }
}

/// Total of the line `some` of /proc/pressure/cpu.
fn waited_us(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.parse().ok()
}

/// Ticks of the line `cpu` of /proc/stat (proc_stat(5)): the eighth is of other virtual machines;
/// those of guests behind it are counted before.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let cpu = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> =
        cpu.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    //! Proves: the shares are those of the time between two readings.
    use super::*;
    use std::time::Duration;

    #[test]
    fn shares_are_of_the_time_between() {
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull total=7\n";
        assert_eq!(waited_us(pressure), Some(1500));
        assert_eq!(ticks("cpu  10 0 20 60 0 0 0 10 5 0\ncpu0 1"), Some((10, 100)));
        assert_eq!(ticks("cpu  10 0 20 60"), None);
        let before = Load { at: Instant::now(), waited_us: Some(1000), ticks: Some((10, 100)) };
        let at = before.at + Duration::from_millis(1);
        let shares = before.until(&Load { at, waited_us: Some(1500), ticks: Some((15, 200)) });
        assert_eq!(shares.processor_pressure_percent, Some(50.0));
        assert_eq!(shares.steal_percent, Some(5.0));
        let unknown = before.until(&Load { at, waited_us: None, ticks: Some((10, 100)) });
        assert_eq!(unknown.processor_pressure_percent, None);
        assert_eq!(unknown.steal_percent, None);
    }
}
