//! Coordinate descent over positive integers.

/// Limits of a descent.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// Factors, in percent, by which each value is multiplied and divided, one after the other.
    pub(super) factors_percent: &'a [u64],
    /// Maximum number of passes over all values with one factor.
    pub(super) rounds_max: u32,
}

/// One step: a value was tried larger and smaller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Step<S> {
    /// Factor, in percent.
    pub(super) factor_percent: u64,
    /// Index of the value.
    pub(super) coordinate: usize,
    /// Value before the step.
    pub(super) from: u64,
    /// Value after the step; unchanged if neither was better.
    pub(super) to: u64,
    /// Score after the step.
    pub(super) score: S,
}

/// Result of a descent.
pub(super) struct Descent<const N: usize, S> {
    pub(super) result: [u64; N],
    pub(super) score_at_start: S,
    pub(super) score_of_result: S,
    pub(super) steps: Vec<Step<S>>,
}

/// Tries each value in turn larger and smaller by a factor, and keeps the better one if it improves
/// the score. When no value moves any more, or after enough passes, continues with the next factor.
/// `scores` rates several choices at once; less is better.
///
/// # Errors
/// The first error of `scores`.
pub(super) fn descend<const N: usize, S: PartialOrd + Copy, E>(
    start: [u64; N],
    limits: Limits<'_>,
    mut scores: impl FnMut(&[[u64; N]]) -> Result<Vec<S>, E>,
) -> Result<Descent<N, S>, E> {
    let score_at_start = scores(&[start])?[0];
    let (mut result, mut score) = (start, score_at_start);
    let mut steps = Vec::new();
    for &factor_percent in limits.factors_percent {
        for _ in 0..limits.rounds_max {
            let before = result;
            for coordinate in 0..N {
                let from = result[coordinate];
                let choices = [from * factor_percent / 100, from * 100 / factor_percent];
                let choices = choices.map(|value| with(result, coordinate, value.max(1)));
                for (choice, rated) in choices.into_iter().zip(scores(&choices)?) {
                    if rated < score {
                        (result, score) = (choice, rated);
                    }
                }
                let to = result[coordinate];
                steps.push(Step { factor_percent, coordinate, from, to, score });
            }
            if result == before {
                break;
            }
        }
    }
    Ok(Descent { result, score_at_start, score_of_result: score, steps })
}

fn with<const N: usize>(mut values: [u64; N], coordinate: usize, value: u64) -> [u64; N] {
    values[coordinate] = value;
    values
}

#[cfg(test)]
mod tests {
    //! Proves: the minimum of a bowl is found, steps are recorded as they were, an error ends the
    //! descent, and at the minimum nothing moves.
    use super::*;

    const LIMITS: Limits<'static> = Limits { factors_percent: &[200, 110], rounds_max: 20 };

    fn bowl(choices: &[[u64; 2]]) -> Result<Vec<f64>, ()> {
        let distance = |value: u64, best: f64| (value as f64 / best).ln().powi(2);
        Ok(choices.iter().map(|[x, y]| distance(*x, 500.0) + distance(*y, 20_000.0)).collect())
    }

    #[test]
    fn a_bowl_is_descended() {
        let end = descend([7_000, 1_000], LIMITS, bowl).unwrap();
        let near = |value: u64, best: f64| (value as f64 / best - 1.0).abs() < 0.06;
        assert!(near(end.result[0], 500.0) && near(end.result[1], 20_000.0), "{:?}", end.result);
        assert!(end.score_of_result < end.score_at_start);
        let last = end.steps.last().unwrap();
        assert!((last.score - end.score_of_result).abs() < 1e-12);
        let mut values = [7_000, 1_000];
        for step in &end.steps {
            assert_eq!(values[step.coordinate], step.from);
            values[step.coordinate] = step.to;
        }
        assert_eq!(values, end.result);
    }

    #[test]
    fn the_bottom_is_kept() {
        let end = descend([500, 20_000], LIMITS, bowl).unwrap();
        assert_eq!(end.result, [500, 20_000]);
        assert_eq!(end.steps.len(), 4, "one round with each factor");
    }

    #[test]
    fn an_error_ends_it() {
        let mut left = 3;
        let failing = |choices: &[[u64; 1]]| {
            left -= 1;
            if left == 0 { Err("no") } else { Ok(vec![choices[0][0] as f64; choices.len()]) }
        };
        assert_eq!(descend([9], LIMITS, failing).err(), Some("no"));
    }
}
