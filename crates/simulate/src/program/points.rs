//! Points of a what-if: a program on every combination of the values that a user lists.

use super::run::{ProgramOutcome, check_program, simulate_program};
use crate::own_models::OwnModels;
use crate::plan::{PlanTemplate, Setting};
use crate::scenario::Scenario;
use interface::{ExitCode, UserError};
use policy::ReplacementPolicies;
use program::Program;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Most points of one what-if.
pub const POINTS_MAX: usize = 4096;

/// Values of one key, of which each makes points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Key of a scenario, such as `servers`.
    pub key: String,
    /// Values, as an option of the command line gives them.
    pub values: Vec<String>,
}

/// One point: a scenario, and what it has of each axis.
#[derive(Clone, Debug)]
pub struct Point {
    /// Values of the axes, in their order.
    pub values: Vec<String>,
    /// The machine, its servers and the strategy.
    pub scenario: Scenario,
}

/// Makes the points of axes: all combinations, the last axis varying fastest. `file` is a scenario
/// file, which is read once, and `fixed` are settings of all points.
///
/// # Errors
/// Fails when a point makes no sense, or there are more than [`POINTS_MAX`].
pub fn points(
    file: Option<&Path>,
    fixed: &[Setting],
    axes: &[Axis],
    policies: &ReplacementPolicies,
    models: &OwnModels,
) -> Result<Vec<Point>, UserError> {
    let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= POINTS_MAX).ok_or_else(|| {
        UserError::usage(
            "there are too many points",
            format!("the lists have more than {POINTS_MAX} combinations"),
            "give shorter lists",
        )
    })?;
    let template = PlanTemplate::read(file, policies, models)?;
    let mut all = Vec::with_capacity(count);
    for number in 0..count {
        let mut rest = number;
        let mut values = Vec::with_capacity(axes.len());
        for axis in axes.iter().rev() {
            values.push(axis.values[rest % axis.values.len()].clone());
            rest /= axis.values.len();
        }
        values.reverse();
        let mut settings = fixed.to_vec();
        settings.extend(
            axes.iter().zip(&values).map(|(axis, value)| Setting::option(&axis.key, value)),
        );
        let scenarios = template.plan(settings)?.scenarios();
        // A program has its own accesses; cases of the plan differ in those, and in the strategy.
        let scenario = scenarios.into_iter().next().ok_or_else(|| {
            UserError::usage("a point has no strategy", "its list is empty", "name a strategy")
        })?;
        all.push(Point { values, scenario });
    }
    Ok(all)
}

/// Simulates a program at every point, several at the same time. `progress` is told the number of
/// points done, and ends the simulation with [`ControlFlow::Break`].
///
/// # Errors
/// A point that makes no sense or may take too much memory; else the failure of the first point
/// that fails, in their order.
pub fn simulate_points(
    points: &[Point],
    program: &Arc<Program>,
    jobs: Option<usize>,
    progress: &(dyn Fn(usize) -> ControlFlow<()> + Sync),
) -> Result<Vec<ProgramOutcome>, UserError> {
    // All points are refused or none, before the first takes its time.
    points.iter().try_for_each(|point| check_program(&point.scenario, program))?;
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = jobs.unwrap_or_else(processors).clamp(1, points.len().max(1));
    let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let ended: Mutex<Vec<Option<Result<ProgramOutcome, UserError>>>> =
        Mutex::new(points.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while !is_stopped.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(number) else { return };
                    let seed = point.scenario.seed;
                    let outcome = simulate_program(&point.scenario, program, seed);
                    let failed = outcome.is_err();
                    let done = {
                        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                        ended[number] = Some(outcome);
                        ended.iter().flatten().count()
                    };
                    if progress(done).is_break() || failed {
                        is_stopped.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    let stopped = || {
        UserError::new(
            ExitCode::Failed,
            "the simulation was stopped",
            "its caller ended it",
            "start it again",
        )
    };
    let mut outcomes = Vec::new();
    let mut has_stopped = false;
    for outcome in ended {
        match outcome {
            Some(Err(error)) => return Err(error),
            Some(Ok(outcome)) => outcomes.push(outcome),
            None => has_stopped = true,
        }
    }
    if has_stopped { Err(stopped()) } else { Ok(outcomes) }
}
