//! A disk that is a formula: overhead, seek as a function of distance, mean rotation, transfer.
//!
//! This is the "simple analytical model [...] which calculates the I/O time as a function of
//! specified disk performance characteristics and the size of the data transfer" of R. Bagrodia, S.
//! Docy and A. Kahn, "Parallel simulation of parallel file systems and I/O programs" (PIOSIM), SC
//! 1997. The paper gives no formula. This one is the first-order model of C. Ruemmler and J.
//! Wilkes, IEEE Computer 27(3), 1994, with a seek that depends on its distance. It has no buffer
//! and no angle, so the difference to a mechanical disk shows the effects of those.

use super::disk_model::{Command, DiskModel, SectorsOutOfRange, Step};
use super::layout::DiskShape;
use super::parameter_bases::{CAPACITY, RATE, TIME};
use super::spec::{DiskDeclaration, DiskKind, DiskSpec};
use crate::models::{ModelInfo, Parameter, ParameterValues};
use units::{Duration, Instant};

/// Declaration of the analytic disk. The name stands for [`AnalyticSpec::HP97560`].
pub const DISK: DiskDeclaration = DiskDeclaration {
    info: ModelInfo {
        name: "analytic",
        help: "the HP 97560 as a formula: overhead, seek, mean rotation, transfer",
    },
    kind_in_files: Some("analytic"),
    parameters: &[CAPACITY_BYTES, OVERHEAD, ROTATION, SEEK_LEAST, SEEK_MOST, BYTES_PER_SECOND],
    make: |values: &ParameterValues| {
        let spec = AnalyticSpec {
            capacity_bytes: values.get(&CAPACITY_BYTES),
            overhead: values.time(&OVERHEAD),
            rotation: values.time(&ROTATION),
            seek_least: values.time(&SEEK_LEAST),
            seek_most: values.time(&SEEK_MOST),
            bytes_per_second: values.get(&BYTES_PER_SECOND),
        };
        if spec.seek_least > spec.seek_most {
            return Err("seek_least_us must be no more than seek_most_us".to_owned());
        }
        Ok(DiskKind::of(spec))
    },
};

const CAPACITY_BYTES: Parameter = Parameter {
    name: "capacity_bytes",
    default: AnalyticSpec::HP97560.capacity_bytes,
    meaning: "Bytes of the disk.",
    ..CAPACITY
};

const OVERHEAD: Parameter = Parameter {
    name: "overhead_us",
    default: AnalyticSpec::HP97560.overhead.as_ns(),
    meaning: "Time of each command.",
    ..TIME
};

const ROTATION: Parameter = Parameter {
    name: "rotation_us",
    default: AnalyticSpec::HP97560.rotation.as_ns(),
    meaning: "Mean time until the data passes the head, paid where the arm had to move.",
    ..TIME
};

const SEEK_LEAST: Parameter = Parameter {
    name: "seek_least_us",
    default: AnalyticSpec::HP97560.seek_least.as_ns(),
    meaning: "Time of the shortest seek.",
    ..TIME
};

const SEEK_MOST: Parameter = Parameter {
    name: "seek_most_us",
    default: AnalyticSpec::HP97560.seek_most.as_ns(),
    meaning: "Time of a seek over the whole disk.",
    ..TIME
};

const BYTES_PER_SECOND: Parameter = Parameter {
    name: "bytes_per_second",
    default: AnalyticSpec::HP97560.bytes_per_second,
    meaning: "Transfer rate.",
    ..RATE
};

/// Specification of an analytic disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnalyticSpec {
    /// Bytes of the disk, whole sectors of 512.
    pub capacity_bytes: u64,
    /// Time of each command.
    pub overhead: Duration,
    /// Mean time until the data passes the head, added whenever the arm had to move.
    pub rotation: Duration,
    /// Time of the shortest seek.
    pub seek_least: Duration,
    /// Time of a seek over the whole disk.
    pub seek_most: Duration,
    /// Transfer rate.
    pub bytes_per_second: u64,
}

const SECTOR_BYTES: u64 = 512;

impl AnalyticSpec {
    /// The HP 97560 as a formula: its overhead, half its revolution, its seek over one cylinder and
    /// over all 1962, its rate over many tracks (see the presets of mechanical disks).
    pub const HP97560: Self = Self {
        capacity_bytes: 1_355_304_960,
        overhead: Duration::from_us(2_200),
        rotation: Duration::from_us(7_496),
        seek_least: Duration::from_us(3_640),
        seek_most: Duration::from_us(23_696),
        bytes_per_second: 2_212_495,
    };

    /// Returns `seek_least` plus a part of the rest that grows with the root of the distance.
    fn seek(&self, distance_sectors: u64) -> Duration {
        if distance_sectors == 0 {
            return Duration::ZERO;
        }
        let rest_ns = u128::from((self.seek_most - self.seek_least).as_ns());
        let distance_bytes = u128::from(distance_sectors * SECTOR_BYTES);
        let part = rest_ns * rest_ns * distance_bytes / u128::from(self.capacity_bytes);
        self.seek_least + Duration::from_ns(part.isqrt() as u64)
    }
}

impl DiskSpec for AnalyticSpec {
    fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
        Box::new(AnalyticDisk::new(*self))
    }
}

/// A disk that takes one command at a time, on no bus, and reports when the transfer is complete.
#[derive(Clone, Debug)]
pub struct AnalyticDisk {
    spec: AnalyticSpec,
    /// One past the last sector of the latest command.
    arm: u64,
    free_at: Instant,
    written_at: Instant,
}

impl AnalyticDisk {
    /// Creates an idle disk with its arm at the first sector.
    pub fn new(spec: AnalyticSpec) -> Self {
        assert!(spec.bytes_per_second > 0, "a disk must have a rate");
        assert!(spec.seek_least <= spec.seek_most, "the longest seek must be the longest");
        assert!(spec.capacity_bytes >= SECTOR_BYTES, "a disk must have a sector");
        Self { spec, arm: 0, free_at: Instant::START, written_at: Instant::START }
    }
}

impl DiskModel for AnalyticDisk {
    fn shape(&self) -> DiskShape {
        let capacity_sectors = self.spec.capacity_bytes / SECTOR_BYTES;
        // The model has no tracks; this length stays together in a layout of random tracks.
        DiskShape { track_sectors: 72.min(capacity_sectors), capacity_sectors }
    }

    fn sector_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn commands_max(&self) -> Option<u32> {
        Some(1)
    }

    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        command.check("analytic disk", self.shape().capacity_sectors)?;
        let sectors = &command.sectors;
        let distance = self.arm.abs_diff(sectors.start);
        let rotation = if distance > 0 { self.spec.rotation } else { Duration::ZERO };
        let bytes = (sectors.end - sectors.start) * SECTOR_BYTES;
        let data = Duration::of_transfer(bytes, self.spec.bytes_per_second);
        // A cancelled command is carried out nevertheless.
        let start = self.free_at.max(now);
        self.free_at = start + self.spec.overhead + self.spec.seek(distance) + rotation + data;
        self.arm = sectors.end;
        if !command.reads {
            self.written_at = self.free_at;
        }
        Ok(Step::Complete(self.free_at))
    }

    fn moved(&mut self, _now: Instant) -> Step {
        unreachable!("an analytic disk asks for no burst")
    }

    fn abandon(&mut self) {}

    fn idle_at(&self) -> Instant {
        self.written_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(
        disk: &mut AnalyticDisk,
        now: Instant,
        reads: bool,
        first: u64,
        sectors: u64,
    ) -> Instant {
        let command = Command { reads, sectors: first..first + sectors };
        match disk.begin(now, &command).expect("the sectors exist") {
            Step::Complete(at) => at,
            Step::Burst { .. } | Step::Processor { .. } => panic!("there is no bus"),
        }
    }

    /// Proves the formula part by part, and that a sequential command pays no seek.
    #[test]
    fn time_is_the_sum_of_its_parts() {
        let spec = AnalyticSpec {
            capacity_bytes: 100_000 * 512,
            overhead: Duration::from_us(1_000),
            rotation: Duration::from_us(4_000),
            seek_least: Duration::from_us(2_000),
            seek_most: Duration::from_us(12_000),
            bytes_per_second: 5_120_000,
        };
        let mut disk = AnalyticDisk::new(spec);
        let us = |time: Instant| time.as_ns() / 1_000;
        // 10 sectors in a millisecond.
        let mut now = end(&mut disk, Instant::START, true, 0, 10);
        assert_eq!(us(now), 1_000 + 1_000);
        // A quarter of the disk away: half of the rest of the seek.
        now = end(&mut disk, now, true, 25_010, 20);
        assert_eq!(us(now), 2_000 + 1_000 + 2_000 + 5_000 + 4_000 + 2_000);
        let before = now;
        now = end(&mut disk, now, false, 25_030, 10);
        assert_eq!(us(now) - us(before), 2_000);
        assert_eq!(disk.idle_at(), now);
        assert!(disk.begin(now, &Command { reads: true, sectors: 99_999..100_001 }).is_err());
    }

    /// Proves the mean of random reads of 8 KB by the preset: 2.2 + 3.64 + 8/15 * 20.06 + 7.5 + 3.7
    /// ms (8/15 is the mean root of the distance of two random places).
    #[test]
    fn random_reads_of_the_preset() {
        let mut disk = AnalyticDisk::new(AnalyticSpec::HP97560);
        let (mut now, mut place) = (Instant::START, 1_u64);
        for _ in 0..5_000 {
            place = place * 48_271 % 2_147_483_647;
            now = end(&mut disk, now, true, place % 165_000 * 16, 16);
        }
        let mean_ms = now.as_ns() as f64 / 5_000.0 / 1e6;
        assert!((27.2..28.2).contains(&mean_ms), "{mean_ms}");
    }
}
