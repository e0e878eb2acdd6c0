//! Measuring loads beside a computation.

use super::computation::{
    BETWEEN_BARRIERS_MS, BarrierRounds, Computation, Threads, calibrate_round,
    rounds_between_barriers,
};
use super::cores::ComputeCores;
use super::report::{COMPUTE_SCHEMA, ComputeReport, ComputeRow, Share};
use super::simulated::simulated;
use crate::accuracy::median;
use crate::bench::{BenchPlan, Clients, Observed};
use crate::ranks::{CaseSpec, FileLife, SourceSpec};
use crate::span::{Span, now_ns};
use client::Instance;
use cluster::Program;
use interface::{CoreList, UserError};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of transfers of one measurement.
const TRANSFERS_MAX: u32 = 10_000;

/// Loads to measure, and the computation beside them.
#[derive(Clone, Debug)]
pub struct ComputePlan {
    /// Clients and cases. The number of transfers of a case follows from `time`.
    pub bench: BenchPlan,
    /// Cores of servers and clients.
    pub cores: ComputeCores,
    /// Least time of the transfers of each measurement.
    pub time: Duration,
    /// Number of repetitions of each case.
    pub repeat: u32,
    /// Nice value of the computation, 0 to 19.
    pub nice: u32,
}

/// Measures the cases of a plan on a running instance, whose servers are pinned; calls `progress`
/// with each row as it is measured.
///
/// # Errors
/// As [`crate::bench()`], and when the computation cannot have its cores and priority.
pub fn compute(
    instance: &Instance,
    program: &Program,
    plan: &ComputePlan,
    mut progress: impl FnMut(&ComputeReport, &ComputeRow),
) -> Result<ComputeReport, UserError> {
    let mut bench = plan.bench.clone();
    bench.client_cores = Some(plan.cores.clients.clone());
    bench.check()?;
    let servers = instance.read()?.servers;
    let cores = servers.iter().map(|server| server.cores.clone());
    let cores: Vec<CoreList> = cores.collect::<Option<_>>().ok_or_else(not_pinned)?;
    let threads = Threads { cores, nice: plan.nice };
    let round_seconds = calibrate_round(&threads)?;
    let mut clients = Clients::start(instance, program, &bench)?;
    clients.count_servers();
    let mut report = ComputeReport {
        schema: COMPUTE_SCHEMA,
        servers: servers.len() as u32,
        server_cores: threads.cores.clone(),
        clients: bench.clients,
        client_cores: plan.cores.clients.clone(),
        shares_client_cores: plan.cores.are_shared(),
        nice: plan.nice,
        barrier_ms: BETWEEN_BARRIERS_MS,
        round_us: round_seconds * 1e6,
        rounds_per_barrier: rounds_between_barriers(round_seconds),
        block_bytes: bench.block_bytes,
        results: Vec::new(),
    };
    let barriers = Some(report.rounds_per_barrier);
    for (number, case) in bench.cases.iter().enumerate() {
        let (file, clients) = (clients.file_name(number), &mut clients);
        let source = SourceSpec::Generated(number as u64 + 1);
        let mut load = Load { clients, case: case.clone(), file: file.clone(), source };
        let measured = load.measure(plan, &threads, barriers);
        let row = measured.inspect_err(|_| load.clients.give_up(instance, &file))?;
        progress(&report, &row);
        report.results.push(row);
    }
    Ok(report)
}

/// Transfers of one case, on a file that lasts until the last of them.
struct Load<'a> {
    clients: &'a mut Clients,
    case: CaseSpec,
    file: String,
    source: SourceSpec,
}

impl Load<'_> {
    /// Measures the case: alternately beside a computation without barriers, beside none, and
    /// beside one with barriers.
    fn measure(
        &mut self,
        plan: &ComputePlan,
        threads: &Threads,
        barriers: BarrierRounds,
    ) -> Result<ComputeRow, UserError> {
        self.prepare(plan.time)?;
        let (mut alone, mut left, mut usable) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..plan.repeat {
            left.push(self.beside(plan, threads, None)?);
            alone.push(self.transfer(FileLife::Lasting)?);
            usable.push(self.beside(plan, threads, barriers)?);
        }
        self.remove()?;
        let cores: BTreeSet<u32> =
            threads.cores.iter().flat_map(|cores| cores.cores().iter().copied()).collect();
        let busy = alone.iter().map(|load| {
            load.servers_ns as f64 / 1e9 / (seconds_of(load) * cores.len() as f64) * 100.0
        });
        let rates = |loads: &[Beside]| median(loads.iter().map(|load| load.mib_s).collect());
        let shares = |loads: &[Beside]| {
            Share::of(&loads.iter().map(|load| load.share).collect::<Vec<f64>>())
        };
        Ok(ComputeRow {
            pattern: self.case.pattern.clone(),
            record_bytes: self.case.record_bytes,
            strategy: self.case.strategy.clone(),
            file_bytes: self.case.file_bytes,
            transfers: self.case.repeat,
            mib_s: median(alone.iter().map(|load| load.row.mib_s).collect()),
            computing_mib_s: rates(&left),
            barriers_mib_s: rates(&usable),
            servers_percent: median(busy.collect()),
            left: shares(&left),
            usable: shares(&usable),
            simulated: simulated(&self.case)?,
        })
    }

    /// Makes the file by a first transfer, which tells how many take `time`.
    fn prepare(&mut self, time: Duration) -> Result<(), UserError> {
        self.case.repeat = 1;
        let first = self.transfer(FileLife::Kept)?;
        let transfers = time.as_secs_f64() / seconds_of(&first).max(f64::MIN_POSITIVE);
        self.case.repeat = (transfers.ceil() as u32).clamp(1, TRANSFERS_MAX);
        Ok(())
    }

    /// Removes the file by a last transfer.
    fn remove(&mut self) -> Result<(), UserError> {
        let repeat = std::mem::replace(&mut self.case.repeat, 1);
        let removed = self.transfer(FileLife::Existing);
        self.case.repeat = repeat;
        removed.map(|_| ())
    }

    fn transfer(&mut self, life: FileLife) -> Result<Observed, UserError> {
        self.clients.observe(&self.case, &self.file, self.source.clone(), life, None)
    }

    /// Measures the share of a computation, beside idle servers before and after the transfers too.
    fn beside(
        &mut self,
        plan: &ComputePlan,
        threads: &Threads,
        barriers: BarrierRounds,
    ) -> Result<Beside, UserError> {
        let computation = Computation::start(threads, barriers)?;
        let before = idle(plan.time / 2);
        let load = self.transfer(FileLife::Lasting)?;
        let after = idle(plan.time / 2);
        let progress = computation.end()?;
        let rate = |spans: &[Span]| {
            let rounds = spans
                .iter()
                .map(|span| progress.iter().map(|thread| thread.rounds_in(*span)).sum::<f64>());
            rounds.sum::<f64>() / seconds(spans)
        };
        Ok(Beside { share: rate(&load.spans) / rate(&[before, after]), mib_s: load.row.mib_s })
    }
}

/// Load beside a computation.
struct Beside {
    /// Work of the computation, as a part of that beside idle servers.
    share: f64,
    mib_s: f64,
}

/// Leaves the servers idle.
fn idle(time: Duration) -> Span {
    let start_ns = now_ns();
    std::thread::sleep(time);
    Span::since(start_ns)
}

fn seconds_of(load: &Observed) -> f64 {
    seconds(&load.spans)
}

fn seconds(spans: &[Span]) -> f64 {
    spans.iter().map(|span| span.seconds()).sum()
}

fn not_pinned() -> UserError {
    UserError::usage(
        "cannot compute beside these servers",
        "they are not pinned to cores",
        "start servers with --server-cores",
    )
}
