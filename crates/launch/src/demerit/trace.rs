//! A trace of a disk: what was asked of it, when, and how long each request took.

use super::{csv, srt};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A trace in the order of arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Trace {
    pub(super) requests: Vec<TraceRequest>,
    /// Records that are no requests, or of another unit.
    pub(super) records_skipped: usize,
    /// What the places of requests count.
    pub(super) place_unit: &'static str,
}

/// One request of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TraceRequest {
    /// When it came to the disk's driver, from the start of the trace.
    pub(super) arrival_us: u64,
    pub(super) reads: bool,
    /// Its first sector.
    pub(super) lbn: u64,
    /// How many sectors, one at least.
    pub(super) sectors: u64,
    /// From when the disk was given it until the disk reported it complete.
    pub(super) service_us: u64,
    /// Where in the file it stands.
    pub(super) place: u64,
}

/// The largest trace that is read.
const TRACE_BYTES_MAX: u64 = 1 << 30;
/// Most sectors of one request: far beyond what any driver asks for.
pub(super) const REQUEST_SECTORS_MAX: u64 = 1 << 20;
/// The latest arrival: 2^32 seconds, which SRT cannot exceed.
pub(super) const ARRIVAL_US_MAX: u64 = 1_000_000 << 32;
/// The longest service time: 2^32 microseconds, which SRT cannot exceed.
pub(super) const SERVICE_US_MAX: u64 = 1 << 32;

impl Trace {
    /// Where a request stands in its file.
    pub(super) fn place(&self, request: &TraceRequest) -> String {
        format!("{} {}", self.place_unit, request.place)
    }
}

/// Reads a trace of a disk whose sectors have so many bytes; says in words what is wrong with it.
pub(super) fn open(path: &Path, sector_bytes: u64, unit: Option<u32>) -> Result<Trace, String> {
    // By what is read: a device says that it has no bytes, and may never end.
    let read = |file: File| {
        let mut bytes = Vec::new();
        file.take(TRACE_BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = File::open(path).and_then(read).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > TRACE_BYTES_MAX {
        return Err(format!("it has more than {TRACE_BYTES_MAX} bytes"));
    }
    parse(&bytes, sector_bytes, unit)
}

/// A trace from the contents of its file. SRT is known by the form feed that ends its header.
pub(super) fn parse(bytes: &[u8], sector_bytes: u64, unit: Option<u32>) -> Result<Trace, String> {
    let mut trace = match srt::header_end(bytes) {
        Some(end) => srt::parse(bytes, end, sector_bytes, unit)?,
        None => {
            let text = std::str::from_utf8(bytes).map_err(|error| {
                format!(
                    "byte {}: this is no text, and no form feed ends an SRT header before it",
                    error.valid_up_to()
                )
            })?;
            let trace = csv::parse(text)?;
            if let Some(unit) = unit {
                return Err(format!("unit {unit} is wanted, and only an SRT trace has units"));
            }
            trace
        }
    };
    if trace.requests.is_empty() {
        return Err(format!("it has no requests ({} other records)", trace.records_skipped));
    }
    if trace.requests.iter().all(|request| request.service_us == 0) {
        return Err("none of its requests took any time, so nothing can be compared".to_owned());
    }
    trace.requests.sort_by_key(|request| request.arrival_us);
    Ok(trace)
}
