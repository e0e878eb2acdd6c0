//! The parent of a bench: starts the clients and gathers their measurements.

use super::spec::BenchPlan;
use crate::ranks::{
    Answer, CaseOrder, CaseSpec, FileLife, Order, RankSpec, Ranks, SourceSpec, Work, peak_bytes,
};
use crate::span::Span;
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
    /// Those of them whose processor time the clients count.
    counted: Vec<u32>,
    disks_per_server: u32,
}

/// Transfers of a case.
pub(crate) struct Observed {
    pub(crate) row: Row,
    /// Each transfer, from the first client's beginning to the last one's end.
    pub(crate) spans: Vec<Span>,
    /// Processor time of the servers in all transfers, if it is counted, in nanoseconds.
    pub(crate) servers_ns: u64,
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
        let file = clients.file_name(number);
        let source = SourceSpec::Generated(number as u64 + 1);
        let measured = clients.measure(case, &file, source, FileLife::Fresh, None);
        // The client that was to remove the file may be gone.
        let row = measured.inspect_err(|_| clients.give_up(instance, &file))?;
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
            cores: plan.client_cores.clone(),
            in_place: plan.in_place.is_some(),
            work: Work::Cases { group, clients: plan.clients, host: plan.client_host.clone() },
        });
        let is_here = |server: &&ServerEntry| instance.is_running(server);
        Ok(Self {
            ranks: Ranks::start(program, |rank| format!("client {rank} of the bench"), specs)?,
            group,
            plan: plan.clone(),
            servers: file.servers.len() as u32,
            server_processes: file.servers.iter().filter(is_here).map(|one| one.pid).collect(),
            counted: Vec::new(),
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
        self.observe(case, file, source, life, dump).map(|observed| observed.row)
    }

    /// As [`measure`](Self::measure), and tells when the transfers took place.
    pub(crate) fn observe(
        &mut self,
        case: &CaseSpec,
        file: &str,
        source: SourceSpec,
        life: FileLife,
        dump: Option<&Path>,
    ) -> Result<Observed, UserError> {
        let order = |rank: u32| {
            Order::Measure(CaseOrder {
                case: case.clone(),
                file: file.to_owned(),
                source: source.clone(),
                life,
                dump: dump.map(|directory| directory.join(rank.to_string())),
                // One rank counts for all.
                counted: if rank == 0 { self.counted.clone() } else { Vec::new() },
            })
        };
        let measured = self.ranks.order(order, |answer| match answer {
            Answer::Measured { wrong: Some(wrong), .. } => Some(Err(wrong_data(case, &wrong))),
            Answer::Measured { spans, counted_ns, moved_bytes, peak_bytes, .. } => {
                Some(Ok((spans, counted_ns, moved_bytes, peak_bytes)))
            }
            _ => None,
        })?;
        let mut slowest = vec![0.0_f64; case.repeat as usize];
        let mut all_spans: Vec<Span> = Vec::new();
        let (mut moved, mut client_peak_bytes, mut servers_ns) = (0, 0, 0);
        for (spans, counted_ns, moved_bytes, peak_bytes) in measured {
            moved += moved_bytes;
            servers_ns += counted_ns;
            client_peak_bytes = peak_bytes.max(client_peak_bytes);
            for (slowest, span) in slowest.iter_mut().zip(&spans) {
                *slowest = slowest.max(span.seconds());
            }
            match all_spans.is_empty() {
                true => all_spans = spans,
                false => {
                    for (all, span) in all_spans.iter_mut().zip(spans) {
                        *all = all.around(span);
                    }
                }
            }
        }
        let mut row = self.row(case, &slowest, moved);
        row.client_peak_bytes = Some(client_peak_bytes);
        row.server_peak_bytes = self.server_processes.iter().map(|pid| peak_bytes(*pid)).max();
        Ok(Observed { row, spans: all_spans, servers_ns })
    }

    /// Has the clients count the servers' processor time during transfers from now on.
    pub(crate) fn count_servers(&mut self) {
        self.counted.clone_from(&self.server_processes);
    }

    /// Name of a file for case `number`, or its path.
    pub(crate) fn file_name(&self, number: usize) -> String {
        let name = format!("bench-{:x}-{number}", self.group);
        match &self.plan.in_place {
            Some(directory) => directory.join(name).display().to_string(),
            None => name,
        }
    }

    /// Ends the clients after a failure, and removes a file that they may have left.
    pub(crate) fn give_up(&mut self, instance: &Instance, file: &str) {
        self.ranks.end();
        // The first error is the one to report.
        let _ = match self.plan.in_place {
            Some(_) => std::fs::remove_file(file).is_ok(),
            None => Session::new(instance.clone()).remove(file).is_ok(),
        };
    }

    fn row(&self, case: &CaseSpec, seconds: &[f64], moved_bytes: u64) -> Row {
        let mut row = Row {
            strategy: case.strategy.clone(),
            pattern: case.pattern.clone(),
            record_bytes: case.record_bytes,
            file_bytes: case.file_bytes,
            clients: self.plan.clients,
            servers: self.servers,
            disks_per_server: if self.plan.in_place.is_some() { 1 } else { self.disks_per_server },
            block_bytes: self.plan.block_bytes,
            machine: "this-machine".to_owned(),
            layout: if self.plan.in_place.is_some() { "in-place" } else { "as-is" }.to_owned(),
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
