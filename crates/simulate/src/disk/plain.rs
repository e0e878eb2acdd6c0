//! Disks without an arm, described in a file; `docs/disks/nvme.toml` and `docs/disks/analytic.toml`
//! explain every key.

use super::microseconds::Microseconds;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::RangeInclusive;
use units::{GIB, KIB, MIB};
use world_simulated::models::analytic::AnalyticSpec;
use world_simulated::models::ssd::SsdSpec;

/// The capacity of a disk, in bytes: up to a pebibyte.
const CAPACITY: RangeInclusive<u64> = MIB..=GIB << 20;
/// Bytes a second. (At a lower rate the clock of a simulation could overflow.)
const RATE: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SsdFile {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    capacity_bytes: u64,
    channels: u32,
    channel_dies: u32,
    page_bytes: u64,
    read_us: Microseconds,
    program_us: Microseconds,
    channel_bytes_per_second: u64,
    link_bytes_per_second: u64,
    overhead_us: Microseconds,
    queue_depth: u32,
    write_buffer_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyticFile {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    capacity_bytes: u64,
    overhead_us: Microseconds,
    rotation_us: Microseconds,
    seek_least_us: Microseconds,
    seek_most_us: Microseconds,
    bytes_per_second: u64,
}

impl SsdFile {
    /// Returns the disk, or the reason for which it is refused.
    pub(super) fn spec(&self) -> Result<SsdSpec, String> {
        within("channels", self.channels.into(), 1..=4096)?;
        within("channel_dies", self.channel_dies.into(), 1..=4096)?;
        within("queue_depth", self.queue_depth.into(), 1..=1 << 20)?;
        within("page_bytes", self.page_bytes, 512..=16 * MIB)?;
        within("capacity_bytes", self.capacity_bytes, CAPACITY)?;
        within("channel_bytes_per_second", self.channel_bytes_per_second, RATE)?;
        within("link_bytes_per_second", self.link_bytes_per_second, RATE)?;
        within("write_buffer_bytes", self.write_buffer_bytes, self.page_bytes..=GIB * KIB)?;
        if !self.page_bytes.is_multiple_of(512) {
            return Err(format!(
                "page_bytes is {}, not a multiple of 512, the size of a sector",
                self.page_bytes
            ));
        }
        if !self.capacity_bytes.is_multiple_of(self.page_bytes) {
            let Self { capacity_bytes, page_bytes, .. } = self;
            return Err(format!(
                "capacity_bytes is {capacity_bytes}, not a multiple of page_bytes, \
                                {page_bytes}"
            ));
        }
        Ok(SsdSpec {
            capacity_bytes: self.capacity_bytes,
            channels: self.channels,
            channel_dies: self.channel_dies,
            page_bytes: self.page_bytes,
            read: self.read_us.0,
            program: self.program_us.0,
            channel_bytes_per_second: self.channel_bytes_per_second,
            link_bytes_per_second: self.link_bytes_per_second,
            overhead: self.overhead_us.0,
            queue_depth: self.queue_depth,
            write_buffer_bytes: self.write_buffer_bytes,
        })
    }
}

impl AnalyticFile {
    /// Returns the disk, or the reason for which it is refused.
    pub(super) fn spec(&self) -> Result<AnalyticSpec, String> {
        within("capacity_bytes", self.capacity_bytes, CAPACITY)?;
        within("bytes_per_second", self.bytes_per_second, RATE)?;
        if self.seek_least_us.0 > self.seek_most_us.0 {
            return Err("seek_least_us must be no more than seek_most_us".to_owned());
        }
        Ok(AnalyticSpec {
            capacity_bytes: self.capacity_bytes,
            overhead: self.overhead_us.0,
            rotation: self.rotation_us.0,
            seek_least: self.seek_least_us.0,
            seek_most: self.seek_most_us.0,
            bytes_per_second: self.bytes_per_second,
        })
    }
}

fn within(key: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), String> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(format!("{key} is {value}, not from {} to {}", range.start(), range.end())),
    }
}
