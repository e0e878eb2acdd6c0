//! Availability of the servers' processors to a computation that runs on them during a transfer:
//! the method of D. Kotz and T. Cai, "Exploring the use of I/O Nodes for Computation in a MIMD
//! Multiprocessor", Dartmouth PCS-TR94-232 (1994), sections 3.1 and 3.4.
//!
//! Pure functions from traces to numbers. The file system has priority: the computation has only
//! the time in which a processor is idle, less a context switch for each interruption.

use interface::Availability;
use units::{Duration, Instant};
use world_simulated::Busy;

/// Context switch between the file system and the computation, for each interruption. An idle time
/// that is not longer is useless (TR94-232, section 3.4).
const SWITCH: Duration = Duration::from_us(50);

/// Computing time of each process between two barriers (TR94-232, section 3.1).
const BETWEEN_BARRIERS: Duration = Duration::from_ms(5);

/// Time of the transfer: from `start` up to, but without, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Period {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// A time in which a computation can run.
type Idle = Period;

/// Computes the availability from the traces of one or more servers, over a period that is not
/// empty.
pub(crate) fn availability_of(traces: &[Vec<Busy>], period: Period) -> Availability {
    let all = period.length() * traces.len() as u64;
    assert!(all > Duration::ZERO, "availability is a share of some time on some server");
    let percent =
        |part: Duration, whole: Duration| part.as_ns() as f64 / whole.as_ns() as f64 * 100.0;
    let busy: Vec<Vec<Busy>> = traces.iter().map(|trace| clip(trace, period)).collect();
    let idle: Vec<Vec<Idle>> = busy.iter().map(|trace| usable(trace, period)).collect();
    let interruptions: usize = busy.iter().map(Vec::len).sum();
    Availability {
        cpu_available_percent: percent(sum(idle.iter().flatten().map(Period::length)), all),
        cpu_usable_with_barriers_percent: percent(
            computed_with_barriers(&idle, period, BETWEEN_BARRIERS),
            period.length(),
        ),
        cpu_busy_percent: percent(
            sum(busy.iter().flatten().map(|busy| busy.end.since(busy.start))),
            all,
        ),
        cpu_interruptions: interruptions as f64 / traces.len() as f64,
    }
}

impl Period {
    fn length(&self) -> Duration {
        self.end.since(self.start)
    }
}

fn sum(lengths: impl Iterator<Item = Duration>) -> Duration {
    lengths.fold(Duration::ZERO, |sum, length| sum + length)
}

/// Returns the part of a trace that lies in a period.
fn clip(trace: &[Busy], period: Period) -> Vec<Busy> {
    let cut =
        |busy: &Busy| Busy { start: busy.start.max(period.start), end: busy.end.min(period.end) };
    trace.iter().map(cut).filter(|busy| busy.start < busy.end).collect()
}

/// Times at which a computation can run, in order: the processor is idle, and is not switching back
/// after an interruption.
///
/// ```text
///   file system   ....####........##.####...........      # busy
///   computation   ====....s=======..s....s==========      s switching, = usable
/// ```
fn usable(busy: &[Busy], period: Period) -> Vec<Idle> {
    let ends = busy.iter().map(|busy| busy.end + SWITCH);
    let starts = busy.iter().map(|busy| busy.start).chain([period.end]);
    let idle = [period.start].into_iter().chain(ends).zip(starts);
    idle.filter(|(start, end)| start < end).map(|(start, end)| Idle { start, end }).collect()
}

/// Computing time of each process at the end of the period if, after every `interval` of computing,
/// each process waits for all.
///
/// The last interval counts as far as the slowest process computed. If the file system had nothing
/// more to do afterwards, all would meet later by exactly the time that is missing here.
fn computed_with_barriers(processes: &[Vec<Idle>], period: Period, interval: Duration) -> Duration {
    let mut processes: Vec<Process> = processes.iter().map(|idle| Process { idle }).collect();
    let (mut computed, mut barrier) = (Duration::ZERO, period.start);
    loop {
        let advances = processes.iter_mut().map(|process| process.advance(barrier, interval));
        let slowest = advances.reduce(Advance::slower).unwrap_or(Advance::Partly(interval));
        match slowest {
            Advance::Done(at) => {
                computed += interval;
                barrier = at;
            }
            Advance::Partly(part) => return computed + part,
        }
    }
}

/// One process of the computation, and the times at which it can still run.
struct Process<'a> {
    idle: &'a [Idle],
}

/// Progress of a process in an interval.
#[derive(Clone, Copy)]
enum Advance {
    /// The process computed the whole interval at this moment.
    Done(Instant),
    /// At the end of the trace the process has computed this much.
    Partly(Duration),
}

impl Advance {
    fn slower(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done(one), Self::Done(two)) => Self::Done(one.max(two)),
            (Self::Partly(one), Self::Partly(two)) => Self::Partly(one.min(two)),
            (Self::Partly(part), _) | (_, Self::Partly(part)) => Self::Partly(part),
        }
    }
}

impl Process<'_> {
    /// Computes for `interval` from `start` on. `start` never decreases between calls.
    fn advance(&mut self, start: Instant, interval: Duration) -> Advance {
        let mut computed = Duration::ZERO;
        while let [idle, later @ ..] = self.idle {
            let from = idle.start.max(start);
            if from < idle.end {
                let missing = interval - computed;
                if idle.end.since(from) >= missing {
                    return Advance::Done(from + missing);
                }
                computed += idle.end.since(from);
            }
            self.idle = later;
        }
        Advance::Partly(computed)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: on traces made by hand, each number is the one that pencil and paper give.
    use super::*;

    /// In microseconds.
    fn at(us: u64) -> Instant {
        Instant::START + Duration::from_us(us)
    }

    fn period(start: u64, end: u64) -> Period {
        Period { start: at(start), end: at(end) }
    }

    fn trace(busy: &[(u64, u64)]) -> Vec<Busy> {
        busy.iter().map(|&(start, end)| Busy { start: at(start), end: at(end) }).collect()
    }

    fn availability(traces: &[&[(u64, u64)]], period: Period) -> Availability {
        let traces: Vec<Vec<Busy>> = traces.iter().map(|busy| trace(busy)).collect();
        availability_of(&traces, period)
    }

    #[track_caller]
    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn an_idle_processor_is_all_available() {
        let all = availability(&[&[], &[]], period(1_000, 9_000));
        close(all.cpu_available_percent, 100.0);
        close(all.cpu_usable_with_barriers_percent, 100.0);
        close(all.cpu_busy_percent, 0.0);
        close(all.cpu_interruptions, 0.0);
    }

    #[test]
    fn each_interruption_costs_a_switch_and_short_idle_times_are_lost() {
        // Of 1000 us: idle 0-100 (all usable), 200-250 (50: lost), 300-351 (51: 1 usable),
        // 400-1000 (550 usable).
        let one = availability(&[&[(100, 200), (250, 300), (351, 400)]], period(0, 1_000));
        close(one.cpu_available_percent, (100 + 1 + 550) as f64 / 10.0);
        close(one.cpu_busy_percent, (100 + 50 + 49) as f64 / 10.0);
        close(one.cpu_interruptions, 3.0);
    }

    #[test]
    fn only_the_period_counts() {
        // The first interruption lies before the period, the second reaches into it and the third
        // out of it.
        let busy = [(0, 10), (90, 200), (900, 2_000)];
        let one = availability(&[&busy], period(100, 1_000));
        close(one.cpu_busy_percent, (100 + 100) as f64 / 9.0);
        close(one.cpu_available_percent, (700 - 50) as f64 / 9.0);
        close(one.cpu_interruptions, 2.0);
    }

    #[test]
    fn servers_count_alike() {
        let two = availability(&[&[], &[(0, 1_000)]], period(0, 1_000));
        close(two.cpu_available_percent, 50.0);
        close(two.cpu_interruptions, 0.5);
    }

    #[test]
    fn barriers_wait_for_the_slowest_of_each_interval() {
        // Each is interrupted for 1 ms with its switch, but in different intervals of 5 ms, so both
        // wait twice: barriers at 6, 12 and 17 ms; 3 ms of the next are left.
        let (one, two) = ([(1_000, 1_950)], [(7_000, 7_950)]);
        let both = availability(&[&one, &two], period(0, 20_000));
        close(both.cpu_available_percent, 95.0);
        close(both.cpu_usable_with_barriers_percent, 90.0);
        // Together, they lose that time only once.
        let same = availability(&[&one, &one], period(0, 20_000));
        close(same.cpu_available_percent, 95.0);
        close(same.cpu_usable_with_barriers_percent, 95.0);
    }

    #[test]
    fn who_waits_at_a_barrier_loses_no_more_by_an_interruption() {
        // The first waits from 5 to 8 ms for the second, and is interrupted within that time.
        let (one, two) = ([(6_000, 6_950)], [(0, 2_950)]);
        let both = availability(&[&one, &two], period(0, 13_000));
        close(both.cpu_usable_with_barriers_percent, 1_000.0 / 13.0);
    }

    #[test]
    fn the_last_interval_counts_as_far_as_its_slowest() {
        // The barrier is at 5 ms; at 8 ms the one has computed 3 ms more, the other 1 ms.
        let both = availability(&[&[], &[(6_000, 8_000)]], period(0, 8_000));
        close(both.cpu_usable_with_barriers_percent, 600.0 / 8.0);
        // The other is interrupted for longer than the trace: nothing after the barrier.
        let both = availability(&[&[], &[(5_000, 9_000)]], period(0, 8_000));
        close(both.cpu_usable_with_barriers_percent, 500.0 / 8.0);
    }

    #[test]
    fn one_process_is_never_held_up_by_barriers() {
        let busy: Vec<(u64, u64)> = (0..40).map(|n| (n * 700 + 13, n * 700 + 300)).collect();
        let one = availability(&[&busy], period(0, 28_000));
        close(one.cpu_usable_with_barriers_percent, one.cpu_available_percent);
    }

    #[test]
    fn trials_have_a_mean() {
        let at = |percent: f64| Availability {
            cpu_available_percent: percent,
            cpu_usable_with_barriers_percent: percent / 2.0,
            cpu_busy_percent: 100.0 - percent,
            cpu_interruptions: 4.0,
        };
        assert_eq!(Availability::mean([at(80.0), at(40.0)].into_iter()), Some(at(60.0)));
        assert_eq!(Availability::mean(std::iter::empty()), None);
    }
}
