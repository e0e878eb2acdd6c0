//! The HP C2200A, the disk of traces that HP published.

use super::drive::Drive;
use super::spec::{DriveSpec, Region, SeekCurve, Zone};
use crate::models::bus::BusSpec;
use crate::models::disk::spec::{DiskDeclaration, DiskKind};
use crate::models::{ModelInfo, ParameterValues};
use std::sync::Arc;
use units::Duration;

/// Declaration of the disk.
pub const DISK: DiskDeclaration = DiskDeclaration {
    info: ModelInfo {
        name: "hp-c2200a",
        help: "the HP C2200A on an HP-IB bus, the disk of traces that HP published",
    },
    kind_in_files: None,
    parameters: &[],
    make: |_: &ParameterValues| Ok(DiskKind::of(Drive::hp_c2200a())),
};

impl Drive {
    /// The HP C2200A, also known as HP 7937: 335 MB on an HP-IB bus, the other disk of Ruemmler and
    /// Wilkes 1994.
    ///
    /// Parameters, unless said otherwise: the header of HP's own trace of such disks,
    /// `ajw.1week.srt` (disk type "hp335h").
    pub fn hp_c2200a() -> Arc<Self> {
        let drive = Self::new(spec());
        Arc::new(drive.expect("the specification of a preset must make sense"))
    }
}

fn spec() -> DriveSpec {
    let us = Duration::from_us;
    DriveSpec {
        name: "HP C2200A".to_owned(),
        sector_bytes: 256,
        revolutions_per_minute: 4_002,
        cylinders: 1_449,
        cylinder_tracks: 8,
        zones: vec![Zone {
            first_cylinder: 0,
            last_cylinder: 1_448,
            track_sectors: 113,
            track_skew_sectors: 12,
            // The header names one skew only. 19 sectors, 2.52 ms, are the fewest that hide the
            // seek to the next cylinder. (Our choice.)
            cylinder_skew_sectors: 19,
        }],
        regions: vec![Region { first: (0, 0), last: (1_448, 7) }],
        seek: SeekCurve {
            one_cylinder: Some(us(2_500)),
            short_cylinders_max: 616,
            short_base: us(3_450),
            short_per_root: us(597),
            long_base: us(10_840),
            long_per_cylinder: us(12),
        },
        head_switch: us(1_000),
        read_overhead: us(1_100),
        // The header has one overhead for both. Ruemmler and Wilkes, as we recall them, have
        // 5.1 ms for writes, a buffer of 32 KB and a read fence of 8 KB.
        write_overhead: us(1_100),
        buffer_bytes: 32 * 1_024,
        read_fence_bytes: 8 * 1_024,
        write_fence_bytes: 32 * 1_024,
        immediate_reporting: false,
        // "readchar=oncrossing" states how a track is read and nothing about read-ahead, which
        // Ruemmler and Wilkes describe for the HP 97560 only.
        read_ahead: false,
        bus: BusSpec::HP_IB,
    }
}
