//! Writes traces of programs that were made, not recorded.

use crate::event::{Event, FileNumber, Operation, RankTrace};
use crate::format::Writer;
use crate::header::{Header, Recorded};
use interface::UserError;
use policy::OwnPart;
use std::path::Path;

/// Most events of all ranks, which are made in memory.
const MADE_EVENTS_MAX: u64 = 1 << 24;

/// Refuses a program with too many events.
pub(crate) fn check_events(what: &str, events: u64) -> Result<(), UserError> {
    if events > MADE_EVENTS_MAX {
        return Err(UserError::usage(
            format!("cannot make the trace of {what}"),
            format!("it would have {events} events, over the limit of {MADE_EVENTS_MAX}"),
            "give fewer transfers or ranks",
        ));
    }
    Ok(())
}

/// Returns a call after a computation.
pub(crate) fn event(computed_ns: u64, operation: Operation) -> Event {
    Event { computed_ns, blocked_ns: 0, took_ns: 0, depends_on_timing: false, operation }
}

/// Returns the trace of one of `ranks` ranks that have files open together: they close them after
/// `events`, and end.
pub(crate) fn rank_trace(
    ranks: u32,
    names: &[&str],
    mut events: Vec<Event>,
    parts: Vec<OwnPart>,
) -> RankTrace {
    let files = (0..names.len() as u32).map(FileNumber);
    events.extend(files.map(|file| event(0, Operation::Close { file })));
    events.push(event(0, Operation::End));
    RankTrace {
        events,
        communicators: vec![(0..ranks).collect()],
        files: names.iter().map(|name| (*name).to_owned()).collect(),
        parts,
        is_cut: false,
    }
}

/// Writes the trace of a program as a new directory. `kind` stands for the host, `command` for the
/// command that would have been recorded.
pub(crate) fn write_made(
    directory: &Path,
    kind: &str,
    command: String,
    traces: &[RankTrace],
) -> Result<(), UserError> {
    std::fs::create_dir(directory).map_err(|error| {
        UserError::usage(
            format!("cannot make the trace {}", directory.display()),
            error.to_string(),
            "name a directory that does not exist, in one that you may write to",
        )
    })?;
    let ranks = traces.len() as u32;
    for (rank, trace) in (0..).zip(traces) {
        write_rank(directory, (rank, ranks), kind, trace)?;
    }
    header(kind, command, ranks).write(directory)
}

fn header(kind: &str, command: String, ranks: u32) -> Header {
    Header {
        schema: Header::SCHEMA.to_owned(),
        command: vec![command],
        ranks,
        hosts: vec![kind.to_owned(); ranks as usize],
        mpi: "none".to_owned(),
        started: String::new(),
        recorded: Recorded::Pattern,
        instance: None,
        processor_pressure_percent: None,
        steal_percent: None,
        not_recorded: Vec::new(),
    }
}

/// Writes the stream of one rank.
fn write_rank(
    directory: &Path,
    place: (u32, u32),
    kind: &str,
    trace: &RankTrace,
) -> Result<(), UserError> {
    let mut writer = Writer::create(directory, place, kind, "none")?;
    for members in trace.communicators.iter().skip(1) {
        writer.communicator(members)?;
    }
    for name in &trace.files {
        writer.file(name)?;
    }
    let placed = trace.parts.iter().map(|part| writer.part(part));
    let placed = placed.collect::<Result<Vec<_>, _>>()?;
    for event in &trace.events {
        let mut event = event.clone();
        if let Operation::Transfer { part, shift, .. } = &mut event.operation
            && let Some(found) = part.and_then(|part| placed[part.0 as usize])
        {
            *part = Some(found.part);
            *shift += found.shift;
        }
        writer.write(&event)?;
    }
    writer.close()
}
