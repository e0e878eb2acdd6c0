//! The surfaces of a mechanical disk: places of sectors, and seek times.

use super::spec::{DriveSpec, SeekCurve, Zone};
use units::Duration;

/// A physical track: cylinder * tracks of a cylinder + head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Track(pub(super) u64);

impl Track {
    /// The outermost track, under the first head.
    pub(super) const FIRST: Self = Self(0);
}

impl SeekCurve {
    /// Seek time over `distance` cylinders, which must not be zero.
    pub(super) fn time(&self, distance: u64) -> Duration {
        if let (1, Some(time)) = (distance, self.one_cylinder) {
            return time;
        }
        if distance > self.short_cylinders_max {
            return self.long_base + self.long_per_cylinder * distance;
        }
        let per_root_ns = self.short_per_root.as_ns();
        self.short_base + Duration::from_ns((per_root_ns * per_root_ns * distance).isqrt())
    }
}

/// Consecutive tracks of one zone and one region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) first_sector: u64,
    /// One past the last sector.
    pub(super) end_sector: u64,
    /// Physical track of the first sector.
    pub(super) first_track: u64,
    pub(super) track_sectors: u64,
    /// Ticks from the end of a track to the start of the next one in its cylinder: the skew, plus a
    /// revolution if the skew does not hide the head switch.
    track_gap_ticks: u64,
    /// Ticks from the end of a track to the start of the first track of the next cylinder.
    cylinder_gap_ticks: u64,
    /// Place of the first sector; less than the sectors of a track.
    first_place: u64,
}

impl Segment {
    /// Returns the place of `sector`, one of this segment, on the endless tape that passes the head
    /// when the segment is read from its first sector on: the sectors before it plus the ticks
    /// between tracks.
    ///
    /// Modulo the sectors of a track the place is the angle of the sector. The difference of two
    /// places is the time, in ticks, of a sequential transfer from one to the other:
    ///
    /// ```text
    /// | track 0: 72 | 8 | track 1: 72 | 8 | ... | last of the cylinder: 72 | 18 | next one ...
    /// ```
    pub(super) fn place(&self, cylinder_tracks: u64, sector: u64) -> u64 {
        let within = sector - self.first_sector;
        let tracks = within / self.track_sectors;
        let cylinders =
            (self.first_track + tracks) / cylinder_tracks - self.first_track / cylinder_tracks;
        self.first_place
            + within
            + self.track_gap_ticks * (tracks - cylinders)
            + self.cylinder_gap_ticks * cylinders
    }

    /// Returns one past the last sector of the track that holds `sector`.
    pub(super) fn track_end(&self, sector: u64) -> u64 {
        let track = (sector - self.first_sector) / self.track_sectors;
        self.first_sector + (track + 1) * self.track_sectors
    }

    /// Returns the angle, in sectors, at which the next track after this segment would begin.
    fn next_angle(&self, cylinder_tracks: u64, zone: &Zone) -> u64 {
        let tracks = (self.end_sector - self.first_sector) / self.track_sectors;
        let cylinders =
            (self.first_track + tracks - 1) / cylinder_tracks - self.first_track / cylinder_tracks;
        let turned = self.first_place
            + zone.track_skew_sectors * (tracks - 1 - cylinders)
            + zone.cylinder_skew_sectors * (cylinders + 1);
        turned % self.track_sectors
    }
}

/// Returns the segments of a valid specification.
///
/// Within a zone the skews go on from region to region, as if the next cylinder followed. Each zone
/// begins at angle 0. (Our choice: no source says.)
pub(super) fn segments(spec: &DriveSpec) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut latest_zone = None;
    for region in &spec.regions {
        let [first, last] = [region.first, region.last]
            .map(|(cylinder, head)| cylinder * spec.cylinder_tracks + head);
        for (number, zone) in spec.zones.iter().enumerate() {
            let first_track = first.max(zone.first_cylinder * spec.cylinder_tracks);
            let end_track = (last + 1).min((zone.last_cylinder + 1) * spec.cylinder_tracks);
            if first_track >= end_track {
                continue;
            }
            let first_sector = segments.last().map_or(0, |before| before.end_sector);
            let first_place = match segments.last() {
                Some(before) if latest_zone == Some(number) => {
                    before.next_angle(spec.cylinder_tracks, zone)
                }
                _ => 0,
            };
            latest_zone = Some(number);
            segments.push(Segment {
                first_sector,
                end_sector: first_sector + (end_track - first_track) * zone.track_sectors,
                first_track,
                track_sectors: zone.track_sectors,
                track_gap_ticks: gap_ticks(spec, zone, zone.track_skew_sectors, spec.head_switch),
                cylinder_gap_ticks: gap_ticks(
                    spec,
                    zone,
                    zone.cylinder_skew_sectors,
                    spec.seek.time(1),
                ),
                first_place,
            });
        }
    }
    segments
}

/// Ticks from the end of a track until the next one, with this skew, can be read after a move of
/// the head.
fn gap_ticks(spec: &DriveSpec, zone: &Zone, skew: u64, move_time: Duration) -> u64 {
    let ticks_per_minute = spec.revolutions_per_minute * zone.track_sectors;
    let move_ns = u128::from(move_time.as_ns()) * u128::from(ticks_per_minute);
    let move_ticks = move_ns.div_ceil(60_000_000_000) as u64;
    let revolutions = move_ticks.saturating_sub(skew).div_ceil(zone.track_sectors);
    skew + revolutions * zone.track_sectors
}
