//! `record`: runs a program whose ranks write what they call, and makes the header of their trace.
//!
//! *Invariants:*
//! - Nothing is removed that is not a file of a trace.
//! - The exit code is that of the program, unless it succeeds and the command itself fails.

mod load;
mod notes;
mod place;

use crate::arguments::Record;
use crate::output::format::{plural, show_size};
use crate::output::present;
use crate::programs::launch::{
    CannotStart, MPI_IO, RECORDER, exit_code, export, find, library, preload, refuse_ranks,
    spawn_failed,
};
use client::{Instance, default_instance_directory};
use cluster::{JobProgram, Signals};
use interface::{DEFAULT_BLOCK, ExitCode, Strategy, UserError, parse_size};
use jiff::Timestamp;
use load::Load;
use notes::Notes;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::{Header, Recorded, RecordedInstance, StreamStart, Trace, stream_starts};

/// Variable that names the directory to the ranks.
const DIRECTORY: &str = "UNISONO_RECORD";

/// Most bytes of a trace whose events are counted at the end.
const COUNTED_BYTES_MAX: u64 = 1 << 28;

/// Runs the command. Returns its exit code.
pub(crate) fn run(arguments: &Record) -> Result<u8, UserError> {
    refuse_ranks("record", "record the whole program")?;
    let libraries = libraries(arguments)?;
    if let Err(missing) = find(&arguments.program[0], "record") {
        return Ok(not_started(&missing));
    }
    let signals = Signals::catch()?;
    let directory = place::make(&arguments.output, arguments.force)?;
    let (started, load) = (Timestamp::now(), Load::read());
    let code = match execute(arguments, &libraries, &directory, &signals) {
        Ok(code) => code,
        Err(missing) => {
            // Nothing is in it.
            let _ = std::fs::remove_dir(&directory);
            return Ok(not_started(&missing));
        }
    };
    let load = load.until(&Load::read());
    match finish(arguments, &directory, started, load) {
        Ok(line) => {
            present::note(&line);
            Ok(code)
        }
        Err(error) if code == 0 => Err(error),
        Err(error) => {
            present::note(&error.to_string());
            Ok(code)
        }
    }
}

/// Says why a program was not started, and returns the exit code for it.
fn not_started(missing: &CannotStart) -> u8 {
    present::note(&missing.error.to_string());
    missing.code
}

/// Libraries to preload.
fn libraries(arguments: &Record) -> Result<Vec<PathBuf>, UserError> {
    let mut libraries = vec![library(RECORDER, "install it with: make install")?];
    if !arguments.no_preload {
        let help = "install it with: make install   (--no-preload records programs that use no \
                    unisono files)";
        libraries.push(library(MPI_IO, help)?);
    }
    Ok(libraries)
}

/// Runs the program to its end. Returns its exit code.
fn execute(
    arguments: &Record,
    libraries: &[PathBuf],
    directory: &Path,
    signals: &Signals,
) -> Result<u8, CannotStart> {
    let name = &arguments.program[0];
    let mut command = Command::new(name);
    command.args(&arguments.program[1..]).env(DIRECTORY, directory);
    preload(&mut command, libraries);
    let names = ["LD_PRELOAD", DIRECTORY].map(str::to_owned).to_vec();
    export(&mut command, &arguments.program, names);
    let failed = |error| spawn_failed(name, "record", &error);
    let running = JobProgram::start(&mut command, signals).map_err(failed)?;
    running.wait().map(exit_code).map_err(failed)
}

/// Writes the header. Returns the line that tells what was recorded.
fn finish(
    arguments: &Record,
    directory: &Path,
    started: Timestamp,
    load: load::Shares,
) -> Result<String, UserError> {
    let notes = Notes::take(directory)?;
    let starts = stream_starts(directory)?;
    let Some(first) = starts.iter().flatten().next() else {
        let _ = std::fs::remove_dir(directory);
        return Err(nothing_recorded());
    };
    let command = arguments.program.iter().map(|word| word.to_string_lossy().into_owned());
    let header = Header {
        schema: Header::SCHEMA.to_owned(),
        command: command.collect(),
        ranks: first.ranks,
        hosts: hosts(&starts, first.ranks),
        mpi: first.mpi.clone(),
        started: started.to_string(),
        recorded: Recorded::Program,
        instance: instance(),
        processor_pressure_percent: load.processor_pressure_percent,
        steal_percent: load.steal_percent,
        not_recorded: notes.not_recorded.clone(),
    };
    header.write(directory)?;
    Ok(line(&arguments.output, directory, first.ranks, &notes))
}

fn nothing_recorded() -> UserError {
    UserError::new(
        ExitCode::Failed,
        "nothing was recorded",
        "no process of the program called MPI_Init with the recorder in it: the program does not \
         use MPI, is linked statically with MPI, or its launcher does not pass on LD_PRELOAD and \
         UNISONO_RECORD",
        "link the program dynamically with MPI, and start it by the mpiexec of its MPI library; on \
         other hosts the directory of the trace must be there, too",
    )
}

/// Host of each rank; no name for ranks that left no stream.
fn hosts(starts: &[Option<StreamStart>], ranks: u32) -> Vec<String> {
    let host = |rank: usize| starts.get(rank)?.as_ref().map(|start| start.host.clone());
    (0..ranks as usize).map(|rank| host(rank).unwrap_or_default()).collect()
}

/// The instance that the program could use, if there is one.
fn instance() -> Option<RecordedInstance> {
    let file = Instance::at(default_instance_directory()).read().ok()?;
    Some(RecordedInstance {
        servers: file.servers.len() as u32,
        disks_per_server: file.disks_per_server,
        block_bytes: parse_size(DEFAULT_BLOCK).ok()?,
        strategy: Strategy::DiskDirected.to_string(),
    })
}

/// Returns the line about a finished recording.
fn line(shown: &Path, directory: &Path, ranks: u32, notes: &Notes) -> String {
    let mut line = format!("unisono: recorded {} in {}", plural(ranks, "rank"), shown.display());
    let bytes = place::stream_bytes(directory);
    if bytes > COUNTED_BYTES_MAX {
        line += &format!(", {}", show_size(bytes));
    } else {
        match Trace::open(directory) {
            Ok(trace) => line += &counted(&trace),
            Err(error) => line += &format!(", which cannot be read: {}", error.cause),
        }
    }
    if let Some(nanoseconds) = notes.nanoseconds_per_call() {
        line += &format!(", {nanoseconds:.0} ns a call for recording");
    }
    if !notes.not_recorded.is_empty() {
        line += &format!(", NOT recorded: {}", notes.not_recorded.join(", "));
    }
    line
}

/// Events of a trace, the bytes of each, and ranks whose streams are cut.
fn counted(trace: &Trace) -> String {
    let events: usize = trace.ranks.iter().map(|rank| rank.events.len()).sum();
    let bytes: u64 = trace.bytes().iter().sum();
    let each = bytes as f64 / events.max(1) as f64;
    let mut words = format!(", {events} events of {each:.1} B");
    let cut = trace.ranks.iter().filter(|rank| rank.is_cut).count() as u32;
    if cut > 0 {
        words += &format!(", {} did not end", plural(cut, "rank"));
    }
    words
}
