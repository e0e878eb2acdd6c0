//! A checked mechanical disk, with the values that follow from its specification.

use super::geometry::{Segment, Track, segments};
use super::spec::{DriveError, DriveSpec, NS_PER_MINUTE};
use units::Duration;

/// A mechanical disk whose specification is valid, with derived values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drive {
    pub(super) spec: DriveSpec,
    /// Shortest time that is a whole number of nanoseconds and of revolutions.
    pub(super) period_ns: u64,
    pub(super) period_revolutions: u64,
    /// Runs of consecutive tracks in one zone, in the order of their addresses.
    pub(super) segments: Vec<Segment>,
    pub(super) buffer_sectors: u64,
    pub(super) read_fence_sectors: u64,
    pub(super) write_fence_sectors: u64,
}

impl Drive {
    /// Checks a specification and derives values from it.
    ///
    /// # Errors
    /// Fails when no such disk can exist.
    pub fn new(spec: DriveSpec) -> Result<Self, DriveError> {
        spec.check()?;
        let divisor = greatest_common_divisor(NS_PER_MINUTE, spec.revolutions_per_minute);
        let fence = |what, bytes: u64| {
            let DriveSpec { sector_bytes, buffer_bytes, .. } = spec;
            let fits = (2 * sector_bytes..=buffer_bytes).contains(&bytes);
            match fits && bytes.is_multiple_of(sector_bytes) {
                true => Ok(bytes / sector_bytes),
                false => Err(DriveError::Fence { what, bytes, sector_bytes, buffer_bytes }),
            }
        };
        Ok(Self {
            period_ns: NS_PER_MINUTE / divisor,
            period_revolutions: spec.revolutions_per_minute / divisor,
            segments: segments(&spec),
            buffer_sectors: spec.buffer_bytes / spec.sector_bytes,
            read_fence_sectors: fence("read_fence_bytes", spec.read_fence_bytes)?,
            write_fence_sectors: fence("write_fence_bytes", spec.write_fence_bytes)?,
            spec,
        })
    }

    /// The specification.
    pub fn spec(&self) -> &DriveSpec {
        &self.spec
    }

    /// Time of one revolution, rounded down to a nanosecond.
    pub fn revolution(&self) -> Duration {
        Duration::from_ns(self.period_ns / self.period_revolutions)
    }

    /// Sectors that a host can use.
    pub fn capacity_sectors(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.end_sector)
    }

    /// Sectors of the shortest track that holds data.
    pub fn track_sectors_min(&self) -> u64 {
        self.segments.iter().map(|segment| segment.track_sectors).min().unwrap_or(1)
    }

    /// Sectors of the longest burst of a write: half the fence. So a burst can move while the
    /// medium is busy with the previous one, and a long write loses no revolution. (Our choice.)
    pub(super) fn write_burst_sectors(&self) -> u64 {
        self.write_fence_sectors / 2
    }

    /// Returns the track that holds `sector`, which must be on the disk.
    pub(super) fn track_of(&self, sector: u64) -> Track {
        let segment = self.segment_of(sector);
        Track(segment.first_track + (sector - segment.first_sector) / segment.track_sectors)
    }

    /// Returns the cylinder of a track, counted from the rim with the spare ones.
    pub(super) fn cylinder_of(&self, track: Track) -> u64 {
        track.0 / self.spec.cylinder_tracks
    }

    /// Time until the head of `to` is over it, with the arm over `from`: a seek (which hides the
    /// head switch), a head switch, or nothing.
    pub(super) fn move_between(&self, from: Track, to: Track) -> Duration {
        let distance = self.cylinder_of(from).abs_diff(self.cylinder_of(to));
        if distance > 0 {
            self.spec.seek.time(distance)
        } else if from != to {
            self.spec.head_switch
        } else {
            Duration::ZERO
        }
    }

    /// Returns the segment that holds `sector`, which must be on the disk.
    pub(super) fn segment_of(&self, sector: u64) -> &Segment {
        let index = self.segments.partition_point(|segment| segment.end_sector <= sector);
        &self.segments[index]
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
