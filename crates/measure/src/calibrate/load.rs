//! The four numbers of a calibration that are fitted.
//!
//! One rank and one server at a time, as in the [operations](super::anchors), leave caches and
//! memory to each other. Several ranks and servers at the same time evict each other's lines, wait
//! for the same memory and switch between threads, so that their work takes longer: by one factor
//! for what costs time for each byte or piece, by another one for threads that wake one another,
//! by a third one for small calls that need no message, and by a fourth one for all other work.

use super::residuals::Residual;
use interface::UserError;
use serde::{Deserialize, Serialize};

/// Factors of costs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loads {
    /// Of what costs time for each byte or piece, and of the disks' threads.
    pub copies: f64,
    /// Of idle nodes that wake, and of calls, whose thread hands over to another one.
    pub wakes: f64,
    /// Of small calls that need no message, and of their bytes.
    pub alone: f64,
    /// Of all other work of processors.
    pub rest: f64,
}

/// Number of factors.
const FACTORS: usize = 4;

/// Steps of the fit; each one of them is nearly exact, unless a factor comes to its bound.
const STEPS: usize = 8;

/// Share of the squares that a step takes away at least, or the fit ends.
const GAIN_MIN: f64 = 0.005;

/// Difference of sums of squares that says nothing: residuals of 1 %.
const SQUARES_ALIKE: f64 = 0.001;

/// Largest factor that is believed, and inverse of the smallest.
const LOAD_MAX: f64 = 6.0;

/// Logarithm of the change by which the effect of a factor is found.
const CHANGE: f64 = 0.1;

/// Weight of small changes against small residuals: without it, factors that have the same effect
/// would run away from each other.
const DAMPING: f64 = 0.02;

/// Factor by which that weight grows when a step has made the fit worse, and its largest value.
const DAMPED_MORE: f64 = 5.0;
const DAMPING_MAX: f64 = 100.0;

/// Loads from which the fit starts: the squares have several minima, since wakes and other work
/// take part in most programs together.
const STARTS: [Loads; 4] = [
    Loads::NONE,
    Loads { wakes: 4.0, ..Loads::NONE },
    Loads { rest: 3.0, ..Loads::NONE },
    Loads { copies: 1.5, wakes: 2.0, alone: 3.0, rest: 2.0 },
];

impl Loads {
    const NONE: Self = Self { copies: 1.0, wakes: 1.0, alone: 1.0, rest: 1.0 };

    /// Returns the factors after `map`.
    fn map(self, mut map: impl FnMut(usize, f64) -> f64) -> Self {
        let Self { copies, wakes, alone, rest } = self;
        let (copies, wakes) = (map(0, copies), map(1, wakes));
        Self { copies, wakes, alone: map(2, alone), rest: map(3, rest) }
    }

    /// Returns the factors multiplied by the exponential function of these numbers.
    fn changed(self, by: [f64; FACTORS]) -> Self {
        self.map(|factor, load| (load * by[factor].exp()).clamp(1.0 / LOAD_MAX, LOAD_MAX))
    }

    /// True if a factor is the largest that is believed.
    fn is_largest(self, index: usize) -> bool {
        let Self { copies, wakes, alone, rest } = self;
        [copies, wakes, alone, rest][index] * CHANGE.exp() > LOAD_MAX
    }

    fn rounded(self) -> Self {
        self.map(|_, load| (load * 100.0).round() / 100.0)
    }
}

/// Solves linear equations with a symmetric, positive definite matrix, by elimination. The last
/// number of each is its right side.
fn solve(mut equations: [[f64; FACTORS + 1]; FACTORS]) -> [f64; FACTORS] {
    for pivot in 0..FACTORS {
        let (done, below) = equations.split_at_mut(pivot + 1);
        for equation in below {
            let share = equation[pivot] / done[pivot][pivot];
            equation
                .iter_mut()
                .zip(&done[pivot])
                .for_each(|(value, above)| *value -= share * above);
        }
    }
    let mut solution = [0.0; FACTORS];
    for (row, equation) in equations.iter().enumerate().rev() {
        // Those that are not known yet are 0.
        let known: f64 = equation.iter().zip(solution).map(|(factor, known)| factor * known).sum();
        solution[row] = (equation[FACTORS] - known) / equation[row];
    }
    solution
}

/// Returns the normal equations of a step from the logarithms `here`, on which the logarithm of
/// each factor has these effects.
fn damped(
    real: &[Residual],
    here: &[f64],
    effects: &[Vec<f64>],
    damping: f64,
) -> [[f64; FACTORS + 1]; FACTORS] {
    let mut equations = [[0.0; FACTORS + 1]; FACTORS];
    for (index, real) in real.iter().enumerate() {
        let residual = real.real_seconds.ln() - here[index];
        let effect: [f64; FACTORS] = std::array::from_fn(|factor| effects[factor][index]);
        for (equation, own) in equations.iter_mut().zip(effect) {
            let others = effect.into_iter().chain([residual]);
            equation.iter_mut().zip(others).for_each(|(sum, other)| *sum += own * other);
        }
    }
    for (factor, equation) in equations.iter_mut().enumerate() {
        equation[factor] += damping;
    }
    equations
}

/// Returns the sum of the squares of the logarithms of ratios between `real` and simulated times,
/// whose logarithms are `here`.
fn squares(real: &[Residual], here: &[f64]) -> f64 {
    let residuals = real.iter().zip(here).map(|(real, here)| real.real_seconds.ln() - here);
    residuals.map(|residual| residual * residual).sum()
}

/// Returns the loads, in hundredths, with which simulated programs take as long as real ones, by
/// the least squares of the logarithms of their ratios (Levenberg and Marquardt), the best of
/// several starts. `simulate` returns the seconds of all programs under loads.
///
/// # Errors
/// Those of `simulate`.
pub(super) fn fit(
    real: &[Residual],
    mut simulate: impl FnMut(Loads) -> Result<Vec<f64>, UserError>,
) -> Result<Loads, UserError> {
    let mut logarithms = |loads: Loads| {
        let seconds = simulate(loads)?;
        let logarithm = |seconds: &f64| seconds.max(f64::MIN_POSITIVE).ln();
        Ok::<_, UserError>(seconds.iter().map(logarithm).collect::<Vec<f64>>())
    };
    let (mut best, mut least) = (Loads::NONE, f64::INFINITY);
    for start in STARTS {
        let (loads, left) = fit_from(start, real, &mut logarithms)?;
        if left + SQUARES_ALIKE < least {
            (best, least) = (loads, left);
        }
    }
    Ok(best.rounded())
}

/// Returns the loads at the minimum that is found from `loads`, and the squares that are left.
///
/// # Errors
/// Those of `logarithms`.
fn fit_from(
    mut loads: Loads,
    real: &[Residual],
    mut logarithms: impl FnMut(Loads) -> Result<Vec<f64>, UserError>,
) -> Result<(Loads, f64), UserError> {
    let mut damping = DAMPING;
    let mut here = logarithms(loads)?;
    for _ in 0..STEPS {
        let mut effects = Vec::new();
        for factor in 0..FACTORS {
            let mut change = [0.0; FACTORS];
            change[factor] = if loads.is_largest(factor) { -CHANGE } else { CHANGE };
            let there = logarithms(loads.changed(change))?;
            let effect = |(there, here): (&f64, &f64)| (there - here) / change[factor];
            effects.push(there.iter().zip(&here).map(effect).collect());
        }
        let before = squares(real, &here);
        // What makes the fit worse is tried again with a smaller change.
        while damping < DAMPING_MAX {
            let change = solve(damped(real, &here, &effects, damping));
            let changed = loads.changed(change);
            let there = logarithms(changed)?;
            if squares(real, &there) < before {
                (loads, here, damping) = (changed, there, (damping / DAMPED_MORE).max(DAMPING));
                break;
            }
            damping *= DAMPED_MORE;
        }
        if before - squares(real, &here) < before * GAIN_MIN {
            break;
        }
    }
    let left = squares(real, &here);
    Ok((loads, left))
}

/// Returns the geometric mean of the factors by which real programs take longer than simulated
/// ones.
pub(super) fn mean_factor(residuals: &[Residual]) -> f64 {
    let logarithm = |residual: &Residual| {
        (residual.real_seconds / residual.simulated_seconds.max(f64::MIN_POSITIVE)).ln()
    };
    let sum: f64 = residuals.iter().map(logarithm).sum();
    (sum / residuals.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    //! Proves: loads are found where times follow them in part, stay near one another where they
    //! have the same effect, and are bounded.
    use super::*;

    fn real(seconds: Vec<f64>) -> Vec<Residual> {
        let residual = |seconds: f64| Residual {
            pattern: "rb".to_owned(),
            record_bytes: 8,
            file_bytes: 1,
            access: "disk-directed".to_owned(),
            servers: 1,
            ranks: 1,
            real_seconds: seconds,
            real_least: seconds,
            real_most: seconds,
            simulated_seconds: 0.0,
        };
        seconds.into_iter().map(residual).collect()
    }

    /// Programs with shares of all kinds of work, and a tenth that is that of the medium.
    fn mixed(Loads { copies, wakes, alone, rest }: Loads) -> Vec<f64> {
        vec![
            1.0 + 8.0 * copies + rest,
            0.2 + 0.4 * copies + 1.4 * rest,
            3.0 + 5.0 * rest + wakes,
            0.1 + 0.9 * wakes,
            0.1 + 0.3 * rest + 0.8 * alone,
        ]
    }

    #[test]
    fn loads_are_found() {
        for (copies, wakes, alone, rest) in
            [(1.4, 1.4, 1.4, 1.4), (0.8, 2.0, 3.0, 1.5), (1.6, 1.0, 1.0, 0.7)]
        {
            let loads = Loads { copies, wakes, alone, rest };
            let found = fit(&real(mixed(loads)), |loads| Ok(mixed(loads))).unwrap();
            let apart = [found.copies / copies, found.wakes / wakes, found.rest / rest];
            assert!((found.alone / alone - 1.0).abs() < 0.02, "{found:?}");
            assert!(apart.iter().all(|ratio| (ratio - 1.0).abs() < 0.02), "{found:?}");
        }
    }

    #[test]
    fn loads_of_the_same_effect_stay_together() {
        let alike = |Loads { copies, wakes, alone, rest }: Loads| {
            let sum = copies + wakes + alone + rest;
            vec![sum, 2.0 * sum]
        };
        let found = fit(&real(vec![6.0, 12.0]), |loads| Ok(alike(loads))).unwrap();
        for load in [found.copies, found.wakes, found.alone, found.rest] {
            assert!((load - 1.5).abs() < 0.02, "{found:?}");
        }
        let most = fit(&real(vec![1e9, 1e9]), |loads| Ok(alike(loads))).unwrap();
        assert_eq!((most.copies, most.wakes, most.rest), (LOAD_MAX, LOAD_MAX, LOAD_MAX));
    }
}
