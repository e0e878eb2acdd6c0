//! The HP 97560, the disk of the disk-directed I/O papers.

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
        name: "hp97560",
        help: "the HP 97560 of the papers on disk-directed I/O, on a SCSI bus",
    },
    kind_in_files: None,
    parameters: &[],
    make: |_: &ParameterValues| Ok(DiskKind::of(Drive::hp97560())),
};

impl Drive {
    /// The HP 97560: 1.3 GB of 1991, the disk of the disk-directed I/O papers.
    ///
    /// Parameters, unless said otherwise: C. Ruemmler and J. Wilkes, "An introduction to disk drive
    /// modeling", IEEE Computer 27(3), 1994, as restated in the disk model of the OMNeT++ file
    /// system simulator FSS.
    pub fn hp97560() -> Arc<Self> {
        let drive = Self::new(spec());
        Arc::new(drive.expect("the specification of a preset must make sense"))
    }
}

fn spec() -> DriveSpec {
    let us = Duration::from_us;
    DriveSpec {
        name: "HP 97560".to_owned(),
        sector_bytes: 512,
        revolutions_per_minute: 4_002,
        cylinders: 1_962,
        cylinder_tracks: 19,
        // The cylinder skew replaces the track skew: so 1368 sectors take 18 * 80 + 90 = 1530
        // ticks, which is 33.5 MB/s on 16 disks, the maximum that D. Kotz, ACM TOCS 15(1),
        // 1997, section 6.1, reports.
        zones: vec![Zone {
            first_cylinder: 0,
            last_cylinder: 1_961,
            track_sectors: 72,
            track_skew_sectors: 8,
            cylinder_skew_sectors: 18,
        }],
        // Tracks in between are spare: the disk replaces whole bad tracks. From the HP 97560 entry
        // of the HRaid simulator's table of disks. The sum, 2,647,080 sectors, agrees with the 1355
        // MB of the TH99 drive list and with the 1935 cylinders of the 4.4BSD label.
        regions: vec![
            Region { first: (1, 4), last: (646, 3) },
            Region { first: (654, 0), last: (1_298, 18) },
            Region { first: (1_308, 0), last: (1_952, 18) },
        ],
        seek: SeekCurve {
            one_cylinder: None,
            short_cylinders_max: 383,
            short_base: us(3_240),
            short_per_root: us(400),
            long_base: us(8_000),
            long_per_cylinder: us(8),
        },
        head_switch: us(1_600),
        // Not hidden behind the seek of a read: with 1.1 ms the random reads of TR94-226 would
        // be 4.6 and 6.7 MB/s and not the published 4.4 and 6.2.
        read_overhead: us(2_200),
        write_overhead: us(2_200),
        // TH99 drive list, "128 KB static RAM".
        buffer_bytes: 128 * 1_024,
        // HRaid's table of disks has 64 KB for both. TR94-226 implies that writes stop at the fence
        // and not at the whole buffer: its contiguous writes, 34.8 MB/s, end 26 ms before the
        // medium can have the data, and 26 ms are 7 blocks: the fence less the block that waits to
        // enter.
        read_fence_bytes: 64 * 1_024,
        write_fence_bytes: 64 * 1_024,
        immediate_reporting: true,
        read_ahead: true,
        bus: BusSpec::SCSI_2,
    }
}
