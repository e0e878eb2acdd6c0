//! The demerit figure: arithmetic on two distributions.
//!
//! C. Ruemmler and J. Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994,
//! define it as the root mean square of the horizontal distances between the two distribution
//! curves (as restated in the manual of DiskSim 4.0, section 6). It compares distributions, not
//! requests one by one; a perfect model has 0.

/// Demerit of two sorted lists, in their unit. If one list is longer, the other is interpolated at
/// the same fractions. Zero when either is empty.
pub(super) fn demerit(one: &[u64], other: &[u64]) -> f64 {
    let count = one.len().max(other.len());
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let distance = |index: usize| {
        if one.len() == other.len() {
            return one[index].abs_diff(other[index]) as f64;
        }
        let fraction = (index as f64 + 0.5) / count as f64;
        quantile(one, fraction) - quantile(other, fraction)
    };
    let squares: f64 = (0..count).map(|index| distance(index).powi(2)).sum();
    (squares / count as f64).sqrt()
}

/// Value that `fraction` of a sorted list does not exceed. Value number `i` of `n` has fraction `(i
/// + 1/2) / n`; values between are interpolated linearly. Zero for an empty list.
pub(super) fn quantile(sorted: &[u64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = (fraction * sorted.len() as f64 - 0.5).clamp(0.0, last as f64);
    let below = place.floor() as usize;
    let (low, high) = (sorted[below] as f64, sorted[(below + 1).min(last)] as f64);
    low + (high - low) * (place - below as f64)
}

/// Mean of a list; zero when it is empty.
pub(super) fn mean(values: &[u64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that equal distributions have demerit 0 and a shift has exactly itself.
    #[test]
    fn equal_and_shifted() {
        let list: Vec<u64> = (0..1_000).map(|index| index * index % 7_919).collect();
        let mut list = list;
        list.sort_unstable();
        let shifted: Vec<u64> = list.iter().map(|value| value + 500).collect();
        assert_eq!(demerit(&list, &list), 0.0);
        assert_eq!(demerit(&list, &shifted), 500.0);
        assert_eq!(demerit(&shifted, &list), 500.0);
        assert_eq!(demerit(&[], &list), 0.0);
    }

    /// Proves the root of the mean square, and not a mean of distances.
    #[test]
    fn far_points_count_more() {
        assert_eq!(demerit(&[10, 20, 30, 40], &[10, 20, 30, 48]), 4.0);
    }

    /// Proves that lists of different lengths that are the same distribution differ by little, and
    /// that a shift is found between them.
    #[test]
    fn counts_may_differ() {
        let long: Vec<u64> = (0..10_000).map(|index| index * 2).collect();
        let short: Vec<u64> = (0..100).map(|index| index * 200 + 99).collect();
        assert!(demerit(&long, &short) < 10.0, "{}", demerit(&long, &short));
        let shifted: Vec<u64> = short.iter().map(|value| value + 1_000).collect();
        assert!((demerit(&long, &shifted) - 1_000.0).abs() < 2.0);
    }

    /// Proves quantiles at the ends, in the middle, and of one value.
    #[test]
    fn quantiles() {
        assert_eq!(quantile(&[7], 0.3), 7.0);
        assert_eq!(quantile(&[10, 20], 0.5), 15.0);
        assert_eq!((quantile(&[10, 20], 0.0), quantile(&[10, 20], 1.0)), (10.0, 20.0));
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
