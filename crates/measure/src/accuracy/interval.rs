//! Intervals of ratios that were seen.

use serde::{Deserialize, Serialize};

/// Share of ratios that an interval is to hold.
pub const CONFIDENCE: f64 = 0.8;

/// Least number of ratios for which an interval can be stated.
pub const CASES_MIN: usize = 9;

/// Ratios of measured to predicted seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// Begin of the interval that holds a further ratio with a probability of [`CONFIDENCE`].
    pub low: f64,
    /// Its end.
    pub high: f64,
    /// Median of the relative errors of predictions, without their signs.
    pub median_error: f64,
    /// Ratios from which it follows.
    pub cases: usize,
}

impl Interval {
    /// Returns the interval that follows from ratios; none from fewer than [`CASES_MIN`].
    ///
    /// Of n ratios and a further one, all orders are equally probable (split conformal prediction:
    /// Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005).
    pub(super) fn of(mut ratios: Vec<f64>) -> Option<Self> {
        if ratios.len() < CASES_MIN {
            return None;
        }
        ratios.sort_by(f64::total_cmp);
        let places = (ratios.len() + 1) as f64;
        let tail = (1.0 - CONFIDENCE) / 2.0;
        // Rounding must not take a place away.
        let low = (places * tail + 1e-9).floor() as usize;
        let errors = ratios.iter().map(|ratio| (1.0 / ratio - 1.0).abs()).collect();
        Some(Self {
            low: ratios[low.max(1) - 1],
            high: ratios[ratios.len() - low.max(1)],
            median_error: median(errors),
            cases: ratios.len(),
        })
    }
}

/// Returns the median of values; 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the interval holds a further ratio as often as it says, and is that of the places.
    use super::*;
    use units::SplitMix64;

    #[test]
    fn places_are_those_of_the_tails() {
        let ratios = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(Interval::of(ratios(8)), None);
        let of = |count| Interval::of(ratios(count)).map(|it| (it.low, it.high)).unwrap();
        assert_eq!(of(9), (1.0, 9.0));
        assert_eq!(of(18), (1.0, 18.0));
        assert_eq!(of(19), (2.0, 18.0));
        assert_eq!(of(39), (4.0, 36.0));
    }

    #[test]
    fn a_further_ratio_lies_inside_as_often_as_stated() {
        let mut numbers = SplitMix64::new(7);
        let mut next = || 0.5 + (numbers.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let inside = (0..4000).filter(|_| {
            let interval = Interval::of((0..19).map(|_| next()).collect()).unwrap();
            (interval.low..=interval.high).contains(&next())
        });
        let share = inside.count() as f64 / 4000.0;
        assert!((0.77..=0.83).contains(&share), "{share}");
    }
}
