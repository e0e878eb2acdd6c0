//! Proves: constants, addresses and single commands of the HP 97560 agree with arithmetic.

use super::drive::Drive;
use super::geometry::Track;
use super::mechanical_disk::MechanicalDisk;
use super::rotation::{Medium, Pass};
use crate::models::disk::disk_model::{Command, DiskModel, Step};
use std::ops::Range;
use units::{Duration, Instant};

const TRACK_SECTORS: u64 = 72;
const CYLINDER_TRACKS: u64 = 19;
const CYLINDERS: u64 = 1_962;
const REGION_TRACKS: u64 = 12_255;
const CAPACITY_SECTORS: u64 = 2_647_080;
const SECTOR_BYTES: u64 = 512;
const HEAD_SWITCH: Duration = Duration::from_us(1_600);
const OVERHEAD: Duration = Duration::from_us(2_200);

fn new_disk(angle: Duration) -> MechanicalDisk {
    MechanicalDisk::new(Drive::hp97560(), angle)
}

fn new_medium(angle: Duration) -> Medium {
    Medium::new(Drive::hp97560(), angle)
}

/// Returns the place of a sector on the tape of its region.
fn tape_place(sector: u64) -> u64 {
    let drive = Drive::hp97560();
    drive.segment_of(sector).place(drive.spec().cylinder_tracks, sector)
}

fn begin(disk: &mut MechanicalDisk, now: Instant, reads: bool, sectors: Range<u64>) -> Step {
    disk.begin(now, &Command { reads, sectors }).expect("the sectors exist")
}

const MIB: f64 = 1_048_576.0;

/// Returns megabytes a second (2^20 bytes, as the papers count) of `sectors` in `ticks`.
fn rate(sectors: u64, ticks: u64) -> f64 {
    let seconds = ticks as f64 * 60.0 / 4002.0 / 72.0;
    (sectors * SECTOR_BYTES) as f64 / MIB / seconds
}

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance
}

/// Returns the earliest start of the first burst, and its bytes.
fn burst(step: Step) -> (Instant, u64) {
    match step {
        Step::Burst { from, bytes } => (from, bytes),
        _ => panic!("a command begins with a burst"),
    }
}

/// Returns the end of a command whose bursts take no time on the bus.
fn finish(disk: &mut MechanicalDisk, mut step: Step) -> Instant {
    loop {
        match step {
            Step::Burst { from, .. } => step = disk.moved(from),
            Step::Complete(at) => return at,
            Step::Processor { .. } => panic!("the disk has a controller"),
        }
    }
}

fn read(disk: &mut MechanicalDisk, now: Instant, sectors: Range<u64>) -> Instant {
    let step = begin(disk, now, true, sectors);
    finish(disk, step)
}

fn write(disk: &mut MechanicalDisk, now: Instant, sectors: Range<u64>) -> Instant {
    let step = begin(disk, now, false, sectors);
    finish(disk, step)
}

/// Proves the derived constants that the papers and data sheets print: capacity, revolution, media
/// rate of one track (2.34 MB/s, TR94-226), of many tracks (2.11, TOCS), of many cylinders (33.5 on
/// 16 disks, TOCS).
#[test]
fn derived_constants() {
    assert_eq!(CAPACITY_SECTORS, 2_647_080);
    assert_eq!(CAPACITY_SECTORS * SECTOR_BYTES, 1_355_304_960);
    assert_eq!(CYLINDERS * CYLINDER_TRACKS * TRACK_SECTORS * 512, 1_374_216_192);
    assert_eq!(Drive::hp97560().revolution(), Duration::from_ns(14_992_503));
    assert!(near(rate(72, 72), 2.34492, 1e-5));
    assert!(near(rate(72, tape_place(144) - tape_place(72)), 2.11043, 1e-5));
    let cylinder = 15 * 72..15 * 72 + 19 * 72;
    let ticks = tape_place(cylinder.end) - tape_place(cylinder.start);
    assert_eq!(ticks, 1530);
    assert!(near(rate(1368, ticks), 2.09664, 1e-5));
}

/// Proves the seek curve at its ends and knee, and its mean over random pairs of cylinders: 12.75
/// ms (the data sheet says 13.5).
#[test]
fn seek_curve() {
    let drive = Drive::hp97560();
    let first_of = |cylinder: u64| drive.track_of((15 + (cylinder - 2) * 19) * TRACK_SECTORS);
    let seek_ms = |distance: u64| {
        drive.move_between(first_of(2), first_of(2 + distance)).as_ns() as f64 / 1e6
    };
    assert!(near(seek_ms(1), 3.64, 1e-6));
    assert!(near(seek_ms(4), 4.04, 1e-6));
    assert!(near(seek_ms(383), 3.24 + 0.4 * 383.0_f64.sqrt(), 1e-6));
    assert!(near(seek_ms(384), 11.072, 1e-6));
    let track = drive.track_of(0);
    assert_eq!(drive.move_between(track, drive.track_of(71)), Duration::ZERO);
    assert_eq!(drive.move_between(track, drive.track_of(72)), HEAD_SWITCH);

    let step = 19 * TRACK_SECTORS;
    let cylinders: Vec<Track> =
        (0..1935).map(|index| drive.track_of(15 * TRACK_SECTORS + index * step)).collect();
    let (mut sum, mut count) = (0, 0_u64);
    for from in &cylinders {
        for to in &cylinders {
            sum += drive.move_between(*from, *to).as_ns();
            count += 1;
        }
    }
    let mean_ms = sum as f64 / count as f64 / 1e6;
    assert!(near(mean_ms, 12.75, 0.1), "{mean_ms}");
}

/// Proves the table of regions: first and last track of each.
#[test]
fn regions() {
    let drive = Drive::hp97560();
    let cylinder = |track: u64| drive.cylinder_of(drive.track_of(track * TRACK_SECTORS));
    assert_eq!(drive.segments.len(), 3);
    assert_eq!(drive.capacity_sectors(), CAPACITY_SECTORS);
    let track = |physical: (u64, u64)| physical.0 * 19 + physical.1;
    assert_eq!(REGION_TRACKS, 12_255);
    for (index, (first, last)) in
        [((1, 4), (646, 3)), ((654, 0), (1298, 18)), ((1308, 0), (1952, 18))].iter().enumerate()
    {
        let first_track = index as u64 * 12_255;
        assert_eq!(cylinder(first_track), first.0);
        assert_eq!(cylinder(first_track + 12_254), last.0);
        assert_eq!(track(*last) - track(*first) + 1, 12_255);
    }
    assert_eq!([cylinder(14), cylinder(15), cylinder(12_250)], [1, 2, 645]);
    assert_eq!(cylinder(12_251), 646);
}

/// Proves for every track that the skew makes sequential transfer just fit: the head, moved from
/// the end of a track to the next, meets that track's first sector exactly at the tick that the
/// tape picture states.
#[test]
fn skew_hides_every_move_between_neighbours() {
    let spindle = new_medium(Duration::from_us(1_234));
    let drive = &spindle.drive;
    let mut tick = spindle.tick_of_sector(Instant::from_ns(99_999_999_999), 0);
    for sector in (0..CAPACITY_SECTORS - TRACK_SECTORS).step_by(TRACK_SECTORS as usize) {
        let next = sector + TRACK_SECTORS;
        let pass = Pass { sector, tick };
        let moved = pass.passed_at(&spindle, next)
            + drive.move_between(drive.track_of(sector), drive.track_of(next));
        tick = spindle.tick_of_sector(moved, next);
        assert_eq!(tick, pass.tick_of(&spindle, next), "from sector {sector} on");
        assert_eq!(pass.reached(&spindle, pass.passed_at(&spindle, next)), next);
    }
}

/// Proves that ticks and nanoseconds convert without drift: exact after 584 hours as at the start.
#[test]
fn the_spindle_never_drifts() {
    for angle_us in [0, 1, 7_000, 14_992] {
        let spindle = new_medium(Duration::from_us(angle_us));
        for start in [0, 12_345, 48_024 * 210_000] {
            for tick in start + 72..start + 300 {
                let instant = spindle.instant_of(72, tick);
                assert_eq!(spindle.tick_from(72, instant), tick);
                assert_eq!(spindle.tick_until(72, instant), tick);
                assert_eq!(spindle.tick_from(72, instant + Duration::from_ns(1)), tick + 1);
            }
        }
        let ten_seconds = spindle.instant_of(72, 72 + 48_024).since(spindle.instant_of(72, 72));
        assert_eq!(ten_seconds, Duration::from_ns(10_000_000_000));
    }
}

/// Proves the parts of one random read: overhead, then seek, then rotation, then the media.
#[test]
fn a_random_read_is_the_sum_of_its_parts() {
    let sector = 13_889 * TRACK_SECTORS;
    for angle_us in (0..14_992).step_by(100) {
        let angle = Duration::from_us(angle_us);
        let mut disk = new_disk(angle);
        let now = Instant::from_ns(5_000_000);
        let done = read(&mut disk, now, sector..sector + 16);
        let drive = Drive::hp97560();
        let seek = drive.move_between(drive.track_of(0), drive.track_of(sector));
        let arrived = now + OVERHEAD + seek;
        let media = Duration::from_ns(16 * 208_229);
        let rotation = done.since(arrived).as_ns() as i64 - media.as_ns() as i64;
        assert!((-5..14_992_509).contains(&rotation), "{rotation} ns at angle {angle}");
        let angle_ns = (done.as_ns() + angle_us * 1_000) as f64 % 14_992_503.748;
        let expected = (tape_place(sector + 15) % 72 + 1) as f64 * 208_229.22;
        assert!(near(angle_ns, expected, 20.0), "the head must be at the end of the block");
    }
}

/// Proves that a read of read-ahead data costs only the overhead, also for a block that was passed
/// over, until newer data replaces it; a write discards the data.
#[test]
fn reads_hit_what_was_read_ahead() {
    let later = |instant: Instant| instant + Duration::from_ms(500);
    let mut disk = new_disk(Duration::ZERO);
    let mut now = later(read(&mut disk, Instant::START, 720..736));
    // By now the disk has read up to its limit: 256 sectors past those that the host took.
    for sectors in [736..752, 896..912, 800..816] {
        assert_eq!(read(&mut disk, now, sectors.clone()), now + OVERHEAD, "{sectors:?}");
        now = now + OVERHEAD;
    }
    now = later(now);
    let lost = read(&mut disk, now, 720..736);
    assert!(lost > now + OVERHEAD, "sectors up to 1168 have overwritten it");

    now = later(lost);
    assert_eq!(read(&mut disk, now, 752..768), now + OVERHEAD);
    now = later(write(&mut disk, now + OVERHEAD, 5_000..5_016));
    assert!(read(&mut disk, now, 768..784) > now + OVERHEAD);
}

/// Proves that a request ahead of the head waits for it when that is fastest, and that the disk
/// moves the head instead of reading three tracks that no host requested.
#[test]
fn reads_ahead_of_the_head() {
    let mut disk = new_disk(Duration::ZERO);
    let start = read(&mut disk, Instant::START, 720..736);
    let next = read(&mut disk.clone(), start, 736..752);
    assert_eq!(next.since(start).as_ns() / 1_000, 16 * 208_229 / 1_000);
    let far = read(&mut disk, start, 720 + 240..720 + 256);
    assert!(far.since(start) < OVERHEAD + HEAD_SWITCH + Duration::from_ms(19));
}

/// Proves that one read of 1 MiB runs at media rate, in bursts of the fence.
#[test]
fn a_large_read_runs_at_media_rate() {
    let mut disk = new_disk(Duration::ZERO);
    let step = begin(&mut disk, Instant::START, true, 10_000..12_048);
    let (first, bytes) = burst(step);
    assert_eq!(bytes, 65_536);
    let done = finish(&mut disk, step);
    let ticks = tape_place(12_047) + 1 - tape_place(10_128);
    assert!(near(done.since(first).as_ns() as f64, ticks as f64 * 208_229.22, 5_000.0));
}

/// Proves that one write of 1 MiB runs at media rate and is reported before all of it is on the
/// medium, by at most the fence.
#[test]
fn a_large_write_runs_at_media_rate() {
    let mut disk = new_disk(Duration::ZERO);
    let step = begin(&mut disk, Instant::START, false, 10_000..12_048);
    let (first, bytes) = burst(step);
    assert_eq!(bytes, 32_768);
    let reported = finish(&mut disk, step);
    let ticks = tape_place(12_047) + 1 - tape_place(10_000);
    let media_ns = (ticks as f64 * 208_229.22) as u64;
    let end_ns = disk.idle_at().as_ns();
    let wait_ns = end_ns - first.as_ns() - media_ns;
    assert!(wait_ns < 30_000_000, "a seek and a rotation, not one lost later: {wait_ns}");
    let tail = disk.idle_at().since(reported);
    // At least the fence less a burst; at most the fence, a track skew and a cylinder skew.
    assert!(tail > Duration::from_ms(13) && tail < Duration::from_ms(33), "{tail}");
}

/// Proves the rules of the report: at once on a clean buffer, at once for a continuation of the
/// run, after the run is on the medium for anything else; a read waits for the writes.
#[test]
fn writes_report_when_buffered_unless_another_run_is_dirty() {
    let mut disk = new_disk(Duration::ZERO);
    let overhead = OVERHEAD;
    let first = write(&mut disk, Instant::START, 720..736);
    assert_eq!(first, Instant::START + overhead);
    let second = write(&mut disk, first, 736..752);
    assert_eq!(second, first + overhead);
    let flushed = disk.idle_at();
    assert!(flushed > second + overhead);
    let other = write(&mut disk.clone(), second, 90_000..90_016);
    assert_eq!(other, flushed);
    let read_done = read(&mut disk.clone(), second, 752..768);
    assert_eq!(read_done.since(flushed).as_ns() / 1_000, 16 * 208_229 / 1_000);
    let clean = write(&mut disk, flushed, 90_000..90_016);
    assert_eq!(clean, flushed + overhead);
}

/// Proves that sequential writes lose no revolution, and that the run in the buffer never exceeds
/// the fence.
#[test]
fn sequential_writes_stream() {
    let mut disk = new_disk(Duration::from_us(3_000));
    let mut now = Instant::START;
    let start = 50_000;
    for block in 0..400 {
        let first = start + block * 16;
        now = write(&mut disk, now, first..first + 16);
        let tail_ns = disk.idle_at().since(now).as_ns();
        // At most the fence on the medium, a cylinder skew and the seek before the first block.
        assert!(tail_ns < (128 + 34) * 208_230 + 30_000_000);
    }
    let end = start + 400 * 16;
    let media_ns = ((tape_place(end - 1) + 1 - tape_place(start)) as f64 * 208_229.22) as u64;
    assert!(disk.idle_at().as_ns() < media_ns + 2_200_000 + 27_000_000);
}

/// Proves that data which is too late for its place on the medium costs exactly one revolution.
#[test]
fn a_late_write_waits_for_a_revolution() {
    let mut disk = new_disk(Duration::ZERO);
    write(&mut disk, Instant::START, 720..736);
    let clean = disk.idle_at();
    let late = clean + Duration::from_us(1);
    write(&mut disk, late, 736..752);
    let end = clean + Drive::hp97560().revolution() + Duration::from_ns(16 * 208_229);
    assert_eq!(disk.idle_at().as_ns() / 1_000, end.as_ns() / 1_000);
}

/// Proves that a host slower than the medium never waits for more than overhead and the medium:
/// read-ahead that paused at a full buffer is well ahead again.
#[test]
fn a_slow_host_finds_its_data_read_ahead() {
    let mut disk = new_disk(Duration::ZERO);
    let mut now = read(&mut disk, Instant::START, 720..736);
    for block in 46..2_000 {
        let asked = now + Duration::from_ms(6);
        now = read(&mut disk, asked, block * 16..block * 16 + 16);
        assert!(now == asked + OVERHEAD || block < 50, "block {block}");
    }
}

/// Proves that impossible ranges are refused without harm.
#[test]
#[allow(clippy::reversed_empty_ranges)] // A user may write one.
fn impossible_ranges_are_refused() {
    let mut disk = new_disk(Duration::ZERO);
    let capacity = CAPACITY_SECTORS;
    for sectors in [5..5, 6..5, capacity..capacity + 1, capacity - 1..capacity + 1, 0..u64::MAX] {
        for reads in [true, false] {
            let command = Command { reads, sectors: sectors.clone() };
            let refused = disk.begin(Instant::START, &command);
            assert_eq!(refused.map_err(|error| error.sectors), Err(sectors.clone()));
        }
    }
    let last = read(&mut disk, Instant::START, capacity - 16..capacity);
    let again = read(&mut disk, last, capacity - 1..capacity);
    assert_eq!(again, last + OVERHEAD);
    write(&mut disk, again, capacity - 200..capacity);
}

/// Proves that a host may cancel a command at any step: the next one is served in its turn, and
/// buffered bursts reach the medium first.
#[test]
fn abandoned_commands_leave_the_disk_usable() {
    let mut disk = new_disk(Duration::ZERO);
    let (from, _) = burst(begin(&mut disk, Instant::START, true, 720..1_000));
    disk.abandon();
    assert_eq!(read(&mut disk, from, 720..736), from + OVERHEAD);

    let mut now = from + Duration::from_ms(100);
    now = write(&mut disk, now, 5_000..5_016);
    let (burst_from, _) = burst(begin(&mut disk, now, false, 90_000..90_016));
    let Step::Complete(report) = disk.moved(burst_from) else { panic!("16 sectors are one burst") };
    assert!(report > burst_from);
    disk.abandon();
    let clean = disk.idle_at();
    assert!(clean > report);
    assert_eq!(write(&mut disk, burst_from, 7_000..7_016), clean);
}

/// Proves that a second command before the first is complete panics.
#[test]
#[should_panic(expected = "one command at a time")]
fn commands_do_not_overlap() {
    let mut disk = new_disk(Duration::ZERO);
    begin(&mut disk, Instant::START, true, 0..1);
    begin(&mut disk, Instant::START, false, 0..1);
}
