//! A SCSI-2 bus: one owner at a time, first come, first served.

use units::{Duration, Instant};

/// The state of one bus.
#[derive(Clone, Debug, Default)]
pub struct ScsiBus {
    free_at: Instant,
    busy: Duration,
}

impl ScsiBus {
    /// Bytes a second while data moves: 10 MB/s (Kotz, ACM TOCS 15(1), 1997, Table I), which SCSI-2
    /// means in millions.
    pub const BYTES_PER_SECOND: u64 = 10_000_000;

    /// Time to take the bus and name the partner, before a command or data can move: arbitration,
    /// selection or reselection, messages.
    ///
    /// 0.129 ms is the reselection time that a logic analyser showed for the HP C2247A, a disk of
    /// the same years (DiskSim 4.0, `hp_c2247a.diskspecs`, "other reselect"). It agrees with TOCS
    /// 1997, section 6.1: with 8 disks a bus, reads of two transactions were 13 % faster than reads
    /// of three, so (0.819 + 3 x) / (0.819 + 2 x) = 1.13 and x is about 0.14 ms for 8 KB.
    pub const CONNECTION: Duration = Duration::from_us(129);

    /// A free bus.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the bus for `length` as soon after `now` as those who came before leave it: when it is
    /// given back.
    pub fn occupy(&mut self, now: Instant, length: Duration) -> Instant {
        self.free_at = self.free_at.max(now) + length;
        self.busy += length;
        self.free_at
    }

    /// Sends a command to a disk: when it has arrived.
    pub fn command(&mut self, now: Instant) -> Instant {
        self.occupy(now, Self::CONNECTION)
    }

    /// Connects and moves `bytes` in either direction: when all have arrived.
    pub fn transfer(&mut self, now: Instant, bytes: u64) -> Instant {
        let data = Duration::of_transfer(bytes, Self::BYTES_PER_SECOND);
        self.occupy(now, Self::CONNECTION + data)
    }

    /// When the bus is free for a newcomer.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// For how long it has been taken, future time already given away included.
    pub fn busy(&self) -> Duration {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the bus serves in order, and that 8 KB take a connection and 0.819 ms.
    #[test]
    fn serves_in_order_of_arrival() {
        let mut bus = ScsiBus::new();
        let first = bus.transfer(Instant::from_ns(1_000), 8192);
        assert_eq!(first, Instant::from_ns(1_000 + 129_000 + 819_200));
        let second = bus.command(Instant::from_ns(2_000));
        assert_eq!(second, first + ScsiBus::CONNECTION);
        let idle = bus.occupy(second + Duration::from_us(5), Duration::from_us(1));
        assert_eq!(idle, second + Duration::from_us(6));
        assert_eq!(bus.busy(), Duration::from_ns(129_000 * 2 + 819_200 + 1_000));
    }
}
