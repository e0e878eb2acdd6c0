//! The process that starts lost servers of an instance on this machine again.
//!
//! Invariants:
//! - It starts nothing while another process starts or stops servers, nor after a stop.
//! - It ends when the instance is gone, or names another process in its place.

use crate::instance::{lock, write};
use crate::leftovers::{KEEPER_LOG, open_log};
use crate::process::{Child, ProcessEnd, Program, cannot_start};
use crate::process_name::{name_of, own_name};
use client::{Instance, InstanceFile, ServerEntry};
use interface::UserError;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Role of this process on the command line.
const ROLE: &str = "restart-servers";

/// Time limit of a server to take its place, or to end.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval at which a server that is starting is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Pause before a server is started again that has ended soon. It doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// Longest such pause: other servers wait for it.
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// Number of starts of a server in a row, each of which it has ended soon after, with which it is
/// given up.
const STARTS_MAX: u32 = 8;

/// Time after which a server that has ended counts as one that did work.
const SOON: Duration = Duration::from_secs(30);

/// Starts the process that starts lost servers of an instance again, and names it in the instance.
pub(crate) fn begin_restarts(
    instance: &Instance,
    program: &Program,
    refills: bool,
) -> Result<InstanceFile, UserError> {
    let _nobody_else = lock(instance)?;
    let mut file = instance.read()?;
    let log = open_log(&instance.directory().join(KEEPER_LOG))?;
    let mut words = role(ROLE, instance);
    words.extend(refills.then(|| "--refill".to_owned()));
    let process = Child::start(program.command(&words), log.into())?;
    file.supervisor = name_of(process.id());
    write(instance, &file)?;
    process.detach();
    Ok(file)
}

/// Starts servers of an instance again whenever one has ended, until the instance is stopped. With
/// `refills`, empty directories take the places of those that are lost.
///
/// # Errors
/// Fails when it cannot begin.
pub fn restart_servers(instance: &Instance, refills: bool) -> Result<(), UserError> {
    let program = Program::current()?;
    let mut starts = BTreeMap::<u32, Starts>::new();
    // Its name is there once the start is complete.
    drop(lock(instance)?);
    while let Some(file) = own_instance(instance) {
        let ends: Vec<_> =
            file.servers.iter().map(|one| (one, end_of_server(instance, one))).collect();
        let has_ended = |(server, end): &(&ServerEntry, Option<ProcessEnd>)| {
            end.is_none() && !starts.get(&server.id).is_some_and(Starts::are_given_up)
        };
        // A server may need another one that is lost, too.
        let tries = |id: &u32| starts.get(id).map_or(0, |starts| starts.in_a_row);
        let lost = ends.iter().filter(|one| has_ended(one)).map(|(server, _)| server.id);
        let lost = lost.min_by_key(tries);
        match lost {
            Some(id) => {
                let starts = starts.entry(id).or_default();
                starts.count();
                if starts.are_given_up() {
                    note(&format!("server {id} ends again and again; it is not started any more"));
                    continue;
                }
                note(&format!("server {id} has ended; it is started again"));
                start_again(instance, &program, id, refills);
            }
            None => {
                let running: Vec<&ProcessEnd> =
                    ends.iter().filter_map(|(_, end)| end.as_ref()).collect();
                if running.is_empty() {
                    return Ok(());
                }
                ProcessEnd::wait_for_first(&running);
            }
        }
    }
    Ok(())
}

/// The instance, as long as it names this process.
fn own_instance(instance: &Instance) -> Option<InstanceFile> {
    let file = instance.read().ok()?;
    let is_own = file.supervisor.is_some() && file.supervisor == own_name();
    is_own.then_some(file)
}

/// End of a server of this machine, if it runs.
fn end_of_server(instance: &Instance, server: &ServerEntry) -> Option<ProcessEnd> {
    ProcessEnd::of(server.pid).filter(|_| instance.is_running(server))
}

/// Starts of one server that has ended soon after each.
#[derive(Default)]
struct Starts {
    in_a_row: u32,
    last: Option<Instant>,
}

impl Starts {
    /// Counts a start, after a pause if the server has ended soon after the last one.
    fn count(&mut self) {
        if self.last.is_none_or(|last| last.elapsed() >= SOON) {
            self.in_a_row = 0;
        }
        if self.in_a_row > 0 {
            let pause = PAUSE_MIN * 2_u32.pow(self.in_a_row.min(STARTS_MAX) - 1);
            std::thread::sleep(pause.min(PAUSE_MAX));
        }
        self.in_a_row += 1;
        self.last = Some(Instant::now());
    }

    fn are_given_up(&self) -> bool {
        self.in_a_row > STARTS_MAX
    }
}

/// Starts a server again. Returns when it has its place, or has ended.
fn start_again(instance: &Instance, program: &Program, id: u32, refills: bool) {
    let started = (|| {
        {
            // A stop has the lock until the instance is gone.
            let _nobody_else = lock(instance)?;
            let Some(file) = own_instance(instance) else { return Ok(None) };
            let is_there = |one: &ServerEntry| one.id == id && instance.is_running(one);
            if file.servers.iter().any(is_there) {
                return Ok(None);
            }
        }
        let mut words = role("serve", instance);
        words.extend(["--id".to_owned(), id.to_string()]);
        words.extend(refills.then(|| "--refill".to_owned()));
        let mut command = program.command(&words);
        let log = open_log(&instance.log_path(id))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        command.spawn().map(Some).map_err(|error| cannot_start(&command, &error))
    })();
    let mut process = match started {
        Ok(Some(process)) => process,
        Ok(None) => return,
        Err(error) => return note(&format!("server {id} cannot be started: {error}")),
    };
    let (pid, deadline) = (process.id(), Instant::now() + SERVER_TIMEOUT);
    let has_place = || {
        let file = instance.read().ok();
        let mut servers = file.into_iter().flat_map(|file| file.servers);
        servers.any(|one| one.id == id && one.pid == pid)
    };
    while !has_place() && Instant::now() < deadline {
        if let Ok(Some(status)) = process.try_wait() {
            return note(&format!("server {id} has ended at once, {status}; see its log"));
        }
        std::thread::sleep(LOOK);
    }
    // Its end is waited for, so that no trace of it is left.
    std::thread::spawn(move || process.wait());
}

fn role(name: &str, instance: &Instance) -> Vec<String> {
    let directory = instance.directory().display().to_string();
    vec![name.to_owned(), "--instance".to_owned(), directory]
}

/// Writes a line to the log of this process.
fn note(line: &str) {
    // A log that cannot be written is no reason to end.
    let _ = writeln!(std::io::stderr(), "{line}");
}
