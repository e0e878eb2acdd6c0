//! The one number of a calibration that is fitted.
//!
//! One rank and one server at a time, as in the [operations](super::anchors), leave caches and
//! memory to each other. Several ranks and servers at the same time evict each other's lines and switch
//! between threads: all their work takes longer by about the same factor, the *load*.

use super::residuals::Residual;
use interface::UserError;

/// Steps of the fit; each one of them is nearly exact.
const STEPS: usize = 4;

/// Largest factor that is believed.
const LOAD_MAX: f64 = 3.0;

/// Returns the load with which simulated programs take as long as real ones, in the geometric mean,
/// in hundredths. `simulate` returns the seconds of all programs under a load.
///
/// # Errors
/// Those of `simulate`.
pub(super) fn fit(
    real: &[Residual],
    mut simulate: impl FnMut(f64) -> Result<Vec<f64>, UserError>,
) -> Result<f64, UserError> {
    let mut load = 1.0_f64;
    for _ in 0..STEPS {
        let residuals: Vec<Residual> = real
            .iter()
            .zip(simulate(load)?)
            .map(|(real, simulated_seconds)| Residual { simulated_seconds, ..real.clone() })
            .collect();
        load = (load * mean_factor(&residuals)).clamp(1.0 / LOAD_MAX, LOAD_MAX);
    }
    Ok((load * 100.0).round() / 100.0)
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
    //! Proves: the load is found where times follow it in part, and is bounded.
    use super::*;

    fn real(seconds: &[f64]) -> Vec<Residual> {
        let residual = |seconds: &f64| Residual {
            pattern: "rb".to_owned(),
            record_bytes: 8,
            strategy: "disk-directed".to_owned(),
            servers: 1,
            ranks: 1,
            real_seconds: *seconds,
            real_least: *seconds,
            real_most: *seconds,
            simulated_seconds: 0.0,
        };
        seconds.iter().map(residual).collect()
    }

    #[test]
    fn the_load_is_found() {
        // A tenth of each time is that of the medium.
        let simulate = |load: f64| Ok(vec![1.0 + 9.0 * load, 0.2 + 1.8 * load]);
        assert_eq!(fit(&real(&[1.0 + 9.0 * 1.4, 0.2 + 1.8 * 1.4]), simulate).unwrap(), 1.4);
        assert_eq!(fit(&real(&[1.0 + 9.0 * 0.7, 0.2 + 1.8 * 0.7]), simulate).unwrap(), 0.7);
        assert_eq!(fit(&real(&[1e9, 1e9]), simulate).unwrap(), 3.0);
    }
}
