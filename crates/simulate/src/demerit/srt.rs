//! HP's traces of disks of 1992: the SRT format.
//!
//! An ASCII header ends with a form feed. Records of big-endian 32-bit words follow:
//!
//! ```text
//! size id sec usec start stop nbytes sectno devno drivertype cylno flags info [queuelen]
//! [susflags]
//! ```
//!
//! `size` is the bytes of the record, `id` its version (high half) and type (low half). `sec` and
//! `usec` are when the request came to the driver, from the start of the trace; `start` and `stop`
//! are microseconds after that. `queuelen` is in version 4, `susflags` in records of type
//! SUSPECTIO. Records of other types are passed over. Source: the reader of HP traces of DiskSim.

use super::trace::{REQUEST_SECTORS_MAX, Trace, TraceRequest};
use std::collections::BTreeSet;

/// End of the header.
const FORM_FEED: u8 = 0x0c;
/// The longest header.
const HEADER_BYTES_MAX: usize = 1 << 16;
/// The longest record. Known records have 60 bytes at most.
const RECORD_BYTES_MAX: usize = 1 << 16;
/// The type of an ordinary request.
const SHORT_IO: u32 = 1;
/// The type of a suspect request (SUSPECTIO).
const SUSPECT_IO: u32 = 4;
/// Set in `flags` of a read.
const FLAG_READ: u32 = 1;
/// Words of a record of version 1 to 3.
const WORDS: usize = 13;

/// Returns the offset of the first record, if this is a trace in SRT.
pub(super) fn header_end(bytes: &[u8]) -> Option<usize> {
    let header = &bytes[..bytes.len().min(HEADER_BYTES_MAX)];
    let end = header.iter().position(|byte| *byte == FORM_FEED)?;
    header[..end].is_ascii().then_some(end + 1)
}

/// Reads the records from `first` on. An error names the byte at which it was found.
pub(super) fn parse(
    bytes: &[u8],
    first: usize,
    sector_bytes: u64,
    unit: Option<u32>,
) -> Result<Trace, String> {
    let mut trace = Trace { requests: Vec::new(), records_skipped: 0, place_unit: "byte" };
    let mut units = BTreeSet::new();
    let mut at = first;
    while at < bytes.len() {
        let wrong = |cause: String| format!("byte {at}: {cause}");
        let record = record(&bytes[at..]).map_err(wrong)?;
        let found = request(record, at as u64, sector_bytes).map_err(wrong)?;
        at += record.len();
        match found {
            Some((of_unit, request)) if unit.is_none_or(|unit| unit == of_unit) => {
                units.insert(of_unit);
                trace.requests.push(request);
            }
            _ => trace.records_skipped += 1,
        }
    }
    if units.len() > 1 {
        let list: Vec<String> = units.iter().map(u32::to_string).collect();
        return Err(format!(
            "it has requests to several disks, units {}; choose one with --unit",
            list.join(", ")
        ));
    }
    Ok(trace)
}

/// The record at the start of `rest`, which is not empty.
fn record(rest: &[u8]) -> Result<&[u8], String> {
    let Some(size) = word(rest, 0) else {
        return Err(format!("{} bytes are left, too few for a record", rest.len()));
    };
    let size = size as usize;
    if !(8..=RECORD_BYTES_MAX).contains(&size) {
        return Err(format!("a record of {size} bytes, not 8 to {RECORD_BYTES_MAX}"));
    }
    rest.get(..size).ok_or_else(|| {
        format!("a record of {size} bytes, but the file ends after {} of them", rest.len())
    })
}

/// The request that a record is, with its unit; none when it is something else.
fn request(
    record: &[u8],
    place: u64,
    sector_bytes: u64,
) -> Result<Option<(u32, TraceRequest)>, String> {
    let at = |index: usize| word(record, index).unwrap_or_default();
    let (version, kind) = (at(1) >> 16, at(1) & 0xffff);
    if kind != SHORT_IO && kind != SUSPECT_IO {
        return Ok(None);
    }
    if !(1..=4).contains(&version) {
        return Err(format!("a request of version {version}, not 1 to 4"));
    }
    let words = WORDS + usize::from(version == 4) + usize::from(kind == SUSPECT_IO);
    if record.len() < words * 4 {
        let bytes = record.len();
        return Err(format!("a request of version {version} in {bytes} bytes, not {}", words * 4));
    }
    let [sec, usec, start, stop, nbytes, sectno, devno] = [2, 3, 4, 5, 6, 7, 8].map(at);
    if usec >= 1_000_000 {
        return Err(format!(
            "its arrival is {sec} s and {usec} us, and the microseconds exceed a \
                            second"
        ));
    }
    if stop < start {
        return Err(format!("it ends {stop} us after its arrival, before it starts at {start} us"));
    }
    let sectors = u64::from(nbytes).div_ceil(sector_bytes);
    if sectors == 0 || sectors > REQUEST_SECTORS_MAX {
        return Err(format!(
            "a request for {nbytes} bytes, not 1 to {} sectors of {sector_bytes}",
            REQUEST_SECTORS_MAX
        ));
    }
    let request = TraceRequest {
        arrival_us: u64::from(sec) * 1_000_000 + u64::from(usec),
        reads: at(11) & FLAG_READ != 0,
        lbn: u64::from(sectno),
        sectors,
        service_us: u64::from(stop - start),
        place,
    };
    Ok(Some((devno >> 8 & 0xff, request)))
}

/// Word number `index` of some bytes.
fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..index * 4 + 4)?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}
