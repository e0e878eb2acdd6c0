//! The contract of disks, as a test that any specification can be put to.

use super::disk_model::{Command, DiskModel, Step};
use super::spec::DiskSpec;
use units::{Duration, Instant, SplitMix64};

/// Number of commands of the test.
const COMMANDS: u64 = 400;

/// Largest number of sectors of a command.
const SECTORS_MAX: u64 = 64;

/// Largest number of bursts of a command.
const BURSTS_MAX: u32 = 100_000;

/// Tests a specification of disks with some hundred commands to one disk. Returns the first
/// violation of the contract of [`DiskModel`].
///
/// # Errors
/// The violation, as a clause about the disk.
pub fn check(spec: &dyn DiskSpec) -> Result<(), String> {
    let mut disk = spec.build(0);
    let (shape, sector_bytes) = (disk.shape(), disk.sector_bytes());
    let capacity = shape.capacity_sectors;
    if shape.track_sectors == 0 || capacity == 0 || sector_bytes == 0 {
        return Err("it has no sectors, or sectors of no bytes".to_owned());
    }
    if capacity.checked_mul(sector_bytes).is_none() {
        return Err(format!("{capacity} sectors of {sector_bytes} bytes are no size"));
    }
    if disk.commands_max() == Some(0) {
        return Err("it takes no command".to_owned());
    }
    for sectors in [0..0, capacity..capacity + 1, capacity - 1..capacity + 1] {
        let command = Command { reads: true, sectors };
        if disk.begin(Instant::START, &command).is_ok() {
            return Err(format!("it accepts sectors {:?} of {capacity}", command.sectors));
        }
    }
    let mut now = Instant::START;
    for number in 0..COMMANDS {
        let random = |salt: u64| SplitMix64::new(number << 8 | salt).next_u64();
        let count = 1 + random(1) % SECTORS_MAX.min(capacity);
        let first = random(2) % (capacity - count + 1);
        let command = Command { reads: random(3) & 1 == 0, sectors: first..first + count };
        now = carry_out(&mut *disk, now, &command)
            .map_err(|cause| format!("{cause} in command {number}, {command:?}"))?;
    }
    Ok(())
}

/// Carries out a command on a bus without delay. Returns the instant of the report.
fn carry_out(
    disk: &mut dyn DiskModel,
    begun: Instant,
    command: &Command,
) -> Result<Instant, String> {
    let mut now = begun;
    let mut step = disk.begin(now, command).map_err(|error| format!("it refuses: {error}"))?;
    for _ in 0..BURSTS_MAX {
        match step {
            Step::Complete(at) if at < now => return Err("it is complete in the past".to_owned()),
            Step::Complete(at) => return Ok(at),
            Step::Burst { from, bytes } => {
                if from < now || bytes == 0 {
                    return Err("it asks for a burst in the past, or for an empty one".to_owned());
                }
                now = from + Duration::from_ns(bytes);
                step = disk.moved(now);
            }
            Step::Processor { length } => {
                now = now + length;
                step = disk.moved(now);
            }
        }
    }
    Err(format!("it asks for more than {BURSTS_MAX} bursts"))
}

#[cfg(test)]
mod tests {
    //! Proves: a disk that reports in the past is refused, with the command.
    use super::*;
    use crate::models::disk::disk_model::SectorsOutOfRange;
    use crate::models::layout::DiskShape;

    #[derive(Debug)]
    struct HastySpec;

    impl DiskSpec for HastySpec {
        fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
            Box::new(Hasty { report_ns: 1_000 })
        }
    }

    /// Wrong disk: reports each command before the one before it.
    #[derive(Debug)]
    struct Hasty {
        report_ns: u64,
    }

    impl DiskModel for Hasty {
        fn shape(&self) -> DiskShape {
            DiskShape { track_sectors: 1, capacity_sectors: 100 }
        }
        fn sector_bytes(&self) -> u64 {
            512
        }
        fn commands_max(&self) -> Option<u32> {
            Some(1)
        }
        fn begin(&mut self, _now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
            command.check("hasty disk", 100)?;
            self.report_ns -= 1;
            Ok(Step::Complete(Instant::from_ns(self.report_ns)))
        }
        fn moved(&mut self, _now: Instant) -> Step {
            unreachable!("it asks for no burst")
        }
        fn abandon(&mut self) {}
        fn idle_at(&self) -> Instant {
            Instant::START
        }
    }

    #[test]
    fn a_disk_that_reports_in_the_past_is_refused() {
        let refused = check(&HastySpec).expect_err("the second report is before the first");
        assert!(refused.starts_with("it is complete in the past in command 1, "), "{refused}");
    }
}
