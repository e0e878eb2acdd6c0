//! Coordinate descent over positive integers.

/// How far to go.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// What each value is tried times and over, in percent, one after the other.
    pub(super) factors_percent: &'a [u64],
    /// How often all values are gone through with a factor, at most.
    pub(super) rounds_max: u32,
}

/// One value was tried larger and smaller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Step<S> {
    /// By which factor, in percent.
    pub(super) factor_percent: u64,
    /// The number of the value.
    pub(super) coordinate: usize,
    /// What it was.
    pub(super) from: u64,
    /// What it is now: the same, if neither was better.
    pub(super) to: u64,
    /// The score with that.
    pub(super) score: S,
}

/// Where it led.
pub(super) struct Descent<const N: usize, S> {
    pub(super) result: [u64; N],
    pub(super) score_at_start: S,
    pub(super) score_of_result: S,
    pub(super) steps: Vec<Step<S>>,
}

/// Tries each value in turn larger and smaller by a factor, and takes the better of both if it is
/// better than what there is; when no value moves any more, or after enough rounds, goes on with
/// the next factor. `scores` rates several choices at once; less is better.
///
/// # Errors
/// The first that `scores` has.
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
    //! Proves: a bowl is descended to its bottom, steps are told as they were, an error ends it,
    //! and at the bottom nothing moves.
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
