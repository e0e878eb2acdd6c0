//! Reads a trace from its file, in either format.

use super::trace::Trace;
use super::{csv, srt};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest trace that is read.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Reads a trace of a disk with sectors of `sector_bytes` bytes. The error describes in words the
/// fault of the trace.
pub(super) fn open(path: &Path, sector_bytes: u64, unit: Option<u32>) -> Result<Trace, String> {
    // The limit applies to the bytes read: a device reports a size of zero, and may never end.
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

/// Parses the contents of a trace file. SRT is recognised by the form feed that ends its header.
pub(super) fn parse(bytes: &[u8], sector_bytes: u64, unit: Option<u32>) -> Result<Trace, String> {
    let mut trace = match srt::header_end(bytes) {
        Some(end) => srt::parse(bytes, end, sector_bytes, unit)?,
        None => {
            let text = std::str::from_utf8(bytes).map_err(|error| {
                format!(
                    "byte {}: this is not text, and no form feed ends an SRT header before it",
                    error.valid_up_to()
                )
            })?;
            let trace = csv::parse(text)?;
            if let Some(unit) = unit {
                return Err(format!("unit {unit} was requested, and only an SRT trace has units"));
            }
            trace
        }
    };
    if trace.requests.is_empty() {
        return Err(format!("it has no requests, only {} other records", trace.records_skipped));
    }
    if trace.requests.iter().all(|request| request.service_us == 0) {
        return Err(
            "all its requests have a service time of 0, so there is nothing to compare".to_owned()
        );
    }
    trace.requests.sort_by_key(|request| request.arrival_us);
    Ok(trace)
}
