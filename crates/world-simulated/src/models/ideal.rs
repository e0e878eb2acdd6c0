//! A disk without mechanics: a latency and a rate, for tests and for machines of many disks.

use units::{Duration, Instant};

/// A disk of any capacity that takes `latency + bytes / rate` for a request.
///
/// Requests share the rate one after the other; their latencies pass at the same time. So many
/// requests at once reach the full rate, and one at a time pay the latency each.
#[derive(Clone, Debug)]
pub struct IdealDisk {
    latency: Duration,
    bytes_per_second: u64,
    free_at: Instant,
    written_at: Instant,
}

impl IdealDisk {
    /// An idle disk. The rate must not be zero.
    pub fn new(latency: Duration, bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "a disk must have a rate");
        let (free_at, written_at) = (Instant::START, Instant::START);
        Self { latency, bytes_per_second, free_at, written_at }
    }

    /// Reads `bytes`: when the last has arrived.
    pub fn read(&mut self, now: Instant, bytes: u64) -> Instant {
        let data = Duration::of_transfer(bytes, self.bytes_per_second);
        self.free_at = self.free_at.max(now) + data;
        self.free_at + self.latency
    }

    /// Writes `bytes`: when the last is on the medium.
    pub fn write(&mut self, now: Instant, bytes: u64) -> Instant {
        self.written_at = self.read(now, bytes);
        self.written_at
    }

    /// When everything written so far is on the medium.
    pub fn idle_at(&self) -> Instant {
        self.written_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that one request costs latency and transfer, and that two share the rate only.
    #[test]
    fn requests_share_the_rate() {
        let mut disk = IdealDisk::new(Duration::from_us(100), 1_000_000_000);
        assert_eq!(disk.read(Instant::START, 1_000), Instant::from_ns(101_000));
        assert_eq!(disk.write(Instant::START, 2_000), Instant::from_ns(103_000));
        assert_eq!(disk.idle_at(), Instant::from_ns(103_000));
        assert_eq!(disk.read(Instant::from_ns(50_000), 1), Instant::from_ns(150_001));
    }
}
