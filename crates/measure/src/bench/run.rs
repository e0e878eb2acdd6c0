//! The parent of a bench: starts the clients and gathers their measurements.

use super::limits::peak_bytes;
use super::spec::{
    BenchPlan, CaseOrder, CaseResult, CaseSpec, ClientReady, ClientSpec, FileLife, SourceSpec,
};
use crate::orders;
use client::{Instance, ServerEntry, Session};
use cluster::{Child, Program};
use interface::{BENCH_SCHEMA, ExitCode, Report, Row, UserError};
use std::path::Path;
use std::process::Stdio;

/// Variable with settings of the C library; one that the user has set stays.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Has the C library ask for huge pages for large memory, as NumPy does for its arrays.
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=1";

/// Client processes that work as one group.
pub(crate) struct Clients {
    children: Vec<Child>,
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
            clients.children.clear();
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
        let is_here = |server: &&ServerEntry| instance.is_running(server);
        let mut clients = Self {
            children: Vec::new(),
            group: new_group()?,
            plan: plan.clone(),
            servers: file.servers.len() as u32,
            server_processes: file.servers.iter().filter(is_here).map(|one| one.pid).collect(),
            disks_per_server: file.disks_per_server,
        };
        for rank in 0..plan.clients {
            let spec = ClientSpec {
                instance: instance.directory().to_owned(),
                group: clients.group,
                rank,
                clients: plan.clients,
                host: plan.client_host.clone(),
                block_bytes: plan.block_bytes,
            };
            let mut command = program.command(&["bench-client".to_owned()]);
            if std::env::var_os(TUNABLES).is_none() {
                command.env(TUNABLES, HUGE_PAGES);
            }
            clients.children.push(Child::start(command, Stdio::inherit())?);
            clients.send(rank, &spec)?;
        }
        orders::receive_all(&mut clients.children, |child, rank| match receive(child, rank)? {
            ClientReady::Connected => Ok(()),
            ClientReady::Failed(failure) => Err(failure.into()),
        })?;
        Ok(clients)
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
        for rank in 0..self.plan.clients {
            let order = CaseOrder {
                case: case.clone(),
                file: file.to_owned(),
                source: source.clone(),
                life,
                dump: dump.map(|directory| directory.join(rank.to_string())),
            };
            self.send(rank, &order)?;
        }
        let mut slowest = vec![0.0_f64; case.repeat as usize];
        let (mut moved, mut client_peak_bytes) = (0, 0);
        let measured =
            orders::receive_all(&mut self.children, |child, rank| match receive(child, rank)? {
                CaseResult::Failed(failure) => Err(failure.into()),
                CaseResult::Measured { wrong: Some(wrong), .. } => Err(wrong_data(case, &wrong)),
                CaseResult::Measured { seconds, moved_bytes, peak_bytes, .. } => {
                    Ok((seconds, moved_bytes, peak_bytes))
                }
            })?;
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

    fn send(&mut self, rank: u32, what: &impl serde::Serialize) -> Result<(), UserError> {
        orders::send(&mut self.children[rank as usize], what).map_err(|cause| lost(rank, &cause))
    }
}

fn receive<T: serde::de::DeserializeOwned>(child: &mut Child, rank: u32) -> Result<T, UserError> {
    orders::receive(child).map_err(|cause| lost(rank, &cause))
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

fn lost(rank: u32, cause: &str) -> UserError {
    UserError::new(
        ExitCode::Collective,
        format!("client {rank} of the bench ended before it had finished"),
        cause,
        "see its standard error output above; the servers continue to run",
    )
}

fn wrong_data(case: &CaseSpec, wrong: &str) -> UserError {
    UserError::new(
        ExitCode::DataCheck,
        format!("{} by {} transferred wrong data", case.pattern, case.strategy),
        wrong,
        "this is a defect of unisono or of the disk; please report it with the command line",
    )
}
