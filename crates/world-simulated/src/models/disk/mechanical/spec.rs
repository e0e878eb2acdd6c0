//! The specification of a mechanical disk, as a data sheet states it, and its checks.

use crate::models::bus::BusSpec;
use units::Duration;

/// Specification of a mechanical disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveSpec {
    /// Name of the disk in errors.
    pub name: String,
    /// Bytes of a sector.
    pub sector_bytes: u64,
    /// Revolutions a minute.
    pub revolutions_per_minute: u64,
    /// Cylinders, spare ones included.
    pub cylinders: u64,
    /// Tracks of a cylinder: one for each data head.
    pub cylinder_tracks: u64,
    /// Zones of equal tracks, from the rim inwards. Together they cover all cylinders.
    pub zones: Vec<Zone>,
    /// Regions that hold data, in the order of addresses; tracks in between are spare.
    pub regions: Vec<Region>,
    /// Time of arm moves.
    pub seek: SeekCurve,
    /// Time to select another head of the same cylinder.
    pub head_switch: Duration,
    /// Time the controller needs for a command to read, before the arm may move.
    pub read_overhead: Duration,
    /// Time the controller needs for a command to write, before the arm may move.
    pub write_overhead: Duration,
    /// Bytes of the buffer.
    pub buffer_bytes: u64,
    /// Bytes in the buffer, or the whole of a shorter read, before a read connects to the bus.
    pub read_fence_bytes: u64,
    /// Longest run of written data in the buffer, in bytes.
    pub write_fence_bytes: u64,
    /// True if a write is reported complete when the buffer holds it.
    pub immediate_reporting: bool,
    /// True if the head reads on into the buffer after a read.
    pub read_ahead: bool,
    /// Bus to which it is connected.
    pub bus: BusSpec,
}

/// Neighbouring cylinders whose tracks hold equally many sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// The outermost cylinder.
    pub first_cylinder: u64,
    /// The innermost cylinder, included.
    pub last_cylinder: u64,
    /// Sectors of each track.
    pub track_sectors: u64,
    /// Sectors by which a track begins later than the previous track of its cylinder.
    pub track_skew_sectors: u64,
    /// Sectors by which a cylinder begins later than the last track of the previous cylinder. It
    /// replaces the track skew.
    pub cylinder_skew_sectors: u64,
}

/// A run of tracks that hold data, as `(cylinder, head)`, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// First track.
    pub first: (u64, u64),
    /// Last track, included.
    pub last: (u64, u64),
}

/// Time to move the arm over `d` cylinders: zero for `d = 0`, then a part that grows with the root
/// of `d`, then a linear part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeekCurve {
    /// Time for one cylinder, where it is known and off the curve.
    pub one_cylinder: Option<Duration>,
    /// Largest distance of the first part.
    pub short_cylinders_max: u64,
    /// First part: `short_base + short_per_root * sqrt(d)`.
    pub short_base: Duration,
    /// Coefficient of the first part.
    pub short_per_root: Duration,
    /// Second part: `long_base + long_per_cylinder * d`.
    pub long_base: Duration,
    /// Coefficient of the second part.
    pub long_per_cylinder: Duration,
}

/// Reason why no such disk can exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DriveError {
    /// A number is zero, or larger than in any disk ever built.
    #[error("{what} is {value}, not a number from {least} to {most}")]
    Number {
        /// Name of the number in the specification.
        what: &'static str,
        /// The number.
        value: u64,
        /// Smallest permitted value.
        least: u64,
        /// Largest permitted value.
        most: u64,
    },
    /// The zones leave out cylinders, overlap, or go beyond the disk.
    #[error(
        "zone {zone} has cylinders {first} to {last} and should begin at {expected}: the zones \
         must cover cylinders 0 to {end} once"
    )]
    Zones {
        /// Its place in the list, counted from 1.
        zone: usize,
        /// Its first cylinder.
        first: u64,
        /// Its last cylinder.
        last: u64,
        /// Cylinder at which it should begin.
        expected: u64,
        /// The last cylinder of the disk.
        end: u64,
    },
    /// A skew is a whole revolution or more.
    #[error(
        "{what} of zone {zone} is {skew_sectors} sectors, and a track of it has only \
         {track_sectors}"
    )]
    Skew {
        /// Name of the skew in the specification.
        what: &'static str,
        /// The zone's place in the list, counted from 1.
        zone: usize,
        /// The skew.
        skew_sectors: u64,
        /// Sectors of a track.
        track_sectors: u64,
    },
    /// A region is not on the disk, runs backwards, or begins before the one before it ends.
    #[error("region {region} is {cause}")]
    Region {
        /// Its place in the list, counted from 1.
        region: usize,
        /// The violated rule.
        cause: &'static str,
    },
    /// A fence is not a whole number of sectors that fits the buffer.
    #[error(
        "{what} is {bytes} bytes: it must be whole sectors of {sector_bytes} bytes, two at least, \
         and no more than the buffer's {buffer_bytes}"
    )]
    Fence {
        /// Name of the fence in the specification.
        what: &'static str,
        /// Its bytes.
        bytes: u64,
        /// Bytes of a sector.
        sector_bytes: u64,
        /// Bytes of the buffer.
        buffer_bytes: u64,
    },
    /// There are no zones or regions, or too many.
    #[error("there are {count} {what}, and there must be 1 to {most}")]
    Count {
        /// Zones or regions.
        what: &'static str,
        /// Their number.
        count: usize,
        /// Largest permitted number.
        most: usize,
    },
}

/// Largest number of zones, and of regions.
const PARTS_MAX: usize = 1_024;
/// Largest time in a specification: a second.
const TIME_NS_MAX: u64 = 1_000_000_000;
/// Largest speed. With [`TRACK_SECTORS_MAX`] it keeps ticks times nanoseconds of a minute below
/// 2^64.
const REVOLUTIONS_PER_MINUTE_MAX: u64 = 30_000;
/// Largest track.
const TRACK_SECTORS_MAX: u64 = 8_192;
/// Largest number of cylinders. Its root times the largest time stays below 2^64.
const CYLINDERS_MAX: u64 = 1_000_000;
/// Largest time for the root of a distance; see [`CYLINDERS_MAX`].
const ROOT_NS_MAX: u64 = 4_000_000;
pub(super) const NS_PER_MINUTE: u64 = 60_000_000_000;

impl DriveSpec {
    /// Checks numbers, zones and regions.
    pub(super) fn check(&self) -> Result<(), DriveError> {
        check_numbers(self)?;
        check_zones(self)?;
        check_regions(self)
    }
}

fn check_numbers(spec: &DriveSpec) -> Result<(), DriveError> {
    let ns = |time: Duration| time.as_ns();
    let seek = &spec.seek;
    let numbers = [
        ("sector_bytes", spec.sector_bytes, 1, 65_536),
        ("revolutions_per_minute", spec.revolutions_per_minute, 1, REVOLUTIONS_PER_MINUTE_MAX),
        ("cylinders", spec.cylinders, 1, CYLINDERS_MAX),
        ("cylinder_tracks", spec.cylinder_tracks, 1, 1_024),
        ("buffer_bytes", spec.buffer_bytes, 1, 1 << 40),
        ("bus bytes_per_second", spec.bus.bytes_per_second, 1, 1 << 50),
        ("bus connection in nanoseconds", ns(spec.bus.connection), 0, TIME_NS_MAX),
        ("head_switch in nanoseconds", ns(spec.head_switch), 0, TIME_NS_MAX),
        ("read_overhead in nanoseconds", ns(spec.read_overhead), 0, TIME_NS_MAX),
        ("write_overhead in nanoseconds", ns(spec.write_overhead), 0, TIME_NS_MAX),
        ("seek one_cylinder in nanoseconds", seek.one_cylinder.map_or(0, ns), 0, TIME_NS_MAX),
        ("seek short_cylinders_max", seek.short_cylinders_max, 0, CYLINDERS_MAX),
        ("seek short_base in nanoseconds", ns(seek.short_base), 0, TIME_NS_MAX),
        ("seek short_per_root in nanoseconds", ns(seek.short_per_root), 0, ROOT_NS_MAX),
        ("seek long_base in nanoseconds", ns(seek.long_base), 0, TIME_NS_MAX),
        ("seek long_per_cylinder in nanoseconds", ns(seek.long_per_cylinder), 0, ROOT_NS_MAX),
    ];
    for (what, value, least, most) in numbers {
        check_number(what, value, least, most)?;
    }
    for (what, count) in [("zones", spec.zones.len()), ("regions", spec.regions.len())] {
        if count == 0 || count > PARTS_MAX {
            return Err(DriveError::Count { what, count, most: PARTS_MAX });
        }
    }
    Ok(())
}

fn check_number(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), DriveError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(DriveError::Number { what, value, least, most }),
    }
}

fn check_zones(spec: &DriveSpec) -> Result<(), DriveError> {
    let mut expected = 0;
    let end = spec.cylinders - 1;
    for (index, zone) in spec.zones.iter().enumerate() {
        let number = index + 1;
        let Zone { first_cylinder: first, last_cylinder: last, track_sectors, .. } = *zone;
        let is_last = number == spec.zones.len();
        if first != expected || last < first || last > end || (is_last && last != end) {
            return Err(DriveError::Zones { zone: number, first, last, expected, end });
        }
        expected = last + 1;
        check_number("track_sectors", track_sectors, 1, TRACK_SECTORS_MAX)?;
        let skews = [
            ("track_skew_sectors", zone.track_skew_sectors),
            ("cylinder_skew_sectors", zone.cylinder_skew_sectors),
        ];
        for (what, skew_sectors) in skews {
            if skew_sectors >= track_sectors {
                return Err(DriveError::Skew { what, zone: number, skew_sectors, track_sectors });
            }
        }
    }
    Ok(())
}

fn check_regions(spec: &DriveSpec) -> Result<(), DriveError> {
    let mut free_from = 0;
    for (index, region) in spec.regions.iter().enumerate() {
        let refuse = |cause| Err(DriveError::Region { region: index + 1, cause });
        for (cylinder, head) in [region.first, region.last] {
            if cylinder >= spec.cylinders || head >= spec.cylinder_tracks {
                return refuse(
                    "not on the disk: it names a cylinder or a head that does not exist",
                );
            }
        }
        let [first, last] = [region.first, region.last]
            .map(|(cylinder, head)| cylinder * spec.cylinder_tracks + head);
        if last < first {
            return refuse("backwards: its last track is before its first");
        }
        if first < free_from {
            return refuse("out of order: it begins before the end of the region before it");
        }
        free_from = last + 1;
    }
    Ok(())
}
