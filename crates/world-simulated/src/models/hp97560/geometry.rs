//! The surfaces of an HP 97560: where a sector lies, how long the arm moves, what passes the head.
//!
//! Time on the medium is counted in **ticks**: the medium turns by one sector a tick, and a sector
//! can only begin at a tick. A revolution of 60/4002 s is 72 ticks, and 48,024 ticks are exactly
//! 10 s, so ticks and nanoseconds convert into each other in integers and never drift apart.
//!
//! Parameters, unless said otherwise: C. Ruemmler and J. Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994, as restated in the disk model of the OMNeT++ file system
//! simulator FSS.

use units::{Duration, Instant};

/// Bytes in a sector.
pub(super) const SECTOR_BYTES: u64 = 512;
/// Sectors on every track; there are no zones.
pub(super) const TRACK_SECTORS: u64 = 72;
/// Tracks of a cylinder, one a data head.
pub(super) const CYLINDER_TRACKS: u64 = 19;
/// Cylinders, spare ones included.
pub(super) const CYLINDERS: u64 = 1962;
/// By how many sectors a track begins later than the track before it.
const TRACK_SKEW_SECTORS: u64 = 8;
/// By how many sectors a track begins later than the last track of the cylinder before it. It
/// replaces the track skew: so 1368 sectors take 18 * 80 + 90 = 1530 ticks, which is 33.5 MB/s on
/// 16 disks, the maximum that D. Kotz, ACM TOCS 15(1), 1997, section 6.1, reports.
const CYLINDER_SKEW_SECTORS: u64 = 18;
/// Time to select another head in the same cylinder.
pub(super) const HEAD_SWITCH: Duration = Duration::from_us(1_600);

/// A run of tracks that hold data, as `(cylinder, head)`, both ends included.
struct Region {
    first: (u64, u64),
    last: (u64, u64),
}

/// Where data lies; what is between is spare (the disk replaces whole bad tracks). From the HP
/// 97560 entry of the HRaid simulator's table of disks. The sum, 2,647,080 sectors, agrees with the
/// 1355 MB of the TH99 drive list and with the 1935 cylinders of the 4.4BSD label.
const REGIONS: [Region; 3] = [
    Region { first: (1, 4), last: (646, 3) },
    Region { first: (654, 0), last: (1298, 18) },
    Region { first: (1308, 0), last: (1952, 18) },
];

/// Tracks of a region: all three are of one size.
pub(super) const REGION_TRACKS: u64 = region_tracks(0);
/// Sectors a host can use.
pub(super) const CAPACITY_SECTORS: u64 = REGION_TRACKS * REGIONS.len() as u64 * TRACK_SECTORS;

const _: () = assert!(
    region_tracks(1) == REGION_TRACKS && region_tracks(2) == REGION_TRACKS,
    "finding the region of a track by division needs regions of one size"
);

const fn region_first_track(region: usize) -> u64 {
    REGIONS[region].first.0 * CYLINDER_TRACKS + REGIONS[region].first.1
}

const fn region_tracks(region: usize) -> u64 {
    REGIONS[region].last.0 * CYLINDER_TRACKS + REGIONS[region].last.1 + 1
        - region_first_track(region)
}

/// What to add to the number of a data track to get the number of the physical track.
const TRACKS_SKIPPED: [u64; 3] = [
    region_first_track(0),
    region_first_track(1) - REGION_TRACKS,
    region_first_track(2) - 2 * REGION_TRACKS,
];

/// How many cylinders before a region's cylinders are never entered by data.
const CYLINDERS_SKIPPED: [u64; 3] = {
    let second = REGIONS[1].first.0 - REGIONS[0].last.0 - 1;
    let third = REGIONS[2].first.0 - REGIONS[1].last.0 - 1;
    [REGIONS[0].first.0, REGIONS[0].first.0 + second, REGIONS[0].first.0 + second + third]
};

/// Nanoseconds to seek over so many cylinders; none for none.
static SEEK_NS: [u64; CYLINDERS as usize] = seek_table();

/// 3.24 ms + 0.400 ms * sqrt(d) up to 383 cylinders, 8.00 ms + 0.008 ms * d beyond.
const fn seek_table() -> [u64; CYLINDERS as usize] {
    let mut table = [0; CYLINDERS as usize];
    let mut distance = 1;
    while distance < table.len() {
        let d = distance as u64;
        table[distance] = if d <= 383 {
            3_240_000 + (400_000 * 400_000 * d).isqrt()
        } else {
            8_000_000 + 8_000 * d
        };
        distance += 1;
    }
    table
}

/// A physical track: cylinder * 19 + head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Track(u64);

impl Track {
    /// The track that holds `sector`, which must be on the disk.
    pub(super) fn of(sector: u64) -> Self {
        let track = sector / TRACK_SECTORS;
        Self(track + TRACKS_SKIPPED[(track / REGION_TRACKS) as usize])
    }

    /// Its cylinder, counted from the rim with the spare ones.
    pub(super) fn cylinder(self) -> u64 {
        self.0 / CYLINDER_TRACKS
    }

    /// Time until the head of `other` is over it: a seek, which hides the choice of a head, or a
    /// head switch, or nothing.
    pub(super) fn move_to(self, other: Self) -> Duration {
        let distance = self.cylinder().abs_diff(other.cylinder());
        if distance > 0 {
            Duration::from_ns(SEEK_NS[distance as usize])
        } else if self != other {
            HEAD_SWITCH
        } else {
            Duration::ZERO
        }
    }
}

/// The place of `sector` on the endless tape that passes the head when the disk is read from its
/// first sector on: the sectors before it and the ticks between tracks.
///
/// Modulo 72 it is the angle of the sector. The difference of two places is the time in ticks that
/// sequential media transfer needs from one to the other:
///
/// ```text
/// | track 0: 72 | 8 | track 1: 72 | 8 | ... | last of the cylinder: 72 | 18 | next cylinder ...
/// ```
///
/// Between regions the arm needs longer than the 18 ticks of the cylinder skew (8 cylinders:
/// 4.37 ms = 21 ticks), so one more revolution passes.
pub(super) fn tape_place(sector: u64) -> u64 {
    let track = sector / TRACK_SECTORS;
    let region = track / REGION_TRACKS;
    let cylinder = (track + TRACKS_SKIPPED[region as usize]) / CYLINDER_TRACKS;
    let cylinders_crossed = cylinder - CYLINDERS_SKIPPED[region as usize];
    sector
        + TRACK_SKEW_SECTORS * track
        + (CYLINDER_SKEW_SECTORS - TRACK_SKEW_SECTORS) * cylinders_crossed
        + TRACK_SECTORS * region
}

/// A pass of the medium under the heads without a pause, from a known sector on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pass {
    /// The sector at which it starts.
    pub(super) sector: u64,
    /// When that sector begins to pass.
    pub(super) tick: u64,
}

impl Pass {
    /// When `sector`, which is not before the start, begins to pass.
    pub(super) fn tick_of(self, sector: u64) -> u64 {
        self.tick + tape_place(sector) - tape_place(self.sector)
    }

    /// When the last sector before `end` has passed; the beginning of the world if all of them
    /// passed before the start.
    pub(super) fn passed_at(self, spindle: Spindle, end: u64) -> Instant {
        if end <= self.sector {
            return Instant::START;
        }
        spindle.instant_of(self.tick_of(end - 1) + 1)
    }

    /// The first sector that has not passed as a whole at `now`, found track by track.
    pub(super) fn reached(self, spindle: Spindle, now: Instant) -> u64 {
        let tick = spindle.tick_until(now);
        let mut sector = self.sector;
        loop {
            let track_end = (sector / TRACK_SECTORS + 1) * TRACK_SECTORS;
            let passed = tick.saturating_sub(self.tick_of(sector));
            if sector + passed < track_end || track_end == CAPACITY_SECTORS {
                return track_end.min(sector + passed);
            }
            sector = track_end;
        }
    }
}

/// The turning medium, which never changes its speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spindle {
    angle_at_start_ns: u64,
}

/// 667 revolutions of 60/4002 s: the shortest time of whole nanoseconds and whole revolutions.
const PERIOD_NS: u64 = 10_000_000_000;
/// Ticks in [`PERIOD_NS`].
const PERIOD_TICKS: u64 = 667 * TRACK_SECTORS;

/// One revolution, 14.992503 ms, rounded down.
pub(super) const REVOLUTION: Duration = Duration::from_ns(PERIOD_NS / 667);

impl Spindle {
    pub(super) fn new(angle_at_start: Duration) -> Self {
        assert!(
            angle_at_start <= REVOLUTION,
            "the angle at the start must be less than a revolution, not {angle_at_start}"
        );
        Self { angle_at_start_ns: angle_at_start.as_ns() }
    }

    /// The first tick not before `instant`.
    pub(super) fn tick_from(self, instant: Instant) -> u64 {
        let turned_ns = instant.as_ns() + self.angle_at_start_ns;
        let (periods, rest_ns) = (turned_ns / PERIOD_NS, turned_ns % PERIOD_NS);
        periods * PERIOD_TICKS + (rest_ns * PERIOD_TICKS).div_ceil(PERIOD_NS)
    }

    /// The last tick not after `instant`, if a tick is when [`instant_of`](Self::instant_of) says.
    pub(super) fn tick_until(self, instant: Instant) -> u64 {
        self.tick_from(instant + Duration::from_ns(1)) - 1
    }

    /// When `tick` is, which must not be before the world began. Rounded down, so that
    /// `tick_from(instant_of(tick)) == tick`.
    pub(super) fn instant_of(self, tick: u64) -> Instant {
        let (periods, rest_ticks) = (tick / PERIOD_TICKS, tick % PERIOD_TICKS);
        let turned_ns = periods * PERIOD_NS + rest_ticks * PERIOD_NS / PERIOD_TICKS;
        Instant::from_ns(turned_ns - self.angle_at_start_ns)
    }

    /// The first tick not before `instant` at which `sector` begins to pass the heads.
    pub(super) fn tick_of_sector(self, instant: Instant, sector: u64) -> u64 {
        let earliest = self.tick_from(instant);
        let angle = tape_place(sector) % TRACK_SECTORS;
        earliest + (angle + TRACK_SECTORS - earliest % TRACK_SECTORS) % TRACK_SECTORS
    }
}
