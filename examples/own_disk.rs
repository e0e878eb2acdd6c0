//! A disk model of one's own, a tape: it winds to the first sector, then the data passes its head.
//! This program is the command `unisono` with that disk in its simulations too. Times are those of
//! the simulated machine.
//!
//! ```sh
//! cargo run --release -p cli --example own_disk -- sim --disk custom:tape \
//!     --pattern rb,wb --size 2MiB --strategy all --trials 1 --payload traced
//! cargo run --release -p cli --example own_disk -- sim --disk custom:tape \
//!     --pattern rb,wb --size 2MiB --strategy all --trials 1 --payload traced \
//!     --layout random-blocks
//! ```

use simulate::OwnModels;
use simulate::models::{
    Command, DiskModel, DiskShape, DiskSpec, Duration, Instant, SectorsOutOfRange, Step,
};

const SECTOR_BYTES: u64 = 512;
const SECTORS: u64 = 1 << 21;
const BYTES_PER_SECOND: u64 = 10_000_000;
/// Winding time for each sector between the head and the first sector, in ns.
const WIND_NS: u64 = 500;

#[derive(Debug)]
struct TapeDrive;

#[derive(Debug)]
struct Tape {
    position: u64,
    free_at: Instant,
}

impl DiskSpec for TapeDrive {
    fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
        Box::new(Tape { position: 0, free_at: Instant::START })
    }
}

impl DiskModel for Tape {
    fn shape(&self) -> DiskShape {
        DiskShape { track_sectors: 128, capacity_sectors: SECTORS }
    }
    fn sector_bytes(&self) -> u64 {
        SECTOR_BYTES
    }
    fn commands_max(&self) -> Option<u32> {
        Some(1)
    }
    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        command.check("tape", SECTORS)?;
        let sectors = &command.sectors;
        let wound = Duration::from_ns(WIND_NS * self.position.abs_diff(sectors.start));
        let bytes = (sectors.end - sectors.start) * SECTOR_BYTES;
        self.position = sectors.end;
        self.free_at =
            self.free_at.max(now) + wound + Duration::of_transfer(bytes, BYTES_PER_SECOND);
        Ok(Step::Complete(self.free_at))
    }
    fn moved(&mut self, _now: Instant) -> Step {
        unreachable!("a tape asks for no transfer over a bus")
    }
    fn abandon(&mut self) {}
    fn idle_at(&self) -> Instant {
        self.free_at
    }
}

fn main() -> std::process::ExitCode {
    let models = OwnModels::default().with_disk("tape", TapeDrive);
    cli::main_with_models(Default::default(), models.expect("it keeps the contract of a disk"))
}
