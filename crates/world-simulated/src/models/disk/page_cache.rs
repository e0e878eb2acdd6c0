//! A file of the operating system: its page cache, and the medium below it.
//!
//! A read or write of cached bytes is a call and a copy, both by a processor of the computer. Bytes
//! that are not cached come from the medium before. Written bytes stay in the cache until a sync,
//! or until more are dirty than the limit; then the writer waits for the medium. With `direct`
//! (`O_DIRECT`) there is no cache, and data moves without a copy.
//!
//! The disks of one computer may be files on the same medium, which moves more bytes for all of
//! them than for one (`shared_bytes_per_second`).
//!
//! The model omits write-back in the background, read-ahead, and reordering by the medium. Pages
//! leave the cache in the order in which they came. 64 KiB enter and leave the cache together: the
//! first write of a part of them pays for its own bytes only, and later ones for none.

use super::disk_model::{Command, DiskModel, SectorsOutOfRange, Step};
use super::layout::DiskShape;
use super::parameter_bases::{CAPACITY, COUNT, RATE, TIME};
use super::shared_medium::SharedMedium;
use super::spec::{DiskDeclaration, DiskKind, DiskSpec};
use crate::models::{ModelInfo, Parameter, ParameterValues, Unit};
use std::collections::{BTreeSet, VecDeque};
use units::{Duration, GIB, Instant, KIB, MIB};

/// Declaration of the page cache. The name stands for [`PageCacheSpec::DEFAULT`].
pub const DISK: DiskDeclaration = DiskDeclaration {
    info: ModelInfo {
        name: "page-cache",
        help: "a file in the page cache of a computer of about 2020, in round figures",
    },
    kind_in_files: Some("page-cache"),
    parameters: &[
        CAPACITY_BYTES,
        CALL,
        READ_RATE,
        WRITE_RATE,
        NEW_RATE,
        CACHE_BYTES,
        DIRTY_BYTES,
        MEDIUM_RATE,
        MEDIUM_LATENCY,
        SHARED_RATE,
        SYNC,
        DIRECT,
    ],
    make: |values: &ParameterValues| Ok(DiskKind::of(PageCacheSpec::of(values)?)),
};

const CAPACITY_BYTES: Parameter = Parameter {
    name: "capacity_bytes",
    default: PageCacheSpec::DEFAULT.capacity_bytes,
    meaning: "Bytes of the medium, whole pages of 4 KiB.",
    ..CAPACITY
};

const CALL: Parameter = Parameter {
    name: "call_us",
    default: PageCacheSpec::DEFAULT.call.as_ns(),
    meaning: "Processor time of a read or write, besides the copy.",
    ..TIME
};

const READ_RATE: Parameter = Parameter {
    name: "read_bytes_per_second",
    default: PageCacheSpec::DEFAULT.read_bytes_per_second,
    meaning: "Rate at which a core copies out of the cache.",
    ..RATE
};

const WRITE_RATE: Parameter = Parameter {
    name: "write_bytes_per_second",
    default: PageCacheSpec::DEFAULT.write_bytes_per_second,
    meaning: "Rate at which a core copies into the cache.",
    ..RATE
};

const NEW_RATE: Parameter = Parameter {
    name: "new_bytes_per_second",
    least: 0,
    default: PageCacheSpec::DEFAULT.new_bytes_per_second,
    meaning: "Rate at which a core adds pages to the cache for bytes that are written and are not \
              there, besides the copy. 0: at no cost.",
    ..RATE
};

const CACHE_BYTES: Parameter = Parameter {
    name: "cache_bytes",
    unit: Unit::Bytes,
    least: MIB,
    most: GIB * KIB,
    default: PageCacheSpec::DEFAULT.cache_bytes,
    meaning: "Bytes of the cache, for this disk.",
    ..COUNT
};

const DIRTY_BYTES: Parameter = Parameter {
    name: "dirty_bytes",
    unit: Unit::Bytes,
    most: GIB * KIB,
    default: PageCacheSpec::DEFAULT.dirty_bytes,
    meaning: "Dirty bytes above which writers wait for the medium.",
    ..COUNT
};

const MEDIUM_RATE: Parameter = Parameter {
    name: "medium_bytes_per_second",
    default: PageCacheSpec::DEFAULT.medium_bytes_per_second,
    meaning: "Rate of the medium, in either direction.",
    ..RATE
};

const MEDIUM_LATENCY: Parameter = Parameter {
    name: "medium_latency_us",
    default: PageCacheSpec::DEFAULT.medium_latency.as_ns(),
    meaning: "Time of the medium for each access, before the data moves.",
    ..TIME
};

const SHARED_RATE: Parameter = Parameter {
    name: "shared_bytes_per_second",
    least: 0,
    default: PageCacheSpec::DEFAULT.shared_bytes_per_second,
    meaning: "Rate of the medium for all disks of a computer (`shared-cores`) together. 0: each \
              disk has a medium of its own.",
    ..RATE
};

const SYNC: Parameter = Parameter {
    name: "sync_us",
    default: PageCacheSpec::DEFAULT.sync.as_ns(),
    meaning: "Time of a sync (fsync) after the data is on the medium.",
    ..TIME
};

const DIRECT: Parameter = Parameter {
    name: "direct",
    least: 0,
    most: 1,
    default: 0,
    meaning: "1: bypass the cache (O_DIRECT). 0: use it.",
    ..COUNT
};

/// Specification of a file above a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCacheSpec {
    /// Bytes of the medium, whole pages.
    pub capacity_bytes: u64,
    /// Processor time of a read or write, besides the copy.
    pub call: Duration,
    /// Rate of copies out of the cache.
    pub read_bytes_per_second: u64,
    /// Rate of copies into the cache.
    pub write_bytes_per_second: u64,
    /// Rate of adding pages to the cache for written bytes; 0 for no cost.
    pub new_bytes_per_second: u64,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Dirty bytes above which writers wait for the medium.
    pub dirty_bytes: u64,
    /// Rate of the medium, in either direction.
    pub medium_bytes_per_second: u64,
    /// Time of the medium for each access.
    pub medium_latency: Duration,
    /// Rate of the medium for all disks of a computer together; 0 if each has its own.
    pub shared_bytes_per_second: u64,
    /// Time of a sync after the data is on the medium.
    pub sync: Duration,
    /// True to bypass the cache.
    pub is_direct: bool,
}

const SECTOR_BYTES: u64 = 512;

/// Bytes of a page: the unit of the medium's capacity.
const PAGE_BYTES: u64 = 4 * KIB;

/// Bytes that enter and leave the cache together. Smaller pieces would cost memory and change
/// little, because file systems read and write blocks.
const CACHED_TOGETHER_BYTES: u64 = 64 * KIB;

impl PageCacheSpec {
    /// A computer of about 2020 with an NVMe disk. Round figures of our choice, of the order that
    /// `dd` and `fio` show on such computers.
    pub const DEFAULT: Self = Self {
        capacity_bytes: 1 << 40,
        call: Duration::from_us(2),
        read_bytes_per_second: 6_000_000_000,
        write_bytes_per_second: 3_000_000_000,
        new_bytes_per_second: 0,
        cache_bytes: 8 << 30,
        dirty_bytes: 2 << 30,
        medium_bytes_per_second: 2_000_000_000,
        medium_latency: Duration::from_us(80),
        shared_bytes_per_second: 0,
        sync: Duration::from_us(500),
        is_direct: false,
    };

    /// Returns the disk with these parameters, or the reason why they do not fit one another.
    fn of(values: &ParameterValues) -> Result<Self, String> {
        let spec = Self {
            capacity_bytes: values.get(&CAPACITY_BYTES),
            call: values.time(&CALL),
            read_bytes_per_second: values.get(&READ_RATE),
            write_bytes_per_second: values.get(&WRITE_RATE),
            new_bytes_per_second: values.get(&NEW_RATE),
            cache_bytes: values.get(&CACHE_BYTES),
            dirty_bytes: values.get(&DIRTY_BYTES),
            medium_bytes_per_second: values.get(&MEDIUM_RATE),
            medium_latency: values.time(&MEDIUM_LATENCY),
            shared_bytes_per_second: values.get(&SHARED_RATE),
            sync: values.time(&SYNC),
            is_direct: values.get(&DIRECT) == 1,
        };
        let Self { capacity_bytes, cache_bytes, dirty_bytes, .. } = spec;
        if !capacity_bytes.is_multiple_of(PAGE_BYTES) {
            return Err(format!(
                "capacity_bytes is {capacity_bytes}, not a multiple of {PAGE_BYTES}, the size of a \
                 page"
            ));
        }
        if dirty_bytes > cache_bytes {
            return Err(format!("dirty_bytes is {dirty_bytes}, above cache_bytes, {cache_bytes}"));
        }
        Ok(spec)
    }
}

impl DiskSpec for PageCacheSpec {
    fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
        Box::new(PageCache::new(*self))
    }
}

/// State of one file system with its medium. One call is carried out at a time.
#[derive(Debug)]
pub struct PageCache {
    spec: PageCacheSpec,
    /// Pieces of [`CACHED_TOGETHER_BYTES`] that are cached, and the order in which they came.
    cached: BTreeSet<u64>,
    arrived: VecDeque<u64>,
    dirty_bytes: u64,
    /// End of the accepted work of the medium for this disk.
    medium_until: Instant,
    /// The medium that all disks of the computer share.
    shared: SharedMedium,
    /// End of the medium's work for the present call.
    call_until: Instant,
}

impl PageCache {
    /// Creates a file system with an empty cache.
    pub fn new(spec: PageCacheSpec) -> Self {
        Self {
            spec,
            cached: BTreeSet::new(),
            arrived: VecDeque::new(),
            dirty_bytes: 0,
            medium_until: Instant::START,
            shared: SharedMedium::default(),
            call_until: Instant::START,
        }
    }

    /// Occupies the medium with an access. Returns its end.
    fn on_medium(&mut self, now: Instant, bytes: u64) -> Instant {
        let data = Duration::of_transfer(bytes, self.spec.medium_bytes_per_second);
        self.medium_until = self.medium_until.max(now) + self.spec.medium_latency + data;
        if self.spec.shared_bytes_per_second > 0 {
            let data = Duration::of_transfer(bytes, self.spec.shared_bytes_per_second);
            self.medium_until = self.medium_until.max(self.shared.occupy(now, data));
        }
        self.medium_until
    }

    /// Reads. Returns the processor time.
    fn read(&mut self, now: Instant, bytes: Range) -> Duration {
        let missing = self.cache(&bytes);
        if missing > 0 {
            self.call_until = self.on_medium(now, missing);
        }
        self.spec.call + Duration::of_transfer(bytes.length(), self.spec.read_bytes_per_second)
    }

    /// Writes. Returns the processor time.
    fn write(&mut self, now: Instant, bytes: Range) -> Duration {
        let new = self.cache(&bytes);
        self.dirty_bytes += bytes.length();
        let excess = self.dirty_bytes.saturating_sub(self.spec.dirty_bytes);
        if excess > 0 {
            self.dirty_bytes -= excess;
            self.call_until = self.on_medium(now, excess);
        }
        let adding = match self.spec.new_bytes_per_second {
            0 => Duration::ZERO,
            rate => Duration::of_transfer(new, rate),
        };
        let copy = Duration::of_transfer(bytes.length(), self.spec.write_bytes_per_second);
        self.spec.call + copy + adding
    }

    /// Puts bytes into the cache. Returns how many were not there.
    fn cache(&mut self, bytes: &Range) -> u64 {
        let mut missing = 0;
        let pieces = bytes.from / CACHED_TOGETHER_BYTES..bytes.to.div_ceil(CACHED_TOGETHER_BYTES);
        for piece in pieces {
            if self.cached.insert(piece) {
                let from = bytes.from.max(piece * CACHED_TOGETHER_BYTES);
                missing += bytes.to.min((piece + 1) * CACHED_TOGETHER_BYTES) - from;
                self.arrived.push_back(piece);
            }
        }
        while self.arrived.len() as u64 * CACHED_TOGETHER_BYTES > self.spec.cache_bytes {
            let Some(oldest) = self.arrived.pop_front() else { break };
            self.cached.remove(&oldest);
        }
        missing
    }
}

/// Bytes of a command.
struct Range {
    from: u64,
    to: u64,
}

impl Range {
    fn length(&self) -> u64 {
        self.to - self.from
    }
}

impl DiskModel for PageCache {
    fn shape(&self) -> DiskShape {
        let capacity_sectors = self.spec.capacity_bytes / SECTOR_BYTES;
        DiskShape { track_sectors: PAGE_BYTES / SECTOR_BYTES, capacity_sectors }
    }

    fn sector_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    /// The thread that makes the calls waits for each.
    fn commands_max(&self) -> Option<u32> {
        Some(1)
    }

    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        command.check("medium", self.spec.capacity_bytes / SECTOR_BYTES)?;
        let Command { reads, sectors } = command;
        let bytes = Range { from: sectors.start * SECTOR_BYTES, to: sectors.end * SECTOR_BYTES };
        self.call_until = now;
        let length = match (self.spec.is_direct, reads) {
            (true, _) => {
                self.call_until = self.on_medium(now, bytes.length());
                self.spec.call
            }
            (false, true) => self.read(now, bytes),
            (false, false) => self.write(now, bytes),
        };
        Ok(Step::Processor { length })
    }

    fn moved(&mut self, now: Instant) -> Step {
        Step::Complete(self.call_until.max(now))
    }

    fn abandon(&mut self) {}

    fn idle_at(&self) -> Instant {
        self.medium_until
    }

    fn sync(&mut self, now: Instant) -> Instant {
        if self.dirty_bytes > 0 {
            let dirty = std::mem::take(&mut self.dirty_bytes);
            self.on_medium(now, dirty);
        }
        self.medium_until = self.medium_until.max(now) + self.spec.sync;
        self.medium_until
    }

    fn join_medium(&mut self, medium: &SharedMedium) {
        self.shared = medium.clone();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: cached bytes cost a call and a copy, others wait for the medium, writers wait when
    //! too much is dirty, a sync writes what is dirty once, and direct calls bypass the cache.
    use super::*;

    const SPEC: PageCacheSpec = PageCacheSpec {
        call: Duration::from_us(1),
        read_bytes_per_second: 1_000_000_000,
        write_bytes_per_second: 500_000_000,
        cache_bytes: 4 << 20,
        dirty_bytes: 2 << 20,
        medium_bytes_per_second: 100_000_000,
        medium_latency: Duration::from_us(100),
        sync: Duration::from_us(1_000),
        ..PageCacheSpec::DEFAULT
    };

    /// Carries out a call on a processor of its own. Returns its end in microseconds.
    fn call(disk: &mut PageCache, now_us: u64, reads: bool, kib: std::ops::Range<u64>) -> u64 {
        let now = Instant::START + Duration::from_us(now_us);
        let command = Command { reads, sectors: kib.start * 2..kib.end * 2 };
        let Ok(Step::Processor { length }) = disk.begin(now, &command) else {
            panic!("each call needs the processor")
        };
        let Step::Complete(at) = disk.moved(now + length) else { panic!("the call ends") };
        at.as_ns() / 1_000
    }

    #[test]
    fn only_missing_bytes_come_from_the_medium() {
        let mut disk = PageCache::new(SPEC);
        // 64 KiB at 100 MB/s, and 100 us of latency.
        assert_eq!(call(&mut disk, 0, true, 0..64), 755);
        // One call, and 64 KiB at 1 GB/s.
        assert_eq!(call(&mut disk, 1_000, true, 0..64), 1_066);
        // What was written is cached.
        assert_eq!(call(&mut disk, 2_000, false, 64..128), 2_132);
        assert_eq!(call(&mut disk, 3_000, true, 64..128), 3_066);
        // 4 MiB of other bytes displace it.
        call(&mut disk, 10_000, true, 1024..5120);
        assert!(call(&mut disk, 100_000, true, 0..64) > 100_700);
    }

    #[test]
    fn pages_are_added_at_a_cost_once() {
        let mut disk = PageCache::new(PageCacheSpec { new_bytes_per_second: 250_000_000, ..SPEC });
        // One call, 64 KiB at 500 MB/s, and at 250 MB/s for the pages.
        assert_eq!(call(&mut disk, 0, false, 0..64), 1 + 131 + 262);
        assert_eq!(call(&mut disk, 1_000, false, 0..64) - 1_000, 132);
        // Bytes that came from the medium have pages.
        call(&mut disk, 2_000, true, 64..128);
        assert_eq!(call(&mut disk, 10_000, false, 64..128) - 10_000, 132);
    }

    #[test]
    fn writers_wait_when_too_much_is_dirty() {
        let mut disk = PageCache::new(SPEC);
        let copy = 1 + (2 << 20) / 500;
        assert_eq!(call(&mut disk, 0, false, 0..2048), copy);
        // A megabyte too much, at 100 MB/s.
        let waits = call(&mut disk, 5_000, false, 2048..3072) - 5_000;
        assert_eq!(waits, 100 + (1 << 20) / 100);
    }

    #[test]
    fn a_sync_writes_what_is_dirty_once() {
        let mut disk = PageCache::new(SPEC);
        call(&mut disk, 0, false, 0..1024);
        let at = |us: u64| Instant::START + Duration::from_us(us);
        let us = |end: Instant| end.as_ns() / 1_000;
        assert_eq!(us(disk.sync(at(5_000))), 5_000 + 100 + (1 << 20) / 100 + 1_000);
        assert_eq!(us(disk.sync(at(50_000))), 51_000, "nothing is dirty");
    }

    #[test]
    fn disks_of_a_computer_share_the_rate_of_the_medium() {
        // 64 KiB at 100 MB/s for one disk, and 100 us of latency. Of three at the same time, the
        // last one waits for 192 KiB at 200 MB/s, 80 MB/s, or not.
        for (shared_bytes_per_second, last_us) in [(200, 983), (80, 2_457), (0, 755)] {
            let shared_bytes_per_second = shared_bytes_per_second * 1_000_000;
            let medium = SharedMedium::default();
            let disk = || PageCache::new(PageCacheSpec { shared_bytes_per_second, ..SPEC });
            let mut disks = [disk(), disk(), disk()];
            disks.iter_mut().for_each(|disk| disk.join_medium(&medium));
            let ends = disks.each_mut().map(|disk| call(disk, 0, true, 0..64));
            assert_eq!(ends[2], last_us);
        }
    }

    #[test]
    fn direct_calls_bypass_the_cache() {
        let mut disk = PageCache::new(PageCacheSpec { is_direct: true, ..SPEC });
        for begun in [0, 10_000] {
            assert_eq!(call(&mut disk, begun, true, 0..64) - begun, 755);
        }
        assert_eq!(call(&mut disk, 20_000, false, 0..64), 20_755);
    }
}
