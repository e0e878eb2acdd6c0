//! A trace as a picture for Perfetto and Chrome: a lane for each rank, with its calls and the times
//! in which it was blocked. It computed in the gaps.
//!
//! The format: "Trace Event Format", Google, 2016, the JSON object form. Timestamps are
//! microseconds with the nanoseconds as fraction.

use super::table::{Row, begun_ns, part_sizes, rows};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use trace::Trace;

/// Calls that viewers show with ease.
pub(super) const CALLS_SHOWN: u64 = 1_000_000;

/// Group of all lanes.
const PROCESS: u32 = 1;

/// Writes the file. Returns the number of calls.
pub(super) fn write(trace: &Trace, file: File) -> io::Result<u64> {
    let mut out = BufWriter::new(file);
    let header = trace.header();
    let about = json!({
        "command": header.command,
        "ranks": header.ranks,
        "mpi": header.mpi,
        "started": header.started,
        "recorded": header.recorded,
    });
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
    let command = json!({ "name": header.command.join(" ") });
    let name = json!({ "ph": "M", "name": "process_name", "pid": PROCESS, "args": command });
    write!(out, "{name}")?;
    let begun_ns = begun_ns(&trace.ranks);
    let mut calls = 0;
    for ((rank, host), trace) in (0_u32..).zip(&header.hosts).zip(&trace.ranks) {
        introduce(&mut out, rank, host)?;
        let parts = part_sizes(trace);
        for row in rows(rank, trace, &parts, begun_ns) {
            call(&mut out, &row)?;
            calls += 1;
        }
    }
    out.write_all(b"\n]}\n")?;
    out.flush()?;
    Ok(calls)
}

/// Names the lane of a rank.
fn introduce(out: &mut impl Write, rank: u32, host: &str) -> io::Result<()> {
    let arguments = [
        ("thread_name", json!({ "name": format!("rank {rank} on {host}") })),
        ("thread_sort_index", json!({ "sort_index": rank })),
    ];
    for (name, arguments) in arguments {
        // Numbers of lanes begin at 1, since some viewers join 0 with the process.
        let lane =
            json!({ "ph": "M", "name": name, "pid": PROCESS, "tid": rank + 1, "args": arguments });
        write!(out, ",\n{lane}")?;
    }
    Ok(())
}

fn call(out: &mut impl Write, row: &Row<'_>) -> io::Result<()> {
    let (thread, event) = (row.rank + 1, row.event);
    if event.blocked_ns > 0 {
        let begin = row.begin_ns.saturating_sub(event.blocked_ns);
        let (ts, dur) = (microseconds(begin), microseconds(event.blocked_ns));
        write!(
            out,
            ",\n{{\"ph\":\"X\",\"pid\":{PROCESS},\"tid\":{thread},\"ts\":{ts},\"dur\":{dur},\
             \"name\":\"blocked\"}}"
        )?;
    }
    let (ts, dur) = (microseconds(row.begin_ns), microseconds(event.took_ns));
    let (name, details) = (event.operation.name(), json!(row.details()));
    write!(
        out,
        ",\n{{\"ph\":\"X\",\"pid\":{PROCESS},\"tid\":{thread},\"ts\":{ts},\"dur\":{dur},\
         \"name\":\"{name}\",\"args\":{details}}}"
    )
}

/// Formats nanoseconds as microseconds, to the nanosecond.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}
