//! The parent of a bench: starts the clients and gathers their measurements.

use super::spec::BenchPlan;
use crate::ranks::{
    Answer, CaseOrder, CaseSpec, FileLife, Order, RankSpec, Ranks, SourceSpec, Work, peak_bytes,
};
use client::{Instance, ServerEntry, Session};
use cluster::Program;
use interface::{BENCH_SCHEMA, ExitCode, Report, Row, UserError};
use std::path::Path;

/// Client processes that work as one group.
pub(crate) struct Clients {
    ranks: Ranks,
    group: u64,
    plan: BenchPlan,
    servers: u32,
    /// The servers' processes; none when they run on another machine.
    server_processes: Vec<u32>,
    disks_per_server: u32,
}

/// Measures the cases of a plan on a running instance; calls `progress` with each row as it is
/// measured.
///
/// # Errors
/// Fails when a case makes no sense, a transfer fails, a client dies, or a byte is wrong.
pub fn bench(
    instance: &Instance,
    program: &Program,
    plan: &BenchPlan,
    mut progress: impl FnMut(&Row),
) -> Result<Report, UserError> {
    plan.check()?;
    let mut clients = Clients::start(instance, program, plan)?;
    let mut results = Vec::new();
    for (number, case) in plan.cases.iter().enumerate() {
        let file = format!("bench-{:x}-{number}", clients.group);
        let source = SourceSpec::Generated(number as u64 + 1);
        let measured = clients.measure(case, &file, source, FileLife::Fresh, None);
        let row = measured.inspect_err(|_| {
            // The client that was to remove the file may be gone. The first error is the one to
            // report.
            clients.ranks.end();
            let _ = Session::new(instance.clone()).remove(&file);
        })?;
        progress(&row);
        results.push(row);
    }
    Ok(Report { schema: BENCH_SCHEMA.to_owned(), limits: None, results })
}

impl Clients {
    /// Starts the clients, which form their group while the first case is prepared.
    pub(crate) fn start(
        instance: &Instance,
        program: &Program,
        plan: &BenchPlan,
    ) -> Result<Self, UserError> {
        let file = instance.read()?;
        if plan.client_host.is_some() && file.servers.iter().all(|server| server.tcp().is_none()) {
            return Err(UserError::usage(
                "cannot use --client-host with this instance",
                format!("the servers of {} use socket files", instance.directory().display()),
                "leave out --client-host, or start the servers with --tcp HOST",
            ));
        }
        let group = new_group()?;
        let specs = (0..plan.clients).map(|rank| RankSpec {
            instance: instance.directory().to_owned(),
            rank,
            block_bytes: plan.block_bytes,
            work: Work::Cases { group, clients: plan.clients, host: plan.client_host.clone() },
        });
        let is_here = |server: &&ServerEntry| instance.is_running(server);
        Ok(Self {
            ranks: Ranks::start(program, |rank| format!("client {rank} of the bench"), specs)?,
            group,
            plan: plan.clone(),
            servers: file.servers.len() as u32,
            server_processes: file.servers.iter().filter(is_here).map(|one| one.pid).collect(),
            disks_per_server: file.disks_per_server,
        })
    }

    /// Has the clients measure one case; with `dump`, each leaves the data that it read in
    /// `DUMP/RANK`.
    pub(crate) fn measure(
        &mut self,
        case: &CaseSpec,
        file: &str,
        source: SourceSpec,
        life: FileLife,
        dump: Option<&Path>,
    ) -> Result<Row, UserError> {
        let order = |rank: u32| {
            Order::Measure(CaseOrder {
                case: case.clone(),
                file: file.to_owned(),
                source: source.clone(),
                life,
                dump: dump.map(|directory| directory.join(rank.to_string())),
            })
        };
        let measured = self.ranks.order(order, |answer| match answer {
            Answer::Measured { wrong: Some(wrong), .. } => Some(Err(wrong_data(case, &wrong))),
            Answer::Measured { seconds, moved_bytes, peak_bytes, .. } => {
                Some(Ok((seconds, moved_bytes, peak_bytes)))
            }
            _ => None,
        })?;
        let mut slowest = vec![0.0_f64; case.repeat as usize];
        let (mut moved, mut client_peak_bytes) = (0, 0);
        for (seconds, moved_bytes, peak_bytes) in measured {
            moved += moved_bytes;
            client_peak_bytes = peak_bytes.max(client_peak_bytes);
            for (slowest, seconds) in slowest.iter_mut().zip(seconds) {
                *slowest = slowest.max(seconds);
            }
        }
        let mut row = self.row(case, &slowest, moved);
        row.client_peak_bytes = Some(client_peak_bytes);
        row.server_peak_bytes = self.server_processes.iter().map(|pid| peak_bytes(*pid)).max();
        Ok(row)
    }

    fn row(&self, case: &CaseSpec, seconds: &[f64], moved_bytes: u64) -> Row {
        let mut row = Row {
            strategy: case.strategy.clone(),
            pattern: case.pattern.clone(),
            record_bytes: case.record_bytes,
            file_bytes: case.file_bytes,
            clients: self.plan.clients,
            servers: self.servers,
            disks_per_server: self.disks_per_server,
            block_bytes: self.plan.block_bytes,
            machine: "this-machine".to_owned(),
            layout: "as-is".to_owned(),
            sync: case.sync,
            verified: true,
            ..Row::default()
        };
        row.measure(seconds, moved_bytes);
        row
    }
}

/// Returns the number of a new group. It is unique on this machine, by the process; a clash with
/// another machine that uses the same servers is improbable.
fn new_group() -> Result<u64, UserError> {
    let random = getrandom::u32().map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot generate a number for the clients' group",
            error.to_string(),
            "the system must supply random numbers: check that /dev/urandom exists",
        )
    })?;
    Ok(u64::from(std::process::id()) << 32 | u64::from(random))
}

fn wrong_data(case: &CaseSpec, wrong: &str) -> UserError {
    UserError::new(
        ExitCode::DataCheck,
        format!("{} by {} transferred wrong data", case.pattern, case.strategy),
        wrong,
        "this is a defect of unisono or of the disk; please report it with the command line",
    )
}
