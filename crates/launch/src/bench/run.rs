//! The side of a bench that starts the clients and gathers what they measured.

use crate::bench::spec::{CaseOrder, CaseResult};
use crate::bench::{BenchPlan, CaseSpec, ClientSpec, FileLife, SourceSpec, peak_bytes};
use crate::error::{ExitCode, LaunchError};
use crate::real::{Child, Instance, Program, Session};
use crate::row::{BENCH_SCHEMA, Report, Row};
use std::path::Path;
use std::process::Stdio;

/// Client processes that work as one group.
pub(crate) struct Clients {
    children: Vec<Child>,
    plan: BenchPlan,
    server_processes: Vec<u32>,
    disks_per_server: u32,
}

/// Measures the cases of a plan on a running instance; `progress` is told each row as it comes.
///
/// # Errors
/// When a case makes no sense, a transfer fails, a client dies, or a byte is wrong.
pub fn bench(
    instance: &Instance,
    program: &Program,
    plan: &BenchPlan,
    mut progress: impl FnMut(&Row),
) -> Result<Report, LaunchError> {
    plan.check()?;
    let mut clients = Clients::start(instance, program, plan)?;
    let mut results = Vec::new();
    for (number, case) in plan.cases.iter().enumerate() {
        let file = format!("bench-{}-{number}", std::process::id());
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
    /// Starts the clients; they join one another while the first case is made ready.
    pub(crate) fn start(
        instance: &Instance,
        program: &Program,
        plan: &BenchPlan,
    ) -> Result<Self, LaunchError> {
        let file = instance.read()?;
        let group = u64::from(std::process::id()) << 32 | next_group();
        let mut children = Vec::new();
        for rank in 0..plan.clients {
            let spec = ClientSpec {
                instance: instance.directory().to_owned(),
                group,
                rank,
                clients: plan.clients,
                block_bytes: plan.block_bytes,
            };
            let command = program.command(&["bench-client".to_owned()]);
            let mut child = Child::start(command, Stdio::inherit())?;
            let line = serde_json::to_string(&spec).unwrap_or_default();
            child.tell(&line).map_err(|error| lost(rank, &error.to_string()))?;
            children.push(child);
        }
        Ok(Self {
            children,
            plan: plan.clone(),
            server_processes: file.servers.iter().map(|server| server.pid).collect(),
            disks_per_server: file.disks_per_server,
        })
    }

    /// Lets the clients measure one case; with `dump`, each leaves what it read in
    /// `DUMP/RANK`.
    pub(crate) fn measure(
        &mut self,
        case: &CaseSpec,
        file: &str,
        source: SourceSpec,
        life: FileLife,
        dump: Option<&Path>,
    ) -> Result<Row, LaunchError> {
        for (rank, child) in (0..).zip(&mut self.children) {
            let order = CaseOrder {
                case: case.clone(),
                file: file.to_owned(),
                source: source.clone(),
                life,
                dump: dump.map(|directory| directory.join(rank.to_string())),
            };
            let line = serde_json::to_string(&order).unwrap_or_default();
            child.tell(&line).map_err(|error| lost(rank, &error.to_string()))?;
        }
        let mut slowest = vec![0.0_f64; case.repeat as usize];
        let (mut moved, mut client_peak_bytes) = (0, 0);
        for rank in 0..self.children.len() as u32 {
            match self.hear(rank)? {
                CaseResult::Measured { seconds, moved_bytes, wrong, peak_bytes } => {
                    if let Some(wrong) = wrong {
                        return Err(wrong_data(case, &wrong));
                    }
                    moved += moved_bytes;
                    client_peak_bytes = peak_bytes.max(client_peak_bytes);
                    for (slowest, seconds) in slowest.iter_mut().zip(seconds) {
                        *slowest = slowest.max(seconds);
                    }
                }
                CaseResult::Failed { error, cause, help, code } => {
                    return Err(LaunchError { error, cause, help, code: code_of(code) });
                }
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
            servers: self.server_processes.len() as u32,
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

    fn hear(&mut self, rank: u32) -> Result<CaseResult, LaunchError> {
        let child = &mut self.children[rank as usize];
        match child.hear() {
            Ok(Some(line)) => {
                serde_json::from_str(&line).map_err(|error| lost(rank, &error.to_string()))
            }
            Ok(None) => {
                let ended =
                    child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                Err(lost(rank, &ended))
            }
            Err(error) => Err(lost(rank, &error.to_string())),
        }
    }
}

fn next_group() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn code_of(code: u8) -> ExitCode {
    let codes = [
        ExitCode::Usage,
        ExitCode::NoServer,
        ExitCode::DataCheck,
        ExitCode::Collective,
        ExitCode::NoSpace,
    ];
    codes.into_iter().find(|known| *known as u8 == code).unwrap_or(ExitCode::Failed)
}

fn lost(rank: u32, cause: &str) -> LaunchError {
    LaunchError::new(
        ExitCode::Collective,
        format!("client {rank} of the bench ended before its work was done"),
        cause,
        "what it said on standard error tells more; the servers are unharmed",
    )
}

fn wrong_data(case: &CaseSpec, wrong: &str) -> LaunchError {
    LaunchError::new(
        ExitCode::DataCheck,
        format!("{} by {} moved wrong data", case.pattern, case.strategy),
        wrong,
        "this is a defect of unisono or of the disk; please report it with the command line",
    )
}
