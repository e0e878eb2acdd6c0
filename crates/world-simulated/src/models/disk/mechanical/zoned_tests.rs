//! Proves: disks with zones, disks without immediate reporting, and refusal of impossible disks.

use super::drive::Drive;
use super::mechanical_disk::MechanicalDisk;
use super::rotation::{Medium, Pass};
use super::spec::*;
use crate::models::bus::BusSpec;
use crate::models::disk::disk_model::{Command, DiskModel, Step};
use std::ops::Range;
use std::sync::Arc;
use units::{Duration, Instant};

/// Two zones of four cylinders each, two heads, data everywhere but on one spare cylinder.
fn small() -> DriveSpec {
    let us = Duration::from_us;
    DriveSpec {
        name: "small".to_owned(),
        sector_bytes: 512,
        revolutions_per_minute: 6_000,
        cylinders: 8,
        cylinder_tracks: 2,
        zones: vec![zone(0, 3, 100), zone(4, 7, 50)],
        regions: vec![
            Region { first: (0, 0), last: (2, 1) },
            Region { first: (3, 1), last: (7, 1) },
        ],
        seek: SeekCurve {
            one_cylinder: None,
            short_cylinders_max: 4,
            short_base: us(1_000),
            short_per_root: us(500),
            long_base: us(1_800),
            long_per_cylinder: us(50),
        },
        head_switch: us(800),
        read_overhead: us(300),
        write_overhead: us(500),
        buffer_bytes: 64 * 512,
        read_fence_bytes: 16 * 512,
        write_fence_bytes: 32 * 512,
        immediate_reporting: true,
        read_ahead: true,
        bus: BusSpec::SCSI_2,
    }
}

fn zone(first_cylinder: u64, last_cylinder: u64, track_sectors: u64) -> Zone {
    let [track_skew_sectors, cylinder_skew_sectors] = [track_sectors / 10, track_sectors / 5];
    Zone { first_cylinder, last_cylinder, track_sectors, track_skew_sectors, cylinder_skew_sectors }
}

fn drive(change: impl FnOnce(&mut DriveSpec)) -> Arc<Drive> {
    let mut spec = small();
    change(&mut spec);
    Arc::new(Drive::new(spec).expect("such a disk can be"))
}

fn carry_out(disk: &mut MechanicalDisk, now: Instant, reads: bool, sectors: Range<u64>) -> Instant {
    let mut step = disk.begin(now, &Command { reads, sectors }).expect("the sectors exist");
    loop {
        match step {
            Step::Burst { from, .. } => step = disk.moved(from),
            Step::Complete(at) => return at,
            Step::Processor { .. } => panic!("the disk has a controller"),
        }
    }
}

/// Proves that sectors follow one another over regions and zones: each track once, in order, with
/// the sectors of its zone.
#[test]
fn regions_are_cut_by_zones() {
    let drive = drive(|_| ());
    // Region 1: 6 tracks of 100. Region 2: one track of 100, then 8 tracks of 50.
    let expected = [(0, 600, 100), (600, 700, 100), (700, 1_100, 50)];
    let segments = drive.segments.iter();
    let found: Vec<_> = segments
        .map(|segment| (segment.first_sector, segment.end_sector, segment.track_sectors))
        .collect();
    assert_eq!(found, expected);
    assert_eq!((drive.capacity_sectors(), drive.track_sectors_min()), (1_100, 50));
    let cylinders = [0, 199, 200, 599, 600, 700, 799, 800, 1_099];
    let found = cylinders.map(|sector| drive.cylinder_of(drive.track_of(sector)));
    assert_eq!(found, [0, 0, 1, 2, 3, 4, 4, 5, 7]);
}

/// Proves for every pair of neighbouring tracks, at every zone, that a pass over the medium meets
/// the next track as soon as the moved head can: a skew that is too short costs no more than that.
#[test]
fn a_pass_takes_what_the_head_needs() {
    for skews in [(10, 20), (3, 20), (10, 4), (0, 0)] {
        let drive = drive(|spec| {
            for zone in &mut spec.zones {
                (zone.track_skew_sectors, zone.cylinder_skew_sectors) = skews;
            }
        });
        let medium = Medium::new(Arc::clone(&drive), Duration::from_us(777));
        let mut sector = 0;
        let mut tick = medium.tick_of_sector(Instant::from_ns(123_456_789), 0);
        loop {
            let pass = Pass { sector, tick };
            let next = drive.segment_of(sector).track_end(sector);
            if next == drive.capacity_sectors() {
                break;
            }
            let moved = pass.passed_at(&medium, next)
                + drive.move_between(drive.track_of(sector), drive.track_of(next));
            tick = medium.tick_of_sector(moved, next);
            assert_eq!(tick, pass.tick_of(&medium, next), "at sector {next}, skews {skews:?}");
            assert_eq!(pass.reached(&medium, pass.passed_at(&medium, next)), next);
            sector = next;
        }
    }
}

/// Proves that outer tracks are faster: a track of either zone takes the same time to read, and the
/// outer one has twice the sectors.
#[test]
fn outer_zones_are_faster() {
    let drive = drive(|spec| spec.buffer_bytes = 512 * 512);
    let time = |first: u64, sectors: u64| {
        let mut disk = MechanicalDisk::new(Arc::clone(&drive), Duration::ZERO);
        let start = carry_out(&mut disk, Instant::START, true, first..first + 1);
        let end = carry_out(&mut disk, start, true, first + 1..first + sectors);
        end.since(start).as_ns()
    };
    assert!(time(0, 100).abs_diff(time(700, 50)) < 300_000, "{} {}", time(0, 100), time(700, 50));
}

/// Proves that a disk without immediate reporting reports a write when it is on the medium, and
/// that reads and writes have overheads of their own.
#[test]
fn late_reports_wait_for_the_medium() {
    for immediate_reporting in [true, false] {
        let drive = drive(|spec| spec.immediate_reporting = immediate_reporting);
        let mut disk = MechanicalDisk::new(drive, Duration::ZERO);
        let reported = carry_out(&mut disk, Instant::START, false, 150..166);
        if immediate_reporting {
            assert_eq!(reported, Instant::START + Duration::from_us(500));
            assert!(disk.idle_at() > reported);
        } else {
            assert_eq!(reported, disk.idle_at());
            assert!(reported > Instant::START + Duration::from_us(500));
        }
        let later = disk.idle_at() + Duration::from_ms(50);
        carry_out(&mut disk, later, true, 150..166);
        let again = disk.idle_at() + Duration::from_ms(100);
        let hit = carry_out(&mut disk, again, true, 166..182);
        assert_eq!(hit, again + Duration::from_us(300));
    }
}

/// Proves that without read-ahead the next read pays for overhead and medium, and that a command
/// longer than the buffer works all the same.
#[test]
fn without_read_ahead_the_next_read_waits() {
    let later = |now: Instant| now + Duration::from_ms(100);
    for read_ahead in [true, false] {
        let drive = drive(|spec| spec.read_ahead = read_ahead);
        let mut disk = MechanicalDisk::new(drive, Duration::ZERO);
        let now = later(carry_out(&mut disk, Instant::START, true, 0..200));
        let next = carry_out(&mut disk, now, true, 200..216);
        let is_ready = next == now + Duration::from_us(300);
        assert_eq!(is_ready, read_ahead);
        assert!(next.since(now) < Duration::from_us(300 + 1_500 + 10_000 + 1_700));
    }
}

/// Proves that every kind of invalid specification is refused, with the reason.
#[test]
fn invalid_specifications_are_refused() {
    type Change = fn(&mut DriveSpec);
    let cases: [(Change, &str); 19] = [
        (|spec| spec.revolutions_per_minute = 0, "revolutions_per_minute is 0"),
        (|spec| spec.revolutions_per_minute = 1 << 40, "revolutions_per_minute"),
        (|spec| spec.sector_bytes = 0, "sector_bytes is 0"),
        (|spec| spec.cylinders = 0, "cylinders is 0"),
        (|spec| spec.cylinder_tracks = 0, "cylinder_tracks is 0"),
        (|spec| spec.zones.clear(), "0 zones"),
        (|spec| spec.regions.clear(), "0 regions"),
        (|spec| spec.zones[1].first_cylinder = 5, "zone 2 has cylinders 5 to 7"),
        (|spec| spec.zones[1].first_cylinder = 3, "should begin at 4"),
        (|spec| spec.zones[1].last_cylinder = 8, "cover cylinders 0 to 7"),
        (|spec| spec.zones[1].last_cylinder = 6, "cover cylinders 0 to 7"),
        (|spec| spec.zones[0].track_sectors = 0, "track_sectors is 0"),
        (|spec| spec.zones[1].track_skew_sectors = 50, "track of it has only 50"),
        (|spec| spec.zones[1].cylinder_skew_sectors = 51, "cylinder_skew_sectors of zone 2"),
        (|spec| spec.regions[0].last = (2, 2), "region 1 is not on the disk"),
        (|spec| spec.regions[1].first = (2, 0), "region 2 is out of order"),
        (|spec| spec.regions[1].last = (3, 0), "region 2 is backwards"),
        (|spec| spec.read_fence_bytes = 65 * 512, "no more than the buffer's 32768"),
        (|spec| spec.write_fence_bytes = 512, "two at least"),
    ];
    for (change, word) in cases {
        let mut spec = small();
        change(&mut spec);
        let error = Drive::new(spec).expect_err(word).to_string();
        assert!(error.contains(word), "{error:?} should say {word:?}");
    }
}

/// Proves the sizes of an HP C2200A, and the mean time of its random reads: overhead, seek, half a
/// revolution, and the media.
#[test]
fn hp_c2200a() {
    let drive = Drive::hp_c2200a();
    assert_eq!(drive.capacity_sectors(), 113 * 8 * 1_449);
    assert_eq!(drive.capacity_sectors() * 256, 335_333_376);
    assert_eq!(drive.spec.seek.time(1), Duration::from_us(2_500));
    assert_eq!(drive.spec.seek.time(4), Duration::from_us(3_450 + 2 * 597));
    assert_eq!(drive.spec.seek.time(1_000), Duration::from_us(22_840));
    let mut disk = MechanicalDisk::new(drive, Duration::ZERO);
    let (mut now, mut sector, mut sum_ns) = (Instant::START, 1, 0);
    for _ in 0..2_000 {
        sector = (sector * 48_271) % 1_309_889; // A walk over the disk that seems random.
        let end = carry_out(&mut disk, now, true, sector..sector + 32);
        sum_ns += end.since(now).as_ns();
        now = end;
    }
    // 1.1 + (3.45 + 0.597 sqrt(d) or 10.84 + 0.012 d, 15.5 on average) + 7.5 + 4.25 ms.
    let mean_ms = sum_ns as f64 / 2_000.0 / 1e6;
    assert!((27.0..30.0).contains(&mean_ms), "{mean_ms}");
}
