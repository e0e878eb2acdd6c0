//! Traces as text: a line for each request, `arrival_us,op,lbn,sectors,service_us`.
//!
//! `op` is R or W; `lbn` and `sectors` count sectors of the disk; times are whole microseconds. A
//! header line with these words, empty lines, and lines that begin with `#` are skipped.

use super::trace::{ARRIVAL_US_MAX, REQUEST_SECTORS_MAX, SERVICE_US_MAX, Trace, TraceRequest};

const COLUMNS: [&str; 5] = ["arrival_us", "op", "lbn", "sectors", "service_us"];

/// Reads a trace; an error names the wrong line.
pub(super) fn parse(text: &str) -> Result<Trace, String> {
    let mut requests = Vec::new();
    let mut may_be_header = true;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if std::mem::take(&mut may_be_header) && fields == COLUMNS {
            continue;
        }
        let request = request(&fields, index as u64 + 1);
        requests.push(request.map_err(|cause| format!("line {}: {cause}", index + 1))?);
    }
    Ok(Trace { requests, records_skipped: 0, place_unit: "line" })
}

fn request(fields: &[&str], place: u64) -> Result<TraceRequest, String> {
    let &[arrival_us, op, lbn, sectors, service_us] = fields else {
        return Err(format!("there are {} fields, not {}", fields.len(), COLUMNS.join(",")));
    };
    let reads = match op {
        "R" | "r" => true,
        "W" | "w" => false,
        _ => return Err(format!("op is {op:?}, not R or W")),
    };
    Ok(TraceRequest {
        arrival_us: number("arrival_us", arrival_us, 0, ARRIVAL_US_MAX)?,
        reads,
        lbn: number("lbn", lbn, 0, u64::MAX)?,
        sectors: number("sectors", sectors, 1, REQUEST_SECTORS_MAX)?,
        service_us: number("service_us", service_us, 0, SERVICE_US_MAX)?,
        place,
    })
}

fn number(what: &str, word: &str, least: u64, most: u64) -> Result<u64, String> {
    match word.parse::<u64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("{what} is {word:?}, not a whole number from {least} to {most}")),
    }
}
