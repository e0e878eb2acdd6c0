//! A solid-state disk: dies of flash on channels, a small write buffer, and a link of its own.
//!
//! Consecutive pages go to consecutive channels, then to the next die of each channel. A read
//! senses its pages on their dies, in parallel on different dies, and moves them over the channels
//! and the link. A write is complete when the buffer holds it; the buffer empties at the pace of
//! programming. Commands occupy dies, channels and link in their order.
//!
//! The model omits the translation layer (a page is programmed at its address, a part of a page
//! like a whole one), erasure and garbage collection, and reads that find their data in the buffer.
//! So it suits a file system that writes whole blocks to a disk with room to spare.

use super::disk_model::{Command, DiskModel, SectorsOutOfRange, Step};
use super::layout::DiskShape;
use super::parameter_bases::{CAPACITY, COUNT, RATE, TIME};
use super::spec::{DiskDeclaration, DiskKind, DiskSpec};
use crate::models::{ModelInfo, Parameter, ParameterValues, Unit};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Duration, GIB, Instant, KIB, MIB};

/// Declaration of the solid-state disk. The name stands for [`SsdSpec::NVME`].
pub const DISK: DiskDeclaration = DiskDeclaration {
    info: ModelInfo { name: "nvme", help: "a solid-state disk of about 2020, in round figures" },
    kind_in_files: Some("ssd"),
    parameters: &[
        CAPACITY_BYTES,
        CHANNELS,
        CHANNEL_DIES,
        PAGE_BYTES,
        READ,
        PROGRAM,
        CHANNEL_RATE,
        LINK_RATE,
        OVERHEAD,
        QUEUE_DEPTH,
        WRITE_BUFFER_BYTES,
    ],
    make: |values: &ParameterValues| Ok(DiskKind::of(SsdSpec::of(values)?)),
};

const CAPACITY_BYTES: Parameter = Parameter {
    name: "capacity_bytes",
    default: SsdSpec::NVME.capacity_bytes,
    meaning: "Bytes of the disk, whole pages.",
    ..CAPACITY
};

const CHANNELS: Parameter = Parameter {
    name: "channels",
    default: SsdSpec::NVME.channels as u64,
    meaning: "Channels between the controller and the dies. Pages go to them in turn.",
    ..COUNT
};

const CHANNEL_DIES: Parameter = Parameter {
    name: "channel_dies",
    default: SsdSpec::NVME.channel_dies as u64,
    meaning: "Dies on each channel.",
    ..COUNT
};

const PAGE_BYTES: Parameter = Parameter {
    name: "page_bytes",
    unit: Unit::Bytes,
    least: SECTOR_BYTES,
    most: 16 * MIB,
    default: SsdSpec::NVME.page_bytes,
    meaning: "Bytes of a page, the unit in which a die senses and programs.",
    ..COUNT
};

const READ: Parameter = Parameter {
    name: "read_us",
    default: SsdSpec::NVME.read.as_ns(),
    meaning: "Time to sense a page.",
    ..TIME
};

const PROGRAM: Parameter = Parameter {
    name: "program_us",
    default: SsdSpec::NVME.program.as_ns(),
    meaning: "Time to program a page.",
    ..TIME
};

const CHANNEL_RATE: Parameter = Parameter {
    name: "channel_bytes_per_second",
    default: SsdSpec::NVME.channel_bytes_per_second,
    meaning: "Rate of each channel.",
    ..RATE
};

const LINK_RATE: Parameter = Parameter {
    name: "link_bytes_per_second",
    default: SsdSpec::NVME.link_bytes_per_second,
    meaning: "Rate of the link to the host, in each direction.",
    ..RATE
};

const OVERHEAD: Parameter = Parameter {
    name: "overhead_us",
    default: SsdSpec::NVME.overhead.as_ns(),
    meaning: "Time of the controller for each command. Those of several commands overlap.",
    ..TIME
};

const QUEUE_DEPTH: Parameter = Parameter {
    name: "queue_depth",
    most: 1 << 20,
    default: SsdSpec::NVME.queue_depth as u64,
    meaning: "Commands that the disk takes at once. Others wait in the queue of the driver.",
    ..COUNT
};

const WRITE_BUFFER_BYTES: Parameter = Parameter {
    name: "write_buffer_bytes",
    unit: Unit::Bytes,
    most: WRITE_BUFFER_BYTES_MAX,
    default: SsdSpec::NVME.write_buffer_bytes,
    meaning: "Bytes of the write buffer. A write is reported when its data is there.",
    ..COUNT
};

/// Largest write buffer, in bytes.
const WRITE_BUFFER_BYTES_MAX: u64 = GIB * KIB;

/// Specification of a solid-state disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SsdSpec {
    /// Bytes of the disk, whole pages.
    pub capacity_bytes: u64,
    /// Channels between controller and dies.
    pub channels: u32,
    /// Dies on each channel.
    pub channel_dies: u32,
    /// Bytes of a page: the unit of sensing and programming.
    pub page_bytes: u64,
    /// Time to sense a page.
    pub read: Duration,
    /// Time to program a page.
    pub program: Duration,
    /// Rate of each channel.
    pub channel_bytes_per_second: u64,
    /// Rate of the link to the host, in each direction.
    pub link_bytes_per_second: u64,
    /// Controller time of each command; those of several commands overlap.
    pub overhead: Duration,
    /// Number of commands that it takes at once.
    pub queue_depth: u32,
    /// Bytes of the write buffer, one page at least.
    pub write_buffer_bytes: u64,
}

const SECTOR_BYTES: u64 = 512;

impl SsdSpec {
    /// An NVMe disk of a terabyte. Round figures of our choice, of the order that data sheets of
    /// the years around 2020 print for flash with three bits a cell and four lanes of PCIe 3.
    ///
    /// They amount to 3.5 GB/s for long reads (the link), 2.1 GB/s for long writes (64 dies, 16 KiB
    /// in 500 us each), and 75 us for one read of 4 KiB.
    pub const NVME: Self = Self {
        capacity_bytes: 1 << 40,
        channels: 8,
        channel_dies: 8,
        page_bytes: 16 << 10,
        read: Duration::from_us(60),
        program: Duration::from_us(500),
        channel_bytes_per_second: 1_200_000_000,
        link_bytes_per_second: 3_500_000_000,
        overhead: Duration::from_us(10),
        queue_depth: 64,
        write_buffer_bytes: 4 << 20,
    };

    /// Returns the disk with these parameters, or the reason why they do not fit one another.
    fn of(values: &ParameterValues) -> Result<Self, String> {
        let spec = Self {
            capacity_bytes: values.get(&CAPACITY_BYTES),
            channels: values.count(&CHANNELS),
            channel_dies: values.count(&CHANNEL_DIES),
            page_bytes: values.get(&PAGE_BYTES),
            read: values.time(&READ),
            program: values.time(&PROGRAM),
            channel_bytes_per_second: values.get(&CHANNEL_RATE),
            link_bytes_per_second: values.get(&LINK_RATE),
            overhead: values.time(&OVERHEAD),
            queue_depth: values.count(&QUEUE_DEPTH),
            write_buffer_bytes: values.get(&WRITE_BUFFER_BYTES),
        };
        let Self { capacity_bytes, page_bytes, write_buffer_bytes, .. } = spec;
        if !page_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(format!(
                "page_bytes is {page_bytes}, not a multiple of 512, the size of a sector"
            ));
        }
        if !capacity_bytes.is_multiple_of(page_bytes) {
            return Err(format!(
                "capacity_bytes is {capacity_bytes}, not a multiple of page_bytes, {page_bytes}"
            ));
        }
        if write_buffer_bytes < page_bytes {
            return Err(format!(
                "write_buffer_bytes is {write_buffer_bytes}, not from {page_bytes} to \
                 {WRITE_BUFFER_BYTES_MAX}"
            ));
        }
        Ok(spec)
    }
}

impl DiskSpec for SsdSpec {
    fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
        Box::new(Ssd::new(*self))
    }
}

/// State of one disk.
#[derive(Clone, Debug)]
pub struct Ssd {
    spec: SsdSpec,
    /// End of the accepted transfers of each channel.
    channels: Vec<Instant>,
    /// End of the accepted work of each die; the die has number `channel + channels * die`.
    dies: Vec<Instant>,
    /// End of the accepted transfers of the link to the host, and from it.
    link_out: Instant,
    link_in: Instant,
    /// Pages in the write buffer: the instant at which each leaves, and its bytes.
    buffered: BinaryHeap<Reverse<(Instant, u64)>>,
    buffered_bytes: u64,
    written_at: Instant,
}

impl Ssd {
    /// Creates an idle disk with an empty buffer.
    pub fn new(spec: SsdSpec) -> Self {
        let SsdSpec { channels, channel_dies, page_bytes, .. } = spec;
        assert!(channels > 0 && channel_dies > 0 && spec.queue_depth > 0, "an SSD must have parts");
        assert!(
            page_bytes.is_multiple_of(SECTOR_BYTES) && page_bytes > 0,
            "a page must be whole sectors"
        );
        assert!(
            spec.capacity_bytes.is_multiple_of(page_bytes) && spec.capacity_bytes > 0,
            "an SSD must be whole pages"
        );
        assert!(spec.write_buffer_bytes >= page_bytes, "the write buffer must hold a page");
        let start = Instant::START;
        Self {
            spec,
            channels: vec![start; channels as usize],
            dies: vec![start; channels as usize * channel_dies as usize],
            link_out: start,
            link_in: start,
            buffered: BinaryHeap::new(),
            buffered_bytes: 0,
            written_at: start,
        }
    }

    /// Reads pages from their dies to the host. Returns the arrival of the last.
    fn read(&mut self, start: Instant, command: &Command) -> Instant {
        let mut end = start;
        for (page, bytes) in self.pages(command) {
            let (channel, die) = self.place_of(page);
            let sensed = start.max(self.dies[die]) + self.spec.read;
            let moved = sensed.max(self.channels[channel]) + self.on_channel(bytes);
            (self.dies[die], self.channels[channel]) = (moved, moved);
            self.link_out = self.link_out.max(moved) + self.on_link(bytes);
            end = self.link_out;
        }
        end
    }

    /// Writes pages from the host into the buffer, and from there to their dies. Returns the
    /// instant at which the last is in the buffer.
    fn write(&mut self, start: Instant, command: &Command) -> Instant {
        let mut end = start;
        for (page, bytes) in self.pages(command) {
            let (channel, die) = self.place_of(page);
            let room_at = self.room_at(bytes);
            self.link_in = self.link_in.max(start).max(room_at) + self.on_link(bytes);
            end = self.link_in;
            let moved = end.max(self.channels[channel]) + self.on_channel(bytes);
            let programmed = moved.max(self.dies[die]) + self.spec.program;
            (self.channels[channel], self.dies[die]) = (moved, programmed);
            self.buffered.push(Reverse((programmed, bytes)));
            self.buffered_bytes += bytes;
            self.written_at = self.written_at.max(programmed);
        }
        end
    }

    /// Makes room in the buffer. Returns the instant from which it is available.
    fn room_at(&mut self, bytes: u64) -> Instant {
        let mut at = Instant::START;
        while self.buffered_bytes + bytes > self.spec.write_buffer_bytes {
            let Some(Reverse((left_at, left_bytes))) = self.buffered.pop() else { return at };
            at = at.max(left_at);
            self.buffered_bytes -= left_bytes;
        }
        at
    }

    /// Returns the pages that a command touches, with the number of bytes of each.
    fn pages(&self, command: &Command) -> impl Iterator<Item = (u64, u64)> + use<> {
        let page_sectors = self.spec.page_bytes / SECTOR_BYTES;
        let sectors = command.sectors.clone();
        let pages = sectors.start / page_sectors..sectors.end.div_ceil(page_sectors);
        pages.map(move |page| {
            let from = sectors.start.max(page * page_sectors);
            let to = sectors.end.min((page + 1) * page_sectors);
            (page, (to - from) * SECTOR_BYTES)
        })
    }

    /// Returns channel and die of a page.
    fn place_of(&self, page: u64) -> (usize, usize) {
        let channel = page % self.channels.len() as u64;
        (channel as usize, (page % self.dies.len() as u64) as usize)
    }

    fn on_channel(&self, bytes: u64) -> Duration {
        Duration::of_transfer(bytes, self.spec.channel_bytes_per_second)
    }

    fn on_link(&self, bytes: u64) -> Duration {
        Duration::of_transfer(bytes, self.spec.link_bytes_per_second)
    }
}

impl DiskModel for Ssd {
    fn shape(&self) -> DiskShape {
        let capacity_sectors = self.spec.capacity_bytes / SECTOR_BYTES;
        DiskShape { track_sectors: self.spec.page_bytes / SECTOR_BYTES, capacity_sectors }
    }

    fn sector_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn commands_max(&self) -> Option<u32> {
        Some(self.spec.queue_depth)
    }

    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        command.check("SSD", self.spec.capacity_bytes / SECTOR_BYTES)?;
        let start = now + self.spec.overhead;
        Ok(Step::Complete(match command.reads {
            true => self.read(start, command),
            false => self.write(start, command),
        }))
    }

    fn moved(&mut self, _now: Instant) -> Step {
        unreachable!("an SSD asks for no burst: its link is its own")
    }

    fn abandon(&mut self) {}

    fn idle_at(&self) -> Instant {
        self.written_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 32; // sectors

    fn end(disk: &mut Ssd, now: Instant, reads: bool, first: u64, sectors: u64) -> Instant {
        let command = Command { reads, sectors: first..first + sectors };
        match disk.begin(now, &command).expect("the sectors exist") {
            Step::Complete(at) => at,
            Step::Burst { .. } | Step::Processor { .. } => panic!("there is no bus"),
        }
    }

    fn us(end: Instant) -> u64 {
        end.as_ns() / 1_000
    }

    /// Proves the parts of one small read: overhead, sensing, channel, link.
    #[test]
    fn a_small_read_is_the_sum_of_its_parts() {
        let mut disk = Ssd::new(SsdSpec::NVME);
        let end = end(&mut disk, Instant::START, true, 8, 8);
        let parts = 10_000 + 60_000 + 4_096 * 10 / 12 + 1 + 4_096 * 10 / 35 + 1;
        assert_eq!(end, Instant::from_ns(parts));
    }

    /// Proves that pages of different channels and dies are sensed in parallel, and that those of
    /// one die wait for one another.
    #[test]
    fn dies_work_at_once() {
        let mut disk = Ssd::new(SsdSpec::NVME);
        let wide = end(&mut disk.clone(), Instant::START, true, 0, 8 * PAGE);
        assert!((10 + 60 + 13 + 37..10 + 60 + 13 + 39).contains(&us(wide)), "{wide:?}");
        let first = end(&mut disk, Instant::START, true, 0, PAGE);
        let same_die = end(&mut disk, Instant::START, true, 64 * PAGE, PAGE);
        assert!(us(same_die) - us(first) >= 60 + 13);
    }

    /// Proves the rates of the preset: long reads run at the rate of the link, long writes at the
    /// pace of programming once the buffer is full, and a short write is bound by neither.
    #[test]
    fn rates_of_the_preset() {
        let long = (256 << 20) / SECTOR_BYTES;
        let mut disk = Ssd::new(SsdSpec::NVME);
        let read = end(&mut disk, Instant::START, true, 0, long);
        let rate = |time: u64| (256u64 << 20) as f64 / time as f64 / 1e3; // GB/s from us
        assert!((3.45..3.5).contains(&rate(us(read))), "{}", rate(us(read)));

        let mut disk = Ssd::new(SsdSpec::NVME);
        let short = end(&mut disk, Instant::START, false, 0, 8);
        assert!(us(short) < 12, "{short:?}");
        let write = end(&mut disk, short, false, 0, long);
        assert!((2.0..2.2).contains(&rate(us(write))), "{}", rate(us(write)));
        assert!(disk.idle_at() > write && us(disk.idle_at()) - us(write) < 2_100);
    }

    /// Proves that concurrent random reads of 4 KiB use the queue depth: 64 of them reach many
    /// times the rate of one.
    #[test]
    fn depth_pays() {
        let random = |depth: u64| {
            let mut disk = Ssd::new(SsdSpec::NVME);
            let (mut now, mut place) = (Instant::START, 1_u64);
            for _ in 0..200 {
                let mut last = now;
                for _ in 0..depth {
                    place = place * 48_271 % 2_147_483_647;
                    last = last.max(end(&mut disk, now, true, place / 8 * 8, 8));
                }
                now = last;
            }
            200 * depth * 1_000_000_000 / now.as_ns()
        };
        assert!((12_000..15_000).contains(&random(1)), "{}", random(1));
        assert!(random(64) > 12 * random(1), "{}", random(64));
    }

    /// Proves that sectors beyond the end are refused.
    #[test]
    fn sectors_beyond_the_end_are_refused() {
        let mut disk = Ssd::new(SsdSpec::NVME);
        let capacity = disk.shape().capacity_sectors;
        for sectors in [0..0, capacity..capacity + 1, capacity - 1..u64::MAX] {
            let refused = disk.begin(Instant::START, &Command { reads: true, sectors });
            assert!(refused.is_err());
        }
        end(&mut disk, Instant::START, false, capacity - 1, 1);
    }
}
