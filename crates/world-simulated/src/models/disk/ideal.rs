//! A disk with a latency and a rate only, for tests and for machines of many disks.

use super::disk_model::{Command, DiskModel, SectorsOutOfRange, Step};
use super::layout::DiskShape;
use super::spec::{DiskDeclaration, DiskKind, DiskSpec};
use crate::models::{ModelInfo, ParameterValues};
use units::{Duration, Instant};

/// Declaration of the ideal disk.
pub const DISK: DiskDeclaration = DiskDeclaration {
    info: ModelInfo { name: "ideal", help: "no latency and the rate of the HP 97560" },
    kind_in_files: None,
    parameters: &[],
    make: |_: &ParameterValues| {
        let (latency, bytes_per_second) = (Duration::ZERO, HP97560_BYTES_PER_SECOND);
        Ok(DiskKind::of(IdealSpec { latency, bytes_per_second }))
    },
};

/// Rate of the HP 97560 over many tracks: 2.11 MB/s (TOCS 1997, Table I).
pub const HP97560_BYTES_PER_SECOND: u64 = 2_212_495;

/// Specification of an ideal disk, on no bus, of any capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdealSpec {
    /// Time before the first byte.
    pub latency: Duration,
    /// Rate from then on.
    pub bytes_per_second: u64,
}

impl DiskSpec for IdealSpec {
    fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
        Box::new(IdealDisk::new(self.latency, self.bytes_per_second))
    }
}

/// A disk of any capacity that takes `latency + bytes / rate` for a request.
///
/// Requests share the rate one after the other, and their latencies overlap. So concurrent requests
/// reach the full rate, and sequential ones pay the latency each.
#[derive(Clone, Debug)]
pub struct IdealDisk {
    latency: Duration,
    bytes_per_second: u64,
    free_at: Instant,
    written_at: Instant,
}

impl IdealDisk {
    /// Creates an idle disk. The rate must not be zero.
    pub fn new(latency: Duration, bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "a disk must have a rate");
        let (free_at, written_at) = (Instant::START, Instant::START);
        Self { latency, bytes_per_second, free_at, written_at }
    }

    /// Accepts a transfer of `bytes`. Returns the arrival of the last byte.
    fn transfer(&mut self, now: Instant, bytes: u64) -> Instant {
        let data = Duration::of_transfer(bytes, self.bytes_per_second);
        self.free_at = self.free_at.max(now) + data;
        self.free_at + self.latency
    }
}

/// Capacity in bytes of a disk without an end. No program reaches it.
const ENDLESS_BYTES: u64 = (1 << 57) - 512;

/// Bytes that stay together in a layout of random tracks: a track of the HP 97560.
const TRACK_BYTES: u64 = 36_864;

/// Sectors are bytes: the model has no coarser unit.
impl DiskModel for IdealDisk {
    fn shape(&self) -> DiskShape {
        DiskShape { track_sectors: TRACK_BYTES, capacity_sectors: ENDLESS_BYTES }
    }

    fn sector_bytes(&self) -> u64 {
        1
    }

    fn commands_max(&self) -> Option<u32> {
        None
    }

    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        command.check("ideal disk", self.shape().capacity_sectors)?;
        let end = self.transfer(now, command.sectors.end - command.sectors.start);
        if !command.reads {
            self.written_at = end;
        }
        Ok(Step::Complete(end))
    }

    fn moved(&mut self, _now: Instant) -> Step {
        unreachable!("an ideal disk asks for no burst")
    }

    fn abandon(&mut self) {}

    fn idle_at(&self) -> Instant {
        self.written_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(disk: &mut IdealDisk, now_ns: u64, reads: bool, bytes: u64) -> Step {
        let command = Command { reads, sectors: 1_000..1_000 + bytes };
        disk.begin(Instant::from_ns(now_ns), &command).expect("the disk has no end")
    }

    /// Proves that one request costs latency and transfer, and that two share only the rate.
    #[test]
    fn requests_share_the_rate() {
        let mut disk = IdealDisk::new(Duration::from_us(100), 1_000_000_000);
        let complete = |ns| Step::Complete(Instant::from_ns(ns));
        assert_eq!(transfer(&mut disk, 0, true, 1_000), complete(101_000));
        assert_eq!(transfer(&mut disk, 0, false, 2_000), complete(103_000));
        assert_eq!(disk.idle_at(), Instant::from_ns(103_000));
        assert_eq!(transfer(&mut disk, 50_000, true, 1), complete(150_001));
    }
}
