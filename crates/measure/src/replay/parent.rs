//! The parent of a replay: starts a process for each rank, makes the files that the program
//! expects, and gathers the times.

use super::spec::{ReplayPlan, ReplayReport, ReplayRun};
use crate::ranks::{Answer, Order, RankSpec, Ranks, Work};
use client::{Cleanup, Connection, Instance, Session, Undo};
use cluster::Program as Executable;
use interface::UserError;
use policy::Buffering;
use program::Program;
use std::collections::BTreeMap;
use trace::Trace;

/// Bytes that are written at once to a file that the program expects.
const FILL_BYTES: u64 = 4 << 20;

/// Replays a trace on a running instance. `progress` is told each run as it ends.
///
/// # Errors
/// A trace that cannot be replayed; failures of the servers; a process that ends early.
pub fn replay(
    instance: &Instance,
    executable: &Executable,
    plan: &ReplayPlan,
    mut progress: impl FnMut(&ReplayRun),
) -> Result<ReplayReport, UserError> {
    let trace = Trace::open(&plan.trace)?;
    trace.check()?;
    let program = Program::of_trace(trace)?;
    let made = Undo::made(
        || tempfile::Builder::new().prefix("unisono-replay-").tempdir(),
        |sockets| Cleanup::Remove(sockets.path().to_owned()),
    );
    let (sockets, _removed_on_signals) = made.map_err(|error| {
        UserError::usage(
            "cannot make a directory for the sockets of a replay",
            error.to_string(),
            "set TMPDIR to a directory that you may write to",
        )
    })?;
    check_memory(&program)?;
    let specs = (0..program.ranks()).map(|rank| RankSpec {
        cores: None,
        in_place: false,
        instance: instance.directory().to_owned(),
        rank,
        block_bytes: plan.block_bytes,
        work: Work::Trace {
            trace: plan.trace.clone(),
            sockets: sockets.path().to_owned(),
            strategy: plan.strategy.clone(),
            outstanding_per_disk: plan.outstanding_per_disk,
        },
    });
    let mut ranks = Ranks::start(executable, |rank| format!("rank {rank} of the replay"), specs)?;
    ranks.order(|_| Order::Connect, |_| Some(Ok(())))?;
    let connection = Connection::open(instance)?;
    let id = u64::from(std::process::id()) << 32 | u64::from(fastrand::u32(..));
    let mut runs = Vec::new();
    for number in 0..plan.repeat {
        let run = format!("replay-{id:x}-{number}");
        let names = program.names(&run);
        let files = Files { instance, names: &names };
        for (name, bytes) in program.existing_files() {
            make_file(&connection, &names[&name], bytes, plan.block_bytes)?;
        }
        let order = Order::Run { names: names.clone(), run };
        let ended = ranks.order(
            |_| order.clone(),
            |answer| match answer {
                Answer::Ended(report) => Some(Ok(report)),
                _ => None,
            },
        );
        drop(files);
        let reports = ended?;
        let longest = reports.iter().map(|report| report.elapsed).max();
        let seconds = longest.map_or(0.0, units::Duration::as_seconds);
        let run = ReplayRun { seconds, ranks: reports };
        progress(&run);
        runs.push(run);
    }
    Ok(ReplayReport { schema: ReplayReport::SCHEMA.to_owned(), runs })
}

/// Refuses a program whose transfers need more memory than this machine has.
fn check_memory(program: &Program) -> Result<(), UserError> {
    let needed: u64 =
        (0..program.ranks()).map(|rank| program.memory_bytes(rank)).fold(0, u64::saturating_add);
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    match kib.map(|kib| kib.saturating_mul(1024)) {
        Some(available) if needed > available => Err(UserError::usage(
            "cannot replay the trace on this machine",
            format!(
                "the largest transfers of its ranks need {needed} bytes of memory together, and \
                 {available} are available"
            ),
            "use `unisono what-if`, which needs no memory for data, or a machine with more",
        )),
        Some(_) | None => Ok(()),
    }
}

/// The files of one run, which are removed at its end.
struct Files<'a> {
    instance: &'a Instance,
    names: &'a BTreeMap<String, String>,
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        let session = Session::new(self.instance.clone());
        for name in self.names.values() {
            // The program may have removed it, or never made it.
            let _ = session.remove(name);
        }
    }
}

/// Makes a file that the program expects, with data on all of it.
fn make_file(
    connection: &Connection,
    name: &str,
    bytes: u64,
    block_bytes: u64,
) -> Result<(), UserError> {
    let file = connection.create(name, bytes, block_bytes, Buffering::default())?;
    let data = vec![0xa5; FILL_BYTES.min(bytes) as usize];
    let mut offset = 0;
    while offset < bytes {
        let length = FILL_BYTES.min(bytes - offset) as usize;
        file.write_at(&data[..length], offset)?;
        offset += length as u64;
    }
    file.flush(false)?;
    file.close()
}
