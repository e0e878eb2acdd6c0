//! Programs that are carried out on real servers and on simulated ones.

use super::{instance_of, servers};
use crate::ranks::parse_pattern;
use crate::replay::{ReplayPlan, replay};
use cluster::Program;
use filesystem::collective::Strategy;
use interface::UserError;
use serde::{Deserialize, Serialize};
use simulate::{Machine, OwnModels, Setting, SimulationPlan, simulate_program};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use trace::{BtioClass, BtioMode, BtioProgram, PatternProgram, RankTrace};
use units::{KIB, MIB};

/// A program on real servers and on simulated ones.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residual {
    /// Pattern.
    pub pattern: String,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Strategy of collective transfers, or `independent`.
    pub access: String,
    /// Number of servers.
    pub servers: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Median of the seconds on real servers, and the least and the most.
    pub real_seconds: f64,
    /// Least of the seconds on real servers.
    pub real_least: f64,
    /// Most of the seconds on real servers.
    pub real_most: f64,
    /// Seconds on simulated servers.
    pub simulated_seconds: f64,
}

impl Residual {
    /// Relative error of the simulation.
    pub fn error(&self) -> f64 {
        self.simulated_seconds / self.real_seconds - 1.0
    }
}

/// A program that moves a pattern several times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pattern: &'static str,
    record_bytes: u64,
    strategy: Strategy,
    servers: u32,
    file_bytes: u64,
    transfers: u32,
    is_independent: bool,
    /// True for a program that writes as BTIO (simple) does, one row of points after the other.
    is_btio: bool,
}

const fn case(pattern: &'static str, record_bytes: u64, strategy: Strategy) -> Case {
    let (servers, file_bytes, transfers) = (2, 64 * MIB, 48);
    let (is_independent, is_btio) = (false, false);
    Case {
        pattern,
        record_bytes,
        strategy,
        servers,
        file_bytes,
        transfers,
        is_independent,
        is_btio,
    }
}

/// A program that moves a file of 1 MiB so often that messages decide.
const fn small(pattern: &'static str, transfers: u32, strategy: Strategy) -> Case {
    Case { file_bytes: MIB, transfers, ..case(pattern, 8 * KIB, strategy) }
}

/// A program each of whose ranks moves 8 KiB by itself at a time.
const fn independent(pattern: &'static str, transfers: u32) -> Case {
    let (is_independent, file_bytes) = (true, 8 * KIB * RANKS as u64);
    Case { is_independent, file_bytes, ..small(pattern, transfers, Strategy::DiskDirected) }
}

/// A program each of whose ranks moves a quarter of the file by itself at a time.
const fn independent_quarters(pattern: &'static str) -> Case {
    Case { is_independent: true, transfers: 24, ..case(pattern, MIB, Strategy::DiskDirected) }
}

/// BTIO (simple) of class W, half of its dumps: each rank makes 5,760 writes of 480 bytes.
const BTIO: Case = Case {
    is_independent: true,
    is_btio: true,
    transfers: 20,
    file_bytes: 20 * 24 * 24 * 24 * 40,
    ..case("btio", 480, Strategy::DiskDirected)
};

/// Programs that the loads are fitted to.
pub(super) const FITTED: [Case; 7] = [
    case("rc", 64 * KIB, Strategy::DiskDirected),
    case("wb", MIB, Strategy::DiskDirected),
    case("rcc", 1024, Strategy::TwoPhase),
    case("wb", MIB, Strategy::TwoPhase),
    small("rc", 400, Strategy::DiskDirected),
    independent_quarters("wb"),
    BTIO,
];

/// Programs that have no part in any parameter.
pub(super) const CHECKED: [Case; 11] = [
    case("rb", MIB, Strategy::DiskDirected),
    case("rc", 8, Strategy::DiskDirected),
    case("wc", 8 * KIB, Strategy::DiskDirected),
    case("rb", MIB, Strategy::TwoPhase),
    case("rc", 8 * KIB, Strategy::TwoPhase),
    case("wc", 8 * KIB, Strategy::TwoPhase),
    small("wc", 400, Strategy::DiskDirected),
    small("rc", 200, Strategy::TwoPhase),
    independent("wb", 1000),
    independent("rb", 1000),
    independent_quarters("rb"),
];

const RANKS: u32 = 4;
/// Runs of a program.
pub(super) const RUNS: u32 = 7;

/// A program that is made, not recorded.
enum Made {
    Pattern(PatternProgram),
    Btio(BtioProgram),
}

impl Made {
    fn write(&self, directory: &Path) -> Result<(), UserError> {
        match self {
            Self::Pattern(program) => program.write(directory),
            Self::Btio(program) => program.write(directory),
        }
    }

    fn rank_traces(&self) -> Result<Vec<RankTrace>, UserError> {
        match self {
            Self::Pattern(program) => program.rank_traces(),
            Self::Btio(program) => program.rank_traces(),
        }
    }
}

impl Case {
    fn program(&self) -> Result<Made, UserError> {
        let sync = false;
        if self.is_btio {
            let (class, mode) = (BtioClass::W, BtioMode::Simple);
            let (ranks, dumps, computed_ns) = (RANKS, self.transfers, 0);
            return Ok(Made::Btio(BtioProgram { class, mode, ranks, dumps, computed_ns, sync }));
        }
        Ok(Made::Pattern(PatternProgram {
            pattern: parse_pattern(self.pattern)?,
            record_bytes: self.record_bytes,
            file_bytes: self.file_bytes,
            ranks: RANKS,
            files: 1,
            repeat: self.transfers,
            computed_ns: 0,
            is_independent: self.is_independent,
            sync,
        }))
    }

    /// Carries the program out on real servers. The result has no simulated time.
    ///
    /// # Errors
    /// Faults of servers.
    pub(super) fn carry_out(
        &self,
        program: &Program,
        directory: Option<&Path>,
        runs: u32,
    ) -> Result<Residual, UserError> {
        let started = servers(program, self.servers, directory)?;
        let trace = started.directory().join("program.trace");
        self.program()?.write(&trace)?;
        let plan = ReplayPlan {
            trace,
            strategy: self.strategy.to_string(),
            block_bytes: MIB,
            outstanding_per_disk: 4,
            repeat: runs,
        };
        let report = replay(instance_of(&started), program, &plan, |_| {})?;
        let real = || report.runs.iter().map(|run| run.seconds);
        Ok(Residual {
            pattern: self.pattern.to_owned(),
            record_bytes: self.record_bytes,
            file_bytes: self.file_bytes,
            access: match self.is_independent {
                true => "independent".to_owned(),
                false => self.strategy.to_string(),
            },
            servers: self.servers,
            ranks: RANKS,
            real_seconds: report.median_seconds(),
            real_least: real().fold(f64::INFINITY, f64::min),
            real_most: real().fold(0.0, f64::max),
            simulated_seconds: 0.0,
        })
    }

    /// Returns the seconds of the program on the servers of a scenario.
    ///
    /// # Errors
    /// Fails when the scenario cannot be read.
    fn simulate(&self, scenario: &Path) -> Result<f64, UserError> {
        let settings = vec![
            Setting::option("servers", &self.servers.to_string()),
            Setting::list("--strategy", "strategy", &[self.strategy.to_string()]),
        ];
        let plan = plan(scenario, settings)?;
        let ranks = self.program()?.rank_traces()?;
        let simulated = Arc::new(simulate::Program::new(ranks)?.with_warm_files());
        match plan.scenarios().first() {
            Some(scenario) => Ok(simulate_program(scenario, &simulated, 1)?.seconds),
            None => Ok(0.0),
        }
    }

    /// Returns the machine of a scenario file.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub(super) fn machine(scenario: &Path) -> Result<Machine, UserError> {
        Ok(plan(scenario, Vec::new())?.machine().clone())
    }
}

/// Carries programs out on simulated servers, all at once; returns the seconds of each.
///
/// # Errors
/// Settings that make no sense.
pub(super) fn simulate_all(cases: &[Case], scenario: &Path) -> Result<Vec<f64>, UserError> {
    std::thread::scope(|scope| {
        let start = |case| scope.spawn(move || Case::simulate(case, scenario));
        let running: Vec<_> = cases.iter().map(start).collect();
        let ended = running.into_iter().map(ScopedJoinHandle::join);
        ended.map(|one| one.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Adds the seconds on simulated servers.
pub(super) fn with_simulated(real: Vec<Residual>, seconds: &[f64]) -> Vec<Residual> {
    let pairs = real.into_iter().zip(seconds);
    pairs.map(|(real, &simulated_seconds)| Residual { simulated_seconds, ..real }).collect()
}

fn plan(scenario: &Path, settings: Vec<Setting>) -> Result<SimulationPlan, UserError> {
    let (policies, models) = (Default::default(), OwnModels::default());
    SimulationPlan::resolve(Some(scenario), settings, &policies, &models)
}
