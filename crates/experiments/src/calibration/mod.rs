//! Fitting the costs of the 1994 machine that nobody published, to the contiguous 8-byte cyclic
//! cells of TR94-226, Table 4, and to nothing else.
//!
//! The method is coordinate descent: one cost after the other is tried larger and smaller by a
//! factor, and what makes the [`Score`] better is kept. Each cell is one trial of the full file.

mod cells;
mod descent;
mod report;

use crate::queue::Progress;
use cells::{Cell, Cells};
use descent::{Limits, Step, descend};
use launch::{FittedCosts, LaunchError, Machine, MachineName};

/// What each cost is tried times and over, first coarse, then fine; in percent.
const FACTORS_PERCENT: [u64; 2] = [130, 110];
/// How often all costs are gone through with a factor, at most.
const ROUNDS_MAX: u32 = 3;

/// The most that a caching cell may differ from what is published, in percent.
const CELL_PERCENT_MAX: f64 = 35.0;
/// The most that the middle one of the caching cells may differ, in percent.
const MEDIAN_PERCENT_MAX: f64 = 10.0;
/// The most that the largest ratio of disk-directed to caching may differ, in percent.
const RATIO_PERCENT_MAX: f64 = 15.0;

/// How bad a choice of costs is: the fields in the order of their importance.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
struct Score {
    /// By how much caching cells and their median are beyond their limits, in percent.
    excess_percent: f64,
    /// By how much the ratio of 8-byte `wbc`, the largest, is beyond its limit, in percent.
    ratio_excess_percent: f64,
    /// The sum of the squares of the logarithms of simulated over published throughput.
    squares: f64,
}

/// A calibration that was carried out.
#[derive(Debug)]
pub struct Calibration {
    start: FittedCosts,
    result: FittedCosts,
    score_at_start: Score,
    score_of_result: Score,
    steps: Vec<Step<Score>>,
    cells_at_start: Vec<Cell>,
    cells_of_result: Vec<Cell>,
    /// Simulations that it took.
    trials: u64,
}

/// Fits the costs, starting from those of the machine as it is, with `jobs` simulations at once.
/// `progress` hears of each that ends; how many there will be is not known before. The result is
/// the same whatever the number of jobs.
///
/// # Errors
/// When a simulation fails.
pub fn calibrate_1994(
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Calibration, LaunchError> {
    let mut cells = Cells::new(jobs, progress)?;
    let start = FittedCosts::of(&Machine::of(MachineName::Tr94));
    let limits = Limits { factors_percent: &FACTORS_PERCENT, rounds_max: ROUNDS_MAX };
    let score = |choices: &[[u64; 5]]| -> Result<Vec<Score>, LaunchError> {
        let choices: Vec<FittedCosts> = choices.iter().map(from_array).collect();
        cells.simulate(&choices)?;
        Ok(choices.iter().map(|costs| Score::of(&cells.with(costs))).collect())
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

/// The names of the costs, in the order of [`to_array`].
const NAMES: [&str; 5] =
    ["client_read", "client_write", "cache_read", "piece_per_dimension", "get_answer"];

fn to_array(costs: &FittedCosts) -> [u64; 5] {
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

impl Score {
    fn of(cells: &[Cell]) -> Self {
        let beyond = |value: f64, limit: f64| (value.abs() - limit).max(0.0);
        let caching: Vec<f64> = cells
            .iter()
            .filter(|cell| cell.is_caching())
            .map(|cell| cell.error_percent().abs())
            .collect();
        let cell_excess: f64 = caching.iter().map(|error| beyond(*error, CELL_PERCENT_MAX)).sum();
        let median = crate::stats::median(&caching).unwrap_or(0.0);
        let ratio = cells::ratio_error_percent(cells).unwrap_or(0.0);
        Self {
            excess_percent: cell_excess + beyond(median, MEDIAN_PERCENT_MAX),
            ratio_excess_percent: beyond(ratio, RATIO_PERCENT_MAX),
            squares: cells.iter().map(|cell| cell.log_ratio().powi(2)).sum(),
        }
    }
}
