//! A bus between a host and its disks: one owner at a time, first come, first served.

use units::{Duration, Instant};

/// Specification of a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusSpec {
    /// Bytes a second while data moves.
    pub bytes_per_second: u64,
    /// Time to take the bus and name the partner before a command or data can move: arbitration,
    /// selection or reselection, messages.
    pub connection: Duration,
}

impl BusSpec {
    /// SCSI-2: 10 MB/s (Kotz, ACM TOCS 15(1), 1997, Table I); SCSI-2 counts in millions.
    ///
    /// 0.129 ms is the reselection time that a logic analyser showed for the HP C2247A, a disk of
    /// the same years (DiskSim 4.0, `hp_c2247a.diskspecs`, "other reselect"). It agrees with TOCS
    /// 1997, section 6.1: with 8 disks a bus, reads of two transactions were 13 % faster than reads
    /// of three, so (0.819 + 3 x) / (0.819 + 2 x) = 1.13 and x is about 0.14 ms for 8 KB.
    pub const SCSI_2: Self =
        Self { bytes_per_second: 10_000_000, connection: Duration::from_us(129) };

    /// HP-IB, the bus of Hewlett-Packard's instruments (IEEE 488): 1.2 MB/s and 0.25 ms, as in the
    /// header of HP's disk trace `ajw.1week.srt`.
    pub const HP_IB: Self =
        Self { bytes_per_second: 1_200_000, connection: Duration::from_us(250) };
}

/// State of one bus.
#[derive(Clone, Debug)]
pub struct Bus {
    spec: BusSpec,
    free_at: Instant,
    busy: Duration,
}

impl Bus {
    /// Creates a free bus.
    pub fn new(spec: BusSpec) -> Self {
        Self { spec, free_at: Instant::START, busy: Duration::ZERO }
    }

    /// Occupies the bus for `length`, after all earlier transfers. Returns the end.
    pub fn occupy(&mut self, now: Instant, length: Duration) -> Instant {
        self.free_at = self.free_at.max(now) + length;
        self.busy += length;
        self.free_at
    }

    /// Sends a command to a disk. Returns its arrival.
    pub fn command(&mut self, now: Instant) -> Instant {
        self.occupy(now, self.spec.connection)
    }

    /// Connects and moves `bytes` in either direction. Returns the arrival of the last byte.
    pub fn transfer(&mut self, now: Instant, bytes: u64) -> Instant {
        let data = Duration::of_transfer(bytes, self.spec.bytes_per_second);
        self.occupy(now, self.spec.connection + data)
    }

    /// Instant from which the bus is free for another transfer.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Total time for which the bus is taken, including future transfers that it has accepted.
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
        let mut bus = Bus::new(BusSpec::SCSI_2);
        let first = bus.transfer(Instant::from_ns(1_000), 8192);
        assert_eq!(first, Instant::from_ns(1_000 + 129_000 + 819_200));
        let second = bus.command(Instant::from_ns(2_000));
        assert_eq!(second, first + BusSpec::SCSI_2.connection);
        let idle = bus.occupy(second + Duration::from_us(5), Duration::from_us(1));
        assert_eq!(idle, second + Duration::from_us(6));
        assert_eq!(bus.busy(), Duration::from_ns(129_000 * 2 + 819_200 + 1_000));
    }
}
