//! A processor that does one thing at a time, first come, first served.

use units::{Duration, Instant};

/// The state of one processor. Costs are stated for the reference processor of the papers, 50 MHz
/// (Kotz, ACM TOCS 15(1), 1997, Table I).
#[derive(Clone, Debug)]
pub struct Processor {
    free_at: Instant,
    busy: Duration,
    speed: u64,
    reference_speed: u64,
}

impl Processor {
    /// Clock of the reference processor in MHz.
    pub const REFERENCE_MHZ: u32 = 50;

    /// The reference processor, idle.
    pub fn reference() -> Self {
        Self::new(1, 1)
    }

    /// An idle processor, `speed / reference_speed` times as fast as the reference: `new(3000, 50)`
    /// is 60 times as fast. Neither may be zero.
    pub fn new(speed: u32, reference_speed: u32) -> Self {
        assert!(speed > 0 && reference_speed > 0, "a processor must have a speed");
        Self {
            free_at: Instant::START,
            busy: Duration::ZERO,
            speed: speed.into(),
            reference_speed: reference_speed.into(),
        }
    }

    /// Does work that costs the reference processor `cost`, after all that came before: when it is
    /// done. Rounded up to a nanosecond.
    pub fn occupy(&mut self, now: Instant, cost: Duration) -> Instant {
        let length = self.scale(cost);
        self.free_at = self.free_at.max(now) + length;
        self.busy += length;
        self.free_at
    }

    /// When the processor is free for a newcomer.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// For how long it has worked, work accepted for the future included.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    fn scale(&self, cost: Duration) -> Duration {
        if self.speed == self.reference_speed {
            return cost;
        }
        let scaled = u128::from(cost.as_ns()) * u128::from(self.reference_speed);
        let ns = scaled.div_ceil(u128::from(self.speed));
        Duration::from_ns(u64::try_from(ns).expect("a computation must end within 584 years"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that work queues behind earlier work, and that idle time is not counted as busy.
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
}
