//! `run`: servers for the length of one program, whose files are then checked and copied out.
//!
//! ```text
//!  check arguments ─▶ start servers ─▶ stage in ─▶ program ─▶ check, stage out ─▶ stop ─▶ report
//!                                                     │
//!                                      Ctrl-C, SIGTERM, end of the job's time
//! ```
//!
//! *Invariants:*
//! - Nothing is started when the arguments, the library or the program are not there.
//! - Data is removed only when every file was copied out, or the user said so.
//! - The exit code is that of the program, unless it succeeds and the command itself fails.

mod compare;
mod deadline;
mod outcome;
mod processor;
mod program;
mod report;
mod screen;
mod staging;
mod what_if;

use crate::arguments::Run;
use crate::instances::mounts::MountOfRun;
use crate::instances::servers;
use crate::output::format::plural;
use crate::output::present;
use crate::programs::launch::{CannotStart, exit_code, find, refuse_ranks, spawn_failed};
use client::{Direct, Instance, ProtectedBytes, ServerState, Session};
use cluster::{
    HostOptions, JobInstance, JobProgram, LostData, Program, ServerOptions, Signals, Target,
};
use compare::{Compare, Compared, PlainRun};
use deadline::{Deadline, end_of_run};
use interface::{ExitCode, UserError, size_word};
use measure::{PlainRates, plain_rates};
use outcome::{Ending, Outcome, PlaceOfFiles};
use processor::{ProcessorTimes, ServersUse};
use report::Report;
use staging::{CopyOut, Files, StagedOut};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use what_if::WhatIf;

/// Most bytes by which the rate of staging out is measured.
const PROBE_BYTES: u64 = 256 << 20;

/// Most bytes by which the limit is measured.
const LIMIT_BYTES_MAX: u64 = 1 << 30;

/// Time limit of a server on another host to start, and again to be ready, in seconds.
const START_TIMEOUT_S: u32 = 60;

/// Most time that servers get to write back what the program wrote last, before the report says how
/// much is protected.
const WRITE_BACK_MAX: Duration = Duration::from_secs(2);

/// Pause before they are asked again.
const WRITE_BACK_PAUSE: Duration = Duration::from_millis(20);

/// Exit code after a signal that ended everything.
const INTERRUPTED: u8 = 130;

/// Runs the command. Returns its exit code.
pub(crate) fn run(arguments: &Run) -> Result<u8, UserError> {
    arguments.root.check()?;
    servers::check_protection(arguments.protect, arguments.servers)?;
    refuse_ranks("run", "start servers of its own")?;
    let preload = program::preload(arguments)?;
    if let Err(missing) = find(&arguments.program[0], "run") {
        return Ok(not_started(&missing));
    }
    arguments.mount.as_deref().map_or(Ok(()), mount::check_directory)?;
    let copy_out = CopyOut::of(arguments)?;
    let copies = copy_out.target.prepare(arguments, &copy_out.left_out)?;
    let compare = Compare::of(arguments, preload.as_ref())?;
    let deadline = deadline(arguments, copies.as_deref())?;
    let signals = Signals::catch()?;
    let before = compare.as_ref().map(|compare| compare.run(&signals, "before")).transpose()?;
    if before.is_some() && signals.forwarded() > 0 {
        present::note("unisono: interrupted before the run; nothing was kept");
        return Ok(INTERRUPTED);
    }
    let mut job = start(arguments)?;
    servers::protect(&Session::new(job.instance().clone()), arguments.protect)?;
    let (files, _) = staging::stage_in(job.instance(), &arguments.stage_in)?;
    tell_start(&job, files);
    let mounted = arguments.mount.as_ref();
    let mounted = mounted.map(|it| MountOfRun::start(job.instance(), it)).transpose()?;
    job.keep_directory(true);
    let before_program = ProcessorTimes::of(job.instance());
    let place = (preload.as_ref(), mounted.as_ref().map(MountOfRun::directory));
    let ended = execute(arguments, place, &job, &signals, deadline.as_ref());
    drop(mounted);
    let ending = match ended {
        Ok(ending) => ending,
        Err(missing) => {
            job.keep_directory(false);
            return Ok(not_started(&missing));
        }
    };
    let again = start_command(arguments, &job);
    let message = format!("unisono: interrupted; the data of the run is kept: {again}");
    if signals.forwarded() > 0 {
        // Whoever interrupts a program may kill this command, too, before the files are copied.
        present::note(&format!("unisono: interrupted; until its end, the data is kept: {again}"));
    }
    signals.stop_on_signal(job.instance(), message);
    let mut outcome = finish(arguments, &mut job, ending, &copy_out, &again);
    let (file, seconds) = (&outcome.file, outcome.ending.seconds);
    let used = ServersUse::between(file, &before_program, &outcome.servers, seconds);
    outcome.processor = used;
    remark(&mut outcome, &signals, &copy_out.target);
    if let (Some(compare), Some(before)) = (&compare, before) {
        compare_with(&mut outcome, before, compare, &signals);
    }
    show(&outcome)
}

/// Runs the program on plain files again, if both runs before succeeded.
fn compare_with(
    outcome: &mut Outcome<'_>,
    before: PlainRun,
    compare: &Compare<'_>,
    signals: &Signals,
) {
    if outcome.ending.code != 0 || before.exit_code != 0 || signals.forwarded() > 0 {
        let codes =
            format!("{} without Unisono, {} with it", before.exit_code, outcome.ending.code);
        outcome.notes.push(format!("no comparison: the program ended with exit code {codes}"));
        return;
    }
    match compare.run(signals, "after") {
        Ok(after) => outcome.compared = Some(Compared { before, after }),
        Err(error) => outcome.notes.push(format!("no comparison: {}", error.cause)),
    }
}

/// Says why a program was not started, and returns the exit code for it.
fn not_started(missing: &CannotStart) -> u8 {
    present::note(&missing.error.to_string());
    missing.code
}

/// End of the time for the run. The rate of copying is measured only if there is one.
fn deadline(arguments: &Run, copies: Option<&Path>) -> Result<Option<Deadline>, UserError> {
    let Some(end) = end_of_run(arguments.until.as_deref())? else { return Ok(None) };
    let rate = match copies {
        Some(directory) => plain_rates(directory, PROBE_BYTES)?.write_mib_s * f64::from(1 << 20),
        // Nothing is copied.
        None => f64::MAX,
    };
    Ok(Some(Deadline::new(end, rate)))
}

/// Starts the servers, where the job runs.
fn start(arguments: &Run) -> Result<JobInstance, UserError> {
    let program = Program::current()?;
    let direct = if arguments.direct { Direct::All } else { Direct::None };
    match servers::target(&arguments.hosts, false)? {
        Target::Here => {
            let servers = arguments.servers.unwrap_or(servers::SERVERS);
            let options = ServerOptions {
                cache_bytes: arguments.cache,
                direct,
                memory_bytes: arguments.memory,
                cores: arguments.server_cores.clone(),
                wire: arguments.wire,
                ..ServerOptions::default()
            };
            servers::note_unused_wire(arguments.wire);
            let parent = std::env::temp_dir();
            JobInstance::start_here(&program, servers, &arguments.data, &parent, &options)
        }
        Target::Hosts(plan) => {
            let options = HostOptions {
                lost_data: LostData::Refuse,
                cache_bytes: arguments.cache,
                dirty_percent: client::DIRTY_PERCENT,
                disk_timeout_s: client::DISK_TIMEOUT_S,
                direct,
                memory_bytes: arguments.memory,
                cores: arguments.server_cores.clone(),
                wire: arguments.wire,
                outlasts_sigterm: true,
                allow_root: arguments.root.allow_root,
                start_timeout_s: START_TIMEOUT_S,
                remote_program: None,
            };
            // The processes of the program read the instance on each host.
            let (data, parent) = (&arguments.data, Path::new("."));
            JobInstance::start_on_hosts(&program, arguments.servers, &plan, data, parent, options)
        }
    }
}

fn tell_start(job: &JobInstance, staged_in: u64) {
    let servers = job.file().servers.len() as u32;
    let (run, directory) = (plural(servers, "server"), job.instance().directory().display());
    let staged = match staged_in {
        0 => String::new(),
        files => format!(", {} staged in", plural(files as u32, "file")),
    };
    present::note(&format!("unisono: {run}, instance {directory}{staged}"));
}

/// Runs the program to its end.
fn execute(
    arguments: &Run,
    (preload, mounted): (Option<&PathBuf>, Option<&Path>),
    job: &JobInstance,
    signals: &Signals,
    deadline: Option<&Deadline>,
) -> Result<Ending, CannotStart> {
    let (start, name) = (Instant::now(), &arguments.program[0]);
    let mut command = program::command(arguments, preload, job.instance());
    command.envs(mounted.map(|directory| ("UNISONO_MOUNT", directory)));
    let started = JobProgram::start(&mut command, signals);
    let running = started.map_err(|error| spawn_failed(name, "run", &error))?;
    let bytes = || Files::list(job.instance()).map_or(0, |files| files.bytes);
    let was_short = deadline.is_some_and(|deadline| deadline.wait(&running, bytes));
    let status = running.wait().map_err(|error| spawn_failed(name, "run", &error))?;
    let signal = status.signal();
    let seconds = start.elapsed().as_secs_f64();
    Ok(Ending { code: exit_code(status), signal, seconds, was_short })
}

/// Command that starts servers on the data of the run again.
fn start_command(arguments: &Run, job: &JobInstance) -> String {
    let servers = job.file().servers.len();
    if arguments.data.is_empty() {
        let directory = job.instance().directory().display();
        let memory = arguments.memory.map(|bytes| format!("--memory {} ", size_word(bytes)));
        let memory = memory.unwrap_or_default();
        return format!("unisono start {memory}--servers {servers} --instance {directory}");
    }
    let data = arguments.data.iter().map(|path| format!(" --data {}", path.display()));
    format!("unisono start --servers {servers}{}", data.collect::<String>())
}

/// Reads the report, checks and copies the files, and stops the servers.
fn finish<'a>(
    arguments: &'a Run,
    job: &mut JobInstance,
    ending: Ending,
    copy_out: &CopyOut,
    again: &str,
) -> Outcome<'a> {
    let (instance, file) = (job.instance().clone(), job.file().clone());
    let mut errors = Vec::new();
    let mut notes = Vec::new();
    let report = Report::read(&instance, program::REPORT).unwrap_or_else(|error| {
        notes.push(format!("no report: {}", error.cause));
        Report::default()
    });
    let (servers, protection) = states_after(&instance);
    let files = Files::after(&instance, ending.code != 0).unwrap_or_else(|error| {
        errors.push(error);
        Files::default()
    });
    let limits = limits(arguments, job, &report);
    let is_readable = errors.is_empty();
    let data = || PlaceOfFiles::Data(again.to_owned());
    let (checked, place) = match settle(arguments, job, &files, copy_out) {
        Ok(place) if is_readable => (Ok(()), place),
        Ok(_) => (Ok(()), data()),
        Err(error) => {
            let checked = check_after(&error, job, &files);
            let copies = !matches!(copy_out.target, staging::Target::Nowhere);
            errors.push(kept(error, copies, again));
            (checked, data())
        }
    };
    let is_in_place = matches!(place, PlaceOfFiles::Copied(..) | PlaceOfFiles::Discarded);
    let is_safe = errors.is_empty() && (is_in_place || matches!(place, PlaceOfFiles::None));
    if is_safe && !arguments.keep && !job.is_here() {
        job.discard();
    }
    let stopped = job.stop();
    errors.extend(stopped.clone().err());
    let is_lost_otherwise = !is_safe && arguments.data.is_empty();
    let is_needed = arguments.keep || stopped.is_err() || is_lost_otherwise;
    job.keep_directory(is_needed);
    if arguments.keep {
        notes.push(format!("kept: {again}"));
    }
    let what_if = WhatIf::noted(&arguments.program, &mut notes);
    let instance = instance.directory().to_owned();
    let error = errors.into_iter().next();
    Outcome {
        arguments,
        instance,
        file,
        ending,
        report,
        servers,
        protection,
        limits,
        files,
        here: staging::working_directory(),
        checked,
        place,
        stopped,
        error,
        notes,
        what_if,
        compared: None,
        processor: None,
    }
}

/// Returns the states of the servers after the program. With the share of the files that is
/// protected once servers have written back what the program wrote last, or after a time, if they
/// have not.
fn states_after(instance: &Instance) -> (Vec<ServerState>, Option<ProtectedBytes>) {
    let session = Session::new(instance.clone());
    let servers = session.status().unwrap_or_default();
    let ends = Instant::now() + WRITE_BACK_MAX;
    loop {
        let protection = session.protection(&servers).unwrap_or_default();
        let is_settled = protection.is_none_or(ProtectedBytes::is_whole);
        if is_settled || Instant::now() >= ends {
            return (servers, protection);
        }
        thread::sleep(WRITE_BACK_PAUSE);
    }
}

/// Checks the files after the failure of a copy, unless it was a failed check.
fn check_after(error: &UserError, job: &JobInstance, files: &Files) -> Result<(), UserError> {
    match error.code {
        ExitCode::DataCheck => Err(error.clone()),
        // What could not be copied may be whole.
        _ => check(job, files),
    }
}

/// Has the servers compare every block of the files with its checksum.
fn check(job: &JobInstance, files: &Files) -> Result<(), UserError> {
    let session = Session::new(job.instance().clone());
    session.check_files(files.names.iter().map(String::as_str))
}

/// Checks every file, and copies those that are to be copied.
fn settle(
    arguments: &Run,
    job: &JobInstance,
    files: &Files,
    copy_out: &CopyOut,
) -> Result<PlaceOfFiles, UserError> {
    let session = Session::new(job.instance().clone());
    let names = files.names.iter().map(String::as_str);
    let CopyOut { target, left_out } = copy_out;
    match target {
        staging::Target::Nowhere if arguments.discard => Ok(PlaceOfFiles::Discarded),
        staging::Target::Nowhere => {
            check(job, files)?;
            Ok(PlaceOfFiles::Data(start_command(arguments, job)))
        }
        staging::Target::New if files.names.is_empty() => Ok(PlaceOfFiles::None),
        target => {
            // The copy checks what it copies.
            let left: Vec<&str> = names.filter(|name| left_out.has(name)).collect();
            session.check_files(left.iter().copied())?;
            let copied: StagedOut = staging::stage_out(job.instance(), target, left_out)?;
            Ok(PlaceOfFiles::Copied(copied, left.len()))
        }
    }
}

/// Error after which the data is kept: of the check or, with `copies`, also of the copy out.
fn kept(error: UserError, copies: bool, again: &str) -> UserError {
    if error.code == ExitCode::DataCheck || !copies {
        return UserError { help: format!("the data is kept: {again}"), ..error };
    }
    UserError::new(
        ExitCode::NotStagedOut,
        "not all files are staged out",
        format!("{}: {}", error.error, error.cause),
        format!("the data is kept: {again}, then unisono cp -r unisono:// DIR"),
    )
}

/// Rates of a plain file in the first data directory, if the servers are here and moved anything.
fn limits(arguments: &Run, job: &JobInstance, report: &Report) -> Option<PlainRates> {
    let bytes = report.bytes("write").max(report.bytes("read"));
    let directory: Option<&PathBuf> = job.file().servers.first()?.data.first();
    if arguments.no_limit || bytes == 0 || !job.is_here() {
        return None;
    }
    plain_rates(directory?, bytes.min(LIMIT_BYTES_MAX)).ok()
}

/// Adds remarks about how the run ended.
fn remark(outcome: &mut Outcome<'_>, signals: &Signals, target: &staging::Target) {
    let mut notes = Vec::new();
    if outcome.ending.was_short {
        notes.push("the time of the job ran short: the program was asked to end".to_owned());
    }
    if signals.forwarded() > 0 {
        notes.push("the run was interrupted: the signal went to the program".to_owned());
    }
    if matches!((target, &outcome.place), (staging::Target::New, PlaceOfFiles::Copied(..))) {
        notes.push("a new directory, because --stage-out DIR was not given".to_owned());
    }
    if outcome.report.unreadable > 0 {
        notes.push(format!("{} report lines could not be read", outcome.report.unreadable));
    }
    notes.append(&mut outcome.notes);
    outcome.notes = notes;
}

/// Prints the report, and the error if there is one. Returns the exit code.
fn show(outcome: &Outcome<'_>) -> Result<u8, UserError> {
    if outcome.arguments.json {
        present::json(&outcome.json())?;
    } else {
        present::lines(screen::lines(outcome))?;
    }
    if let Some(error) = &outcome.error {
        present::note(&error.to_string());
    }
    Ok(outcome.code())
}
