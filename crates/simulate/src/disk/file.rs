//! A disk described in a file; `docs/disks/hp97560.toml` explains every key of a mechanical one.

use super::description::{KIND, disk_of_table, line};
use super::microseconds::Microseconds;
use interface::UserError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};
use world_simulated::models::bus::BusSpec;
use world_simulated::models::mechanical::{Drive, DriveSpec, Region, SeekCurve, Zone};
use world_simulated::{DISKS, DiskKind};

/// The largest description that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Kind of disk that a file describes unless it says another: its keys are the tables below.
const MECHANICAL: &str = "mechanical";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskFile {
    #[serde(rename = "kind")]
    _kind: Option<IgnoredAny>,
    name: String,
    sector_bytes: u64,
    revolutions_per_minute: u64,
    cylinders: u64,
    cylinder_tracks: u64,
    head_switch_us: Microseconds,
    read_overhead_us: Microseconds,
    write_overhead_us: Microseconds,
    buffer_bytes: u64,
    read_fence_bytes: u64,
    write_fence_bytes: u64,
    immediate_reporting: bool,
    read_ahead: bool,
    seek: SeekTable,
    bus: BusTable,
    zones: Vec<ZoneTable>,
    regions: Option<Vec<RegionTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeekTable {
    one_cylinder_us: Option<Microseconds>,
    short_cylinders_max: u64,
    short_base_us: Microseconds,
    short_per_root_us: Microseconds,
    long_base_us: Microseconds,
    long_per_cylinder_us: Microseconds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BusTable {
    bytes_per_second: u64,
    connection_us: Microseconds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneTable {
    first_cylinder: u64,
    last_cylinder: u64,
    track_sectors: u64,
    track_skew_sectors: u64,
    cylinder_skew_sectors: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionTable {
    first: (u64, u64),
    last: (u64, u64),
}

/// Reads the description of a disk.
pub(super) fn kind_of_file(path: &Path) -> Result<DiskKind, UserError> {
    let refuse = |cause: String| {
        UserError::usage(
            format!("cannot simulate the disk of {}", path.display()),
            cause,
            "copy and change an example of docs/disks: hp97560.toml, nvme.toml, page-cache.toml \
             and analytic.toml explain every key",
        )
    };
    let bytes = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(refuse(format!("it has {bytes} bytes, more than {FILE_BYTES_MAX}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    kind_of_text(&text).map_err(refuse)
}

/// Returns the disk of a description, or the reason for which it is refused.
fn kind_of_text(text: &str) -> Result<DiskKind, String> {
    let table = DeTable::parse(text).map_err(|error| refusal(text, &error))?;
    let table = table.get_ref();
    let Some(kind) = table.get(KIND) else { return drive_of_text(text).map(DiskKind::of) };
    let word = match kind.get_ref() {
        DeValue::String(word) => word.as_ref(),
        _ => "",
    };
    let described = DISKS.iter().find(|disk| disk.kind_in_files == Some(word));
    match described {
        Some(disk) => disk_of_table(disk, table, text),
        None if word == MECHANICAL => drive_of_text(text).map(DiskKind::of),
        None => {
            let known: Vec<&str> = DISKS.iter().filter_map(|disk| disk.kind_in_files).collect();
            let (line, known) = (line(text, kind.span().start), known.join(", "));
            Err(format!(
                "line {line}: {word:?} is no kind of disk; there are {MECHANICAL}, {known}"
            ))
        }
    }
}

fn drive_of_text(text: &str) -> Result<Arc<Drive>, String> {
    let file: DiskFile = toml::from_str(text).map_err(|error| refusal(text, &error))?;
    Drive::new(file.spec()).map(Arc::new).map_err(|error| error.to_string())
}

/// Returns the reason of an error, with its line if it has one.
fn refusal(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim();
    match error.span() {
        Some(span) => format!("line {}: {message}", line(text, span.start)),
        None => message.to_owned(),
    }
}

impl DiskFile {
    fn spec(self) -> DriveSpec {
        let zones = self.zones.iter().map(|zone| Zone {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            track_sectors: zone.track_sectors,
            track_skew_sectors: zone.track_skew_sectors,
            cylinder_skew_sectors: zone.cylinder_skew_sectors,
        });
        let zones = zones.collect();
        let last = (self.cylinders.saturating_sub(1), self.cylinder_tracks.saturating_sub(1));
        let whole_disk = vec![Region { first: (0, 0), last }];
        let regions = self.regions.map_or(whole_disk, |regions| {
            let region = |table: &RegionTable| Region { first: table.first, last: table.last };
            regions.iter().map(region).collect()
        });
        DriveSpec {
            name: self.name,
            sector_bytes: self.sector_bytes,
            revolutions_per_minute: self.revolutions_per_minute,
            cylinders: self.cylinders,
            cylinder_tracks: self.cylinder_tracks,
            zones,
            regions,
            seek: SeekCurve {
                one_cylinder: self.seek.one_cylinder_us.map(|time| time.0),
                short_cylinders_max: self.seek.short_cylinders_max,
                short_base: self.seek.short_base_us.0,
                short_per_root: self.seek.short_per_root_us.0,
                long_base: self.seek.long_base_us.0,
                long_per_cylinder: self.seek.long_per_cylinder_us.0,
            },
            head_switch: self.head_switch_us.0,
            read_overhead: self.read_overhead_us.0,
            write_overhead: self.write_overhead_us.0,
            buffer_bytes: self.buffer_bytes,
            read_fence_bytes: self.read_fence_bytes,
            write_fence_bytes: self.write_fence_bytes,
            immediate_reporting: self.immediate_reporting,
            read_ahead: self.read_ahead,
            bus: BusSpec {
                bytes_per_second: self.bus.bytes_per_second,
                connection: self.bus.connection_us.0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use world_simulated::models::analytic::AnalyticSpec;
    use world_simulated::models::page_cache::PageCacheSpec;
    use world_simulated::models::ssd::SsdSpec;

    const EXAMPLE: &str = include_str!("../../../../docs/disks/hp97560.toml");
    const ZONED: &str = include_str!("../../../../docs/disks/zoned-7200.toml");

    /// Proves that the commented example is the HP 97560 to the last parameter, and that the other
    /// examples are disks.
    #[test]
    fn the_examples_are_disks() {
        assert_eq!(drive_of_text(EXAMPLE), Ok(Drive::hp97560()));
        let zoned = drive_of_text(ZONED).expect("it is a disk");
        assert!(zoned.capacity_sectors() * 512 > 100_000_000_000);
    }

    /// Proves that the examples of other kinds are the disks that have names, and that an
    /// impossible description is refused with its key.
    #[test]
    fn other_kinds() {
        let nvme = include_str!("../../../../docs/disks/nvme.toml");
        let analytic = include_str!("../../../../docs/disks/analytic.toml");
        let page_cache = include_str!("../../../../docs/disks/page-cache.toml");
        let shown = |text| kind_of_text(text).map(|kind| format!("{kind:?}"));
        assert_eq!(shown(nvme), Ok(format!("{:?}", DiskKind::of(SsdSpec::NVME))));
        assert_eq!(shown(analytic), Ok(format!("{:?}", DiskKind::of(AnalyticSpec::HP97560))));
        let p5510 = include_str!("../../../../docs/disks/nvme-p5510.toml");
        assert_eq!(shown(p5510), Ok(format!("{:?}", DiskKind::of(SsdSpec::P5510))));
        let named = DiskKind::of(PageCacheSpec::DEFAULT);
        assert_eq!(shown(page_cache), Ok(format!("{named:?}")));
        let older = page_cache.replace("\nshared_bytes_per_second = 0", "");
        assert_ne!(older, page_cache);
        assert_eq!(shown(&older), Ok(format!("{named:?}")));
        for (text, from, to, word) in [
            (page_cache, "direct = 0", "direct = 2", "direct is 2"),
            (page_cache, "dirty_bytes = 2_147", "dirty_bytes = 22_147", "above cache_bytes"),
            (
                page_cache,
                "capacity_bytes = 1_099_511_627_776",
                "capacity_bytes = 1_099_511_627_777",
                "4096",
            ),
            (nvme, "\"ssd\"", "\"sdd\"", "sdd"),
            (nvme, "channels = 8", "channels = 0", "channels is 0"),
            (nvme, "channels = 8", "chanels = 8", "chanels"),
            (nvme, "page_bytes = 16_384", "page_bytes = 16_000", "multiple of 512"),
            (nvme, "1_099_511_627_776", "1_099_511_627_000", "page_bytes, 16384"),
            (nvme, "write_buffer_bytes = 4_194_304", "write_buffer_bytes = 4", "not from 16384"),
            (nvme, "queue_depth = 64", "queue_depth = 0", "queue_depth is 0"),
            (nvme, "link_bytes_per_second = 3_500_000_000", "link_bytes_per_second = 0", "link_"),
            (analytic, "seek_least_us = 3_640", "seek_least_us = 36_400", "seek_most_us"),
            (analytic, "capacity_bytes = 1_355_304_960", "capacity_bytes = 0", "capacity_bytes"),
            (analytic, "overhead_us = 2_200", "overhead_us = -1", "line"),
            (analytic, "bytes_per_second = 2_212_495", "", "bytes_per_second"),
        ] {
            let wrong = text.replace(from, to);
            assert_ne!(wrong, text, "{from}");
            let refused = kind_of_text(&wrong).expect_err(to);
            assert!(refused.contains(word), "{refused:?} should say {word:?}");
        }
    }

    /// Proves that each slip in a description is refused with its place or its key.
    #[test]
    fn slips_are_named() {
        for (from, to, word) in [
            (
                "revolutions_per_minute = 4002",
                "revolutions_per_minute = 0",
                "revolutions_per_minute",
            ),
            ("revolutions_per_minute = 4002", "rpm = 4002", "line 17: unknown field `rpm`"),
            ("sector_bytes = 512", "sector_bytes = -512", "line 14"),
            ("last_cylinder = 1961", "last_cylinder = 1960", "cover cylinders 0 to 1961"),
            ("track_skew_sectors = 8", "track_skew_sectors = 72", "a track of it has only 72"),
            ("read_fence_bytes = 65536", "read_fence_bytes = 262144", "the buffer's 131072"),
            ("head_switch_us = 1600", "head_switch_us = -1", "-1 is not a time"),
            ("head_switch_us = 1600", "head_switch_us = nan", "NaN is not a time"),
            ("head_switch_us = 1600", "", "missing field `head_switch_us`"),
            ("first = [654, 0]", "first = [646, 0]", "region 2 is out of order"),
            ("[bus]", "[bus", "line"),
        ] {
            assert!(EXAMPLE.contains(from), "{from}");
            let error = drive_of_text(&EXAMPLE.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(word), "{to}: {error:?} should say {word:?}");
        }
        assert!(drive_of_text("").is_err());
    }

    /// Proves that a missing file is an error in three parts that names it.
    #[test]
    fn a_missing_file_is_named() {
        let error = kind_of_file(Path::new("/nowhere/disk.toml")).expect_err("there is none");
        assert!(error.error.contains("/nowhere/disk.toml") && !error.cause.is_empty());
        assert!(error.help.contains("hp97560.toml"));
    }
}
