//! Share of a trace that depends on timing.

use crate::event::RankTrace;

/// Calls whose outcome depends on timing, beside all calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimingShare {
    /// Calls that depend on timing.
    pub calls: u64,
    /// All calls.
    pub all_calls: u64,
    /// Recorded time in calls that depend on timing, in nanoseconds.
    pub ns: u64,
    /// Recorded time of all ranks, in calls and between them, in nanoseconds.
    pub all_ns: u64,
}

impl TimingShare {
    /// Calls that depend on timing, in percent of all.
    pub fn calls_percent(&self) -> f64 {
        percent(self.calls, self.all_calls)
    }

    /// Time in calls that depend on timing, in percent of the recorded time.
    pub fn time_percent(&self) -> f64 {
        percent(self.ns, self.all_ns)
    }
}

fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 * 100.0 }
}

/// Share of the calls and times of a trace that depends on timing. Times that do not fit in 64 bits
/// count as the largest number.
pub fn timing_share(ranks: &[RankTrace]) -> TimingShare {
    let mut share = TimingShare::default();
    for event in ranks.iter().flat_map(|rank| &rank.events) {
        share.all_calls += 1;
        for ns in [event.computed_ns, event.blocked_ns, event.took_ns] {
            share.all_ns = share.all_ns.saturating_add(ns);
        }
        if event.depends_on_timing {
            share.calls += 1;
            share.ns = share.ns.saturating_add(event.took_ns);
        }
    }
    share
}
