//! The two numbers of a calibration that are fitted.
//!
//! One rank and one server at a time, as in the [operations](super::anchors), leave caches and
//! memory to each other. Several ranks and servers at the same time evict each other's lines, wait
//! for the same memory and switch between threads, so that their work takes longer: by one factor
//! for copies between processes, which servers make, and by another one for all other work.

use super::residuals::Residual;
use interface::UserError;
use serde::{Deserialize, Serialize};

/// Factors of costs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loads {
    /// Of copies between processes and of the disks' threads.
    pub copies: f64,
    /// Of all other work of processors.
    pub rest: f64,
}

/// Steps of the fit; each one of them is nearly exact.
const STEPS: usize = 4;

/// Largest factor that is believed, and inverse of the smallest.
const LOAD_MAX: f64 = 3.0;

/// Logarithm of the change by which the effect of a factor is found.
const CHANGE: f64 = 0.1;

/// Weight of small changes against small residuals: without it, factors that have the same effect
/// would run away from each other.
const DAMPING: f64 = 0.02;

impl Loads {
    const NONE: Self = Self { copies: 1.0, rest: 1.0 };

    /// Returns the factors multiplied by the exponential function of these numbers.
    fn changed(self, [copies, rest]: [f64; 2]) -> Self {
        let bounded = |factor: f64| factor.clamp(1.0 / LOAD_MAX, LOAD_MAX);
        Self { copies: bounded(self.copies * copies.exp()), rest: bounded(self.rest * rest.exp()) }
    }

    fn rounded(self) -> Self {
        let rounded = |factor: f64| (factor * 100.0).round() / 100.0;
        Self { copies: rounded(self.copies), rest: rounded(self.rest) }
    }
}

/// Returns the loads, in hundredths, with which simulated programs take as long as real ones, by
/// the least squares of the logarithms of their ratios (Gauss and Newton). `simulate` returns the
/// seconds of all programs under loads.
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
    let mut loads = Loads::NONE;
    for _ in 0..STEPS {
        let here = logarithms(loads)?;
        let effects =
            [logarithms(loads.changed([CHANGE, 0.0]))?, logarithms(loads.changed([0.0, CHANGE]))?];
        // Normal equations of two unknowns.
        let (mut sums, mut wanted) = ([[DAMPING, 0.0], [0.0, DAMPING]], [0.0; 2]);
        for (index, real) in real.iter().enumerate() {
            let residual = real.real_seconds.ln() - here[index];
            let effect =
                [0, 1].map(|factor: usize| (effects[factor][index] - here[index]) / CHANGE);
            for row in 0..2 {
                wanted[row] += effect[row] * residual;
                for column in 0..2 {
                    sums[row][column] += effect[row] * effect[column];
                }
            }
        }
        let [[a, b], [c, d]] = sums;
        let determinant = a * d - b * c;
        let change = [
            (wanted[0] * d - wanted[1] * b) / determinant,
            (wanted[1] * a - wanted[0] * c) / determinant,
        ];
        loads = loads.changed(change);
    }
    Ok(loads.rounded())
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

    /// Programs with shares of both kinds of work, and a tenth that is that of the medium.
    fn mixed(Loads { copies, rest }: Loads) -> Vec<f64> {
        vec![1.0 + 8.0 * copies + rest, 0.2 + 0.4 * copies + 1.4 * rest, 3.0 + 5.0 * rest]
    }

    #[test]
    fn loads_are_found() {
        for (copies, rest) in [(1.4, 1.4), (0.8, 1.5), (1.6, 0.7)] {
            let loads = Loads { copies, rest };
            let found = fit(&real(mixed(loads)), |loads| Ok(mixed(loads))).unwrap();
            assert!((found.copies / copies - 1.0).abs() < 0.02, "{found:?} for {loads:?}");
            assert!((found.rest / rest - 1.0).abs() < 0.02, "{found:?} for {loads:?}");
        }
    }

    #[test]
    fn loads_of_the_same_effect_stay_together() {
        let alike = |Loads { copies, rest }: Loads| vec![copies + rest, 2.0 * (copies + rest)];
        let found = fit(&real(vec![3.0, 6.0]), |loads| Ok(alike(loads))).unwrap();
        assert!((found.copies - 1.5).abs() < 0.02 && (found.rest - 1.5).abs() < 0.02, "{found:?}");
        let most = fit(&real(vec![1e9, 1e9]), |loads| Ok(alike(loads))).unwrap();
        assert_eq!((most.copies, most.rest), (3.0, 3.0));
    }
}
