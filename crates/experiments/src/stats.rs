//! Statistics of comparisons.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Probability by chance below which a difference is significant: the 95 % confidence level of the
/// papers (TR94-226, Tables 3 and 4).
const CHANCE_MAX: f64 = 0.05;

/// Summary of repeated measurements.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Number of values.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, with the divisor n - 1; zero for a single value.
    pub deviation: f64,
}

impl Sample {
    /// Summarises values; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { count, mean, deviation })
    }

    /// Returns the standard deviation over the mean: the papers' cv.
    pub fn coefficient_of_variation(&self) -> f64 {
        self.deviation / self.mean
    }

    /// Returns the variance of the mean.
    fn mean_variance(&self) -> f64 {
        self.deviation.powi(2) / self.count as f64
    }
}

/// Ratio of two means, and its significance.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// Ratio of the first mean to the second.
    pub ratio: f64,
    /// Probability of a difference at least as large if both had the same mean, by Welch's
    /// two-sided t-test; `None` when either has fewer than two values.
    pub chance: Option<f64>,
    /// True if `chance` is below 5 %.
    pub significant: Option<bool>,
}

impl Ratio {
    /// Returns the ratio of the mean of `a` to that of `b`.
    pub fn of(a: &Sample, b: &Sample) -> Self {
        let chance = chance(a, b);
        let significant = chance.map(|chance| chance < CHANCE_MAX);
        Self { ratio: a.mean / b.mean, chance, significant }
    }
}

/// Performs Welch's two-sided t-test, for samples whose variances may differ: t is the difference
/// over the root of the summed variances of the means, and the degrees of freedom are those of
/// Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947). Values without variance differ for
/// certain, or not at all.
fn chance(a: &Sample, b: &Sample) -> Option<f64> {
    if a.count < 2 || b.count < 2 {
        return None;
    }
    let (of_a, of_b) = (a.mean_variance(), b.mean_variance());
    let variance = of_a + of_b;
    if variance == 0.0 {
        return Some(if a.mean == b.mean { 1.0 } else { 0.0 });
    }
    let t = (a.mean - b.mean) / variance.sqrt();
    let freedom = variance.powi(2)
        / (of_a.powi(2) / (a.count - 1) as f64 + of_b.powi(2) / (b.count - 1) as f64);
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(2.0 * student.cdf(-t.abs()))
}

/// Returns the middle value, or the mean of the two in the middle; `None` when there are none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper))
}

/// Speed-up over many cases: TOCS 1997, Table III.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Improvement {
    /// Smallest ratio.
    pub minimum: f64,
    /// Geometric mean of all ratios.
    pub geometric_mean: f64,
    /// Largest ratio.
    pub maximum: f64,
}

impl Improvement {
    /// Summarises ratios, which must be positive; `None` when there are none.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        if ratios.is_empty() {
            return None;
        }
        let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        Some(Self {
            minimum: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            geometric_mean: (logarithms / ratios.len() as f64).exp(),
            maximum: ratios.iter().copied().fold(0.0, f64::max),
        })
    }
}

#[cfg(test)]
mod tests {
    //! Proves: every statistic equals a value computed by hand or taken from a printed table.
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::of(values).unwrap()
    }

    #[test]
    fn means_and_deviations() {
        // Squares of the distances from 5: 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32; 32 / 7.
        let eight = sample(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((eight.count, eight.mean), (8, 5.0));
        assert!((eight.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((eight.coefficient_of_variation() - 0.427_617_987).abs() < 1e-9);
        assert_eq!(sample(&[3.0]), Sample { count: 1, mean: 3.0, deviation: 0.0 });
        assert_eq!(Sample::of(&[]), None);
    }

    #[test]
    fn welch_agrees_with_a_textbook_case() {
        // Variances 2.5 and 10: t = -3 / sqrt(0.5 + 2) = -1.8974, freedom = 2.5^2 / (0.5^2 / 4 +
        // 2^2 / 4) = 5.8824; R's t.test(1:5, 2 * 1:5) prints p-value = 0.1075.
        let ratio = Ratio::of(&sample(&[1., 2., 3., 4., 5.]), &sample(&[2., 4., 6., 8., 10.]));
        assert_eq!((ratio.ratio, ratio.significant), (0.5, Some(false)));
        assert!((ratio.chance.unwrap() - 0.107_531_195).abs() < 1e-6);
    }

    #[test]
    fn five_trials_each_turn_significant_at_the_tabled_quantile() {
        // Equal variances of five values each have 8 degrees of freedom: t(0.975) = 2.306. The
        // variance of 1..5 is 2.5, so t is the distance of the means, as 2.5 / 5 + 2.5 / 5 = 1.
        let at = |distance: f64| {
            let low = [11., 12., 13., 14., 15.];
            Ratio::of(&sample(&low.map(|value| value + distance)), &sample(&low)).significant
        };
        assert_eq!((at(2.305), at(2.308), at(-2.308)), (Some(false), Some(true), Some(true)));
    }

    #[test]
    fn without_spread_or_a_second_trial_nothing_is_tested() {
        let (five, six) = (sample(&[5., 5.]), sample(&[6., 6.]));
        assert_eq!(Ratio::of(&six, &five).significant, Some(true));
        assert_eq!(Ratio::of(&five, &five).significant, Some(false));
        assert_eq!(Ratio::of(&sample(&[6.]), &five).significant, None);
    }

    #[test]
    fn the_middle_of_a_list() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn improvements_have_a_geometric_mean() {
        // The cube root of 1 * 2 * 4.
        let improvement = Improvement::of(&[4.0, 1.0, 2.0]).unwrap();
        assert_eq!((improvement.minimum, improvement.maximum), (1.0, 4.0));
        assert!((improvement.geometric_mean - 2.0).abs() < 1e-12);
        assert_eq!(Improvement::of(&[]), None);
    }
}
