//! Splitting of a number into nearly equal factors, for shapes and grids.
//!
//! Invariant: the product of the factors is the number. The largest factor comes first.

/// Returns `parts` factors of `number`, nearly equal, the largest first.
///
/// Repeatedly splits off the largest divisor that is not above the root. For two parts this
/// gives the shapes of TOCS 1997, Table II: 1,310,720 = 1280 x 1024 and 1280 = 40 x 32; and the
/// grids: 16 = 4 x 4. Takes at most as many steps as the square root of `number` for each part.
/// Panics when `number` or `parts` is 0.
pub(crate) fn balanced_factors(number: u64, parts: usize) -> Vec<u64> {
    assert!(number > 0 && parts > 0, "only a positive number splits into factors");
    let mut factors = Vec::with_capacity(parts);
    let mut rest = number;
    for left in (2..=parts).rev() {
        let factor = largest_divisor(rest, root(rest, left));
        factors.push(factor);
        rest /= factor;
    }
    factors.push(rest);
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors
}

/// Largest divisor of `number` that is not above `limit`, which must be at least 1.
fn largest_divisor(number: u64, limit: u64) -> u64 {
    (1..=limit).rev().find(|divisor| number.is_multiple_of(*divisor)).unwrap_or(1)
}

/// Largest integer with a `degree`-th power not above `number`; `degree` is at least 2.
fn root(number: u64, degree: usize) -> u64 {
    let degree = u32::try_from(degree).unwrap_or(u32::MAX);
    let fits = |base: u64| base.checked_pow(degree).is_some_and(|power| power <= number);
    let (mut low, mut high) = (1, 1 << 32);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_multiply_and_descend() {
        // Proves the invariant for every number to 2000 and up to five parts.
        for number in 1..=2000 {
            for parts in 1..=5 {
                let factors = balanced_factors(number, parts);
                assert_eq!(factors.len(), parts);
                assert_eq!(factors.iter().product::<u64>(), number);
                assert!(factors.is_sorted_by(|a, b| a >= b), "{number} into {factors:?}");
            }
        }
    }

    #[test]
    fn known_splits() {
        // Proves the rule on the shapes and grids of the papers.
        assert_eq!(balanced_factors(1_310_720, 2), [1280, 1024]);
        assert_eq!(balanced_factors(1280, 2), [40, 32]);
        assert_eq!(balanced_factors(16, 2), [4, 4]);
        assert_eq!(balanced_factors(8, 2), [4, 2]);
        assert_eq!(balanced_factors(7, 2), [7, 1]);
        assert_eq!(balanced_factors(8, 3), [2, 2, 2]);
        assert_eq!(root(u64::MAX, 2), (1 << 32) - 1);
        assert_eq!(root(1 << 60, 3), 1 << 20);
    }
}
