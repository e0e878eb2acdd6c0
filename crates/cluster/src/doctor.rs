//! Checks that this machine, and an instance on it, can work.

use crate::hosts::HostPlan;
use crate::instance::lock;
use crate::leftovers::leftovers;
use crate::process::Program;
use crate::start::ServerOptions;
use crate::temporary::TemporaryInstance;
use client::{Instance, Place, Session};
use interface::{ExitCode, UserError, size_word};
use rustix::process::{Resource, getrlimit};
use std::path::Path;
use std::time::Instant;
use units::{GIB, MIB};

/// Result of one check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Name of the check.
    pub what: &'static str,
    /// Finding, or the error found.
    pub found: Result<String, UserError>,
}

/// Size of the file that the probe copies in and out, in bytes.
const PROBE_BYTES: usize = 24 * MIB as usize + 4321;

/// Number of servers of the instance that the probe starts.
const PROBE_SERVERS: u32 = 2;

/// Minimum number of file descriptors, for a server with many clients and files.
const DESCRIPTORS_MIN: u64 = 1024;

/// Runs all checks, one after the other; `tell` receives each result at once. The servers of the
/// probe keep their data below `parent` (default: the system's temporary directory) and are removed
/// at the end. With `hosts`, also checks that servers can be started there.
pub fn doctor(
    program: &Program,
    instance: &Instance,
    parent: Option<&Path>,
    hosts: Option<&HostPlan>,
    tell: &mut dyn FnMut(&Finding),
) {
    let directory = parent.map_or_else(std::env::temp_dir, Path::to_owned);
    let mut check = |what, found| tell(&Finding { what, found });
    check("memory", memory());
    check("descriptors", descriptors());
    check("space", space(&directory));
    check("servers and files", probe(program, parent));
    if let Some(hosts) = hosts {
        check("launcher", hosts.probe_launcher());
        check("program on hosts", hosts.probe_program(program));
    }
    check("instance", state_of(instance));
}

fn memory() -> Result<String, UserError> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    let Some(free) = words.and_then(|word| word.parse::<u64>().ok()).map(|kib| kib << 10) else {
        return Ok("unknown: this system does not report it".to_owned());
    };
    let shown = format!("{} available", size_word(free / MIB * MIB));
    match free >= GIB {
        true => Ok(shown),
        false => Err(UserError::new(
            ExitCode::Failed,
            "there is too little memory",
            format!(
                "{shown}; a server takes 64 MiB for its cache, and a client takes the size of \
                     its transfers"
            ),
            "end other programs, or start servers with a smaller --cache",
        )),
    }
}

fn descriptors() -> Result<String, UserError> {
    // Servers raise the soft limit to the hard one.
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    match limit >= DESCRIPTORS_MIN {
        true => Ok(format!("a process may have {limit} files open")),
        false => Err(UserError::new(
            ExitCode::Failed,
            "a process may have too few files open",
            format!("the limit is {limit}, and every server needs one more for each client"),
            format!("raise it in the shell that starts the servers: ulimit -n {DESCRIPTORS_MIN}"),
        )),
    }
}

fn space(directory: &Path) -> Result<String, UserError> {
    let what = format!("cannot use {}", directory.display());
    let found = rustix::fs::statvfs(directory).map_err(|error| {
        UserError::usage(&what, error.to_string(), "name a directory with --directory")
    })?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let shown = format!("{} free in {}", size_word(free / MIB * MIB), directory.display());
    match free >= GIB {
        true => Ok(shown),
        false => Err(UserError::new(
            ExitCode::NoSpace,
            "there is too little space",
            shown,
            "name a directory on a larger disk with --directory, and in `unisono start` with \
             --data",
        )),
    }
}

/// Starts servers, copies a file in and out, and compares every byte.
fn probe(program: &Program, parent: Option<&Path>) -> Result<String, UserError> {
    let begun = Instant::now();
    let options = ServerOptions::default();
    let instance = TemporaryInstance::start(program, PROBE_SERVERS, &[], parent, &options)?;
    let started = begun.elapsed();
    let session = Session::new(instance.instance().clone());
    let content: Vec<u8> = (0..PROBE_BYTES).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect();
    let (from, to) = (instance.directory().join("in"), instance.directory().join("out"));
    let here = |error: std::io::Error| {
        UserError::usage(
            "cannot write the test file",
            error.to_string(),
            "name a directory that you may write to with --directory",
        )
    };
    std::fs::write(&from, &content).map_err(here)?;
    session.put(&from, "probe", None)?;
    let plan = client::CopyPlan::new(
        &session,
        &[Place::Instance("probe".to_owned())],
        &Place::Local(to.clone()),
        false,
        None,
    )?;
    session.copy(&plan, &|_| ())?;
    match std::fs::read(&to).map_err(here)? == content {
        true => Ok(format!(
            "{PROBE_SERVERS} servers started in {:.2} s; a test file was written and read back \
             correctly",
            started.as_secs_f64()
        )),
        false => Err(UserError::new(
            ExitCode::DataCheck,
            "the test file changed between write and read",
            format!("{PROBE_BYTES} bytes were written and read back, and they differ"),
            "do not use this machine for data; report it with the output of `unisono --version`",
        )),
    }
}

/// Checks that every server of the instance answers, if there is an instance, and that otherwise no
/// process is left of an interrupted start.
fn state_of(instance: &Instance) -> Result<String, UserError> {
    let directory = instance.directory().display().to_string();
    if !instance.directory().join("instance.json").exists() {
        return match instance.directory().exists() {
            true => no_leftovers(instance),
            false => Ok(format!("there is no instance at {directory}")),
        };
    }
    let states = Session::new(instance.clone()).status()?;
    match states.iter().find_map(|state| state.status.as_ref().err().map(|cause| (state, cause))) {
        None => Ok(format!("{} servers at {directory} answer", states.len())),
        Some((state, cause)) => Err(UserError::new(
            ExitCode::NoServer,
            format!("server {} of {directory} does not answer", state.entry.id),
            cause.clone(),
            "see its log in the instance directory, then stop and start the instance",
        )),
    }
}

/// Checks that no process is left of an interrupted start. Waits for one that is under way.
fn no_leftovers(instance: &Instance) -> Result<String, UserError> {
    let directory = instance.directory().display();
    instance.refuse_foreign()?;
    let _nobody_starts = lock(instance)?;
    match leftovers(instance).first() {
        // A start may just have completed.
        Some(_) if instance.read().is_ok() => Ok(format!("the instance at {directory} runs")),
        None => Ok(format!("there is no instance at {directory}")),
        Some(pid) => Err(UserError::new(
            ExitCode::Failed,
            format!("there is no instance at {directory}, but a start has left processes"),
            format!("process {pid} still runs"),
            "end them with: unisono stop   (or start the instance, which also ends them)",
        )),
    }
}
