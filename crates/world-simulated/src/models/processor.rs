//! A processor that does one thing at a time, first come, first served.

use units::{Duration, Instant};

/// Interval in which a processor worked without a pause, `end` excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy {
    /// Beginning of the work.
    pub start: Instant,
    /// Instant from which the processor was free again.
    pub end: Instant,
}

/// State of one processor. Costs refer to the reference processor of the papers, 50 MHz (Kotz, ACM
/// TOCS 15(1), 1997, Table I).
#[derive(Clone, Debug)]
pub struct Processor {
    free_at: Instant,
    busy: Duration,
    speed: u64,
    reference_speed: u64,
    trace: Option<Vec<Busy>>,
}

impl Processor {
    /// Clock of the reference processor in MHz.
    pub const REFERENCE_MHZ: u32 = 50;

    /// Creates the reference processor, idle.
    pub fn reference() -> Self {
        Self::new(1, 1)
    }

    /// Creates an idle processor, `speed / reference_speed` times as fast as the reference:
    /// `new(3000, 50)` is 60 times as fast. Neither may be zero.
    pub fn new(speed: u32, reference_speed: u32) -> Self {
        assert!(speed > 0 && reference_speed > 0, "a processor must have a speed");
        Self {
            free_at: Instant::START,
            busy: Duration::ZERO,
            speed: speed.into(),
            reference_speed: reference_speed.into(),
            trace: None,
        }
    }

    /// Makes the processor record its busy intervals from now on.
    pub fn traced(self) -> Self {
        Self { trace: Some(Vec::new()), ..self }
    }

    /// Accepts work that costs the reference processor `cost`, after all earlier work. Returns its
    /// end, rounded up to a nanosecond.
    #[inline]
    pub fn occupy(&mut self, now: Instant, cost: Duration) -> Instant {
        self.occupy_for(now, self.scale(cost))
    }

    /// Accepts work that takes `length`, after all earlier work. Returns its end.
    #[inline]
    pub fn occupy_for(&mut self, now: Instant, length: Duration) -> Instant {
        let start = self.free_at.max(now);
        self.free_at = start + length;
        self.busy += length;
        if let Some(trace) = &mut self.trace {
            note(trace, Busy { start, end: self.free_at });
        }
        self.free_at
    }

    /// Instant from which the processor is free for more work.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Total working time, including accepted future work.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Busy intervals in order, including accepted future work; no two touch. Empty before
    /// [`traced`](Self::traced) was called, whose earlier work it lacks.
    pub fn trace(&self) -> &[Busy] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// Returns the time of work that costs the reference processor `cost`, rounded up.
    #[inline]
    pub fn scale(&self, cost: Duration) -> Duration {
        if self.speed == self.reference_speed {
            return cost;
        }
        let scaled = u128::from(cost.as_ns()) * u128::from(self.reference_speed);
        let ns = scaled.div_ceil(u128::from(self.speed));
        Duration::from_ns(u64::try_from(ns).expect("a computation must end within 584 years"))
    }
}

/// Adds work that begins no earlier than all recorded work ends.
fn note(trace: &mut Vec<Busy>, work: Busy) {
    match trace.last_mut() {
        _ if work.start == work.end => {}
        Some(last) if last.end == work.start => last.end = work.end,
        _ => trace.push(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that work queues behind earlier work, and that idle time does not count as busy.
    #[test]
    fn works_in_order_of_arrival() {
        let mut processor = Processor::reference();
        let us = Duration::from_us;
        assert_eq!(processor.occupy(Instant::START, us(5)), Instant::START + us(5));
        assert_eq!(processor.occupy(Instant::START + us(1), us(2)), Instant::START + us(7));
        assert_eq!(processor.occupy(Instant::START + us(9), us(1)), Instant::START + us(10));
        assert_eq!(processor.busy(), us(8));
    }

    /// Proves that speed divides cost, exactly and rounded up.
    #[test]
    fn speed_divides_cost() {
        let mut processor = Processor::new(150, 50);
        let done = processor.occupy(Instant::START, Duration::from_ns(10));
        assert_eq!(done, Instant::from_ns(4));
        let mut slow = Processor::new(1, 3);
        assert_eq!(slow.occupy(Instant::START, Duration::from_ns(7)), Instant::from_ns(21));
    }

    /// Proves that a trace merges work that touches, omits work that takes no time, and stays empty
    /// for a processor that does not record.
    #[test]
    fn traces_are_merged() {
        let at = |us: u64| Instant::START + Duration::from_us(us);
        let (mut traced, mut plain) = (Processor::reference().traced(), Processor::reference());
        for processor in [&mut traced, &mut plain] {
            for (now, cost) in [(2, 5), (3, 1), (8, 2), (20, 0), (30, 4)] {
                processor.occupy(at(now), Duration::from_us(cost));
            }
        }
        let busy = |start: u64, end: u64| Busy { start: at(start), end: at(end) };
        assert_eq!(traced.trace(), [busy(2, 10), busy(30, 34)]);
        assert_eq!(plain.trace(), []);
        assert_eq!(traced.busy(), plain.busy());
    }
}
