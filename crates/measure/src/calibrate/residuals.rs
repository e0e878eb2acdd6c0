//! Programs that are carried out on real servers and on simulated ones.

use super::{instance_of, servers};
use crate::bench::parse_pattern;
use crate::replay::{ReplayPlan, replay};
use cluster::Program;
use filesystem::collective::Strategy;
use interface::UserError;
use serde::{Deserialize, Serialize};
use simulate::{OwnModels, Setting, SimulationPlan, simulate_program};
use std::path::Path;
use std::sync::Arc;
use trace::PatternProgram;
use units::MIB;

/// A program on real servers and on simulated ones.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residual {
    /// Pattern.
    pub pattern: String,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Strategy.
    pub strategy: String,
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

/// Programs, each with its strategy and number of servers: three patterns by two strategies.
const CASES: [(&str, u64, Strategy, u32); 6] = [
    ("rb", MIB, Strategy::DiskDirected, 2),
    ("rc", 8, Strategy::DiskDirected, 2),
    ("wc", 8192, Strategy::DiskDirected, 2),
    ("rb", MIB, Strategy::TwoPhase, 2),
    ("rc", 8192, Strategy::TwoPhase, 2),
    ("wc", 8192, Strategy::TwoPhase, 2),
];

const RANKS: u32 = 4;
const FILE_BYTES: u64 = 64 * MIB;
/// Transfers of a program, and runs of it.
const TRANSFERS: u32 = 12;
const RUNS: u32 = 5;

/// Carries the programs out on real servers and on those of the scenario.
///
/// # Errors
/// Faults of servers.
pub(super) fn measure(
    program: &Program,
    directory: Option<&Path>,
    scenario: &Path,
) -> Result<Vec<Residual>, UserError> {
    let mut residuals = Vec::new();
    for (pattern, record_bytes, strategy, count) in CASES {
        let made = PatternProgram {
            pattern: parse_pattern(pattern)?,
            record_bytes,
            file_bytes: FILE_BYTES,
            ranks: RANKS,
            repeat: TRANSFERS,
            computed_ns: 0,
            is_independent: false,
            sync: false,
        };
        let started = servers(program, count, directory)?;
        let trace = started.directory().join("program.trace");
        made.write(&trace)?;
        let plan = ReplayPlan {
            trace,
            strategy: strategy.to_string(),
            block_bytes: MIB,
            outstanding_per_disk: 4,
            repeat: RUNS,
        };
        let report = replay(instance_of(&started), program, &plan, |_| {})?;
        let real: Vec<f64> = report.runs.iter().map(|run| run.seconds).collect();
        let settings = vec![
            Setting::option("servers", &count.to_string()),
            Setting::list("--strategy", "strategy", &[strategy.to_string()]),
        ];
        let (policies, models) = (Default::default(), OwnModels::default());
        let scenarios =
            SimulationPlan::resolve(Some(scenario), settings, &policies, &models)?.scenarios();
        let simulated = Arc::new(simulate::Program::new(made.rank_traces()?)?);
        let mut simulated_seconds = 0.0;
        if let Some(scenario) = scenarios.first() {
            simulated_seconds = simulate_program(scenario, &simulated, 1)?.seconds;
        }
        residuals.push(Residual {
            pattern: pattern.to_owned(),
            record_bytes,
            strategy: strategy.to_string(),
            servers: count,
            ranks: RANKS,
            real_seconds: report.median_seconds(),
            real_least: real.iter().copied().fold(f64::INFINITY, f64::min),
            real_most: real.iter().copied().fold(0.0, f64::max),
            simulated_seconds,
        });
    }
    Ok(residuals)
}
