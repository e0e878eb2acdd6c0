//! Progress of one thread of a computation: the moment at which each round ended.

use crate::span::{Span, now_ns};

/// Maximum number of rounds of a thread that are noted: a quarter of an hour of rounds of 60 us, in
/// 128 MiB.
const ROUNDS_MAX: usize = 1 << 24;

/// Ends of rounds, in order.
pub(super) struct Progress {
    start_ns: u64,
    ends_ns: Vec<u64>,
}

impl Progress {
    /// No round yet.
    pub(super) fn begin() -> Self {
        Self { start_ns: now_ns(), ends_ns: Vec::new() }
    }

    /// Notes the end of a round. Returns `false` if there is no room for more.
    pub(super) fn note(&mut self) -> bool {
        self.ends_ns.push(now_ns());
        self.ends_ns.len() < ROUNDS_MAX
    }

    /// True if the thread has ended for want of room.
    pub(super) fn is_full(&self) -> bool {
        self.ends_ns.len() >= ROUNDS_MAX
    }

    /// Number of rounds within a time. Those that reach over its ends count in part.
    pub(super) fn rounds_in(&self, span: Span) -> f64 {
        self.rounds_until(span.end_ns) - self.rounds_until(span.start_ns)
    }

    fn rounds_until(&self, at: u64) -> f64 {
        let done = self.ends_ns.partition_point(|end| *end <= at);
        let begun = done.checked_sub(1).map_or(self.start_ns, |last| self.ends_ns[last]);
        let part = self.ends_ns.get(done).map_or(0.0, |end| {
            at.saturating_sub(begun) as f64 / end.saturating_sub(begun).max(1) as f64
        });
        done as f64 + part
    }
}

#[cfg(test)]
mod tests {
    //! Proves: rounds count by the share of them that lies within a time.
    use super::*;

    #[test]
    fn rounds_count_in_part() {
        let progress = Progress { start_ns: 100, ends_ns: vec![200, 300, 500] };
        let rounds = |start_ns, end_ns| progress.rounds_in(Span { start_ns, end_ns });
        assert_eq!([rounds(100, 500), rounds(0, 900), rounds(200, 300)], [3.0, 3.0, 1.0]);
        assert_eq!([rounds(150, 200), rounds(250, 350), rounds(300, 400)], [0.5, 0.75, 0.5]);
        assert_eq!([rounds(0, 100), rounds(500, 600), rounds(50, 150)], [0.0, 0.0, 0.5]);
    }
}
