//! Carries out the calibration.

use super::cells::{Cell, Cells};
use super::descent::{Limits, Step, descend};
use interface::UserError;
use simulate::{FittedCosts, Machine, MachineName, Progress};

/// Factors by which each cost is multiplied and divided, first coarse, then finer; in percent.
pub(super) const FACTORS_PERCENT: [u64; 3] = [130, 110, 103];
/// Maximum number of passes over all costs with one factor.
pub(super) const ROUNDS_MAX: u32 = 3;

/// Score of a choice of costs, less is better: the sum of the squares of the logarithms of
/// simulated over published throughput. All cells have the same weight; the limits by which results
/// are judged have none.
pub(super) type Score = f64;

/// Completed calibration.
#[derive(Debug)]
pub struct Calibration {
    pub(super) start: FittedCosts,
    pub(super) result: FittedCosts,
    pub(super) score_at_start: Score,
    pub(super) score_of_result: Score,
    pub(super) steps: Vec<Step<Score>>,
    pub(super) cells_at_start: Vec<Cell>,
    pub(super) cells_of_result: Vec<Cell>,
    /// Number of simulations.
    pub(super) trials: u64,
}

/// Fits the costs, starting from those of the machine as it is, with `jobs` concurrent simulations.
/// `progress` is called after each; their total number is not known in advance. The result does not
/// depend on `jobs`.
///
/// # Errors
/// If a simulation fails.
pub fn calibrate_1994(
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Calibration, UserError> {
    let mut cells = Cells::new(jobs, progress)?;
    let start = FittedCosts::of(&Machine::of(MachineName::Tr94));
    let limits = Limits { factors_percent: &FACTORS_PERCENT, rounds_max: ROUNDS_MAX };
    let score = |choices: &[[u64; 5]]| -> Result<Vec<Score>, UserError> {
        let choices: Vec<FittedCosts> = choices.iter().map(from_array).collect();
        cells.simulate(&choices)?;
        Ok(choices.iter().map(|costs| score_of(&cells.with(costs))).collect())
    };
    let fitted = descend(to_array(&start), limits, score)?;
    let result = from_array(&fitted.result);
    Ok(Calibration {
        start,
        result,
        score_at_start: fitted.score_at_start,
        score_of_result: fitted.score_of_result,
        steps: fitted.steps,
        cells_at_start: cells.with(&start),
        cells_of_result: cells.with(&result),
        trials: cells.trials(),
    })
}

/// Names of the costs, in the order of [`to_array`].
pub(super) const NAMES: [&str; 5] =
    ["client_read", "client_write", "cache_read", "piece_per_dimension", "get_answer"];

pub(super) fn to_array(costs: &FittedCosts) -> [u64; 5] {
    [
        costs.client_read_ns,
        costs.client_write_ns,
        costs.cache_read_ns,
        costs.piece_per_dimension_ns,
        costs.get_answer_ns,
    ]
}

fn from_array(costs: &[u64; 5]) -> FittedCosts {
    let [client_read_ns, client_write_ns, cache_read_ns, piece_per_dimension_ns, get_answer_ns] =
        *costs;
    FittedCosts {
        client_read_ns,
        client_write_ns,
        cache_read_ns,
        piece_per_dimension_ns,
        get_answer_ns,
    }
}

fn score_of(cells: &[Cell]) -> Score {
    cells.iter().map(|cell| cell.log_ratio().powi(2)).sum()
}
