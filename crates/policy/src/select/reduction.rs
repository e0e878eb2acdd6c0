//! Counts, extremes, sums and histograms of a number over the records that match.
//!
//! Invariant: the result does not depend on the order in which parts are merged, but for the last
//! bit of a sum of floats in rare cases.

use super::constant::Constant;
use super::expression::{Expression, ExpressionError, ValueKind};
use super::number::Column;
use super::operator::Answers;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use thiserror::Error;

/// Largest number of edges of a histogram.
pub const HISTOGRAM_EDGES_MAX: usize = (1 << 16) + 1;

/// Number to compute from the records that match.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reduction {
    /// Number of records.
    Count,
    /// Smallest value. NaN if there is one, as in NumPy.
    Minimum(Expression),
    /// Largest value. NaN if there is one.
    Maximum(Expression),
    /// Sum of the values: exact for integers; for floats with twice the precision of binary64.
    Sum(Expression),
    /// Number of values between edges. The last bin has its upper edge, too. NaN is in none.
    Histogram {
        /// Value.
        of: Expression,
        /// At least two edges, ascending.
        edges: Vec<f64>,
    },
}

/// Result of a reduction, or of a part of it.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reduced {
    /// Number of records.
    Count(u64),
    /// Smallest value, if there is a record.
    Minimum(Option<Constant>),
    /// Largest value, if there is a record.
    Maximum(Option<Constant>),
    /// Sum of integers.
    IntegerSum(i128),
    /// Sum of floats: the nearest number, and what it lacks.
    FloatSum(f64, f64),
    /// Number of values of each bin.
    Histogram(Vec<u64>),
}

/// Reason for which a reduction is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ReductionError {
    /// Its value cannot be computed.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The edges of a histogram are not numbers that ascend, or too many.
    #[error("a histogram needs 2 to {HISTOGRAM_EDGES_MAX} finite edges that ascend")]
    Edges,
}

/// Number that is needed of each record, and the kinds of its nodes.
pub(super) type Needed = Option<(Expression, Vec<ValueKind>)>;

/// Checked reduction, with its result so far.
pub(super) struct Reducer {
    edges: Vec<f64>,
    /// Bins in a range of length 1, if all have nearly the same width.
    bins_per_unit: Option<f64>,
    reduced: Reduced,
}

impl Reducer {
    /// Checks a reduction. Returns it, and the number of a record that it needs with the kinds of
    /// its nodes.
    pub(super) fn new(
        reduction: Reduction,
        record_bytes: u32,
    ) -> Result<(Self, Needed), ReductionError> {
        let checked = |of: Expression| -> Result<_, ReductionError> {
            let kind = of.validate_number(record_bytes)?;
            let kinds = of.validate(record_bytes)?;
            Ok((Some((of, kinds)), kind))
        };
        let is_float = |kind| matches!(kind, ValueKind::Single | ValueKind::Double);
        let (number, edges, reduced) = match reduction {
            Reduction::Count => (None, Vec::new(), Reduced::Count(0)),
            Reduction::Minimum(of) => (checked(of)?.0, Vec::new(), Reduced::Minimum(None)),
            Reduction::Maximum(of) => (checked(of)?.0, Vec::new(), Reduced::Maximum(None)),
            Reduction::Sum(of) => match checked(of)? {
                (of, kind) if is_float(kind) => (of, Vec::new(), Reduced::FloatSum(0.0, 0.0)),
                (of, _) => (of, Vec::new(), Reduced::IntegerSum(0)),
            },
            Reduction::Histogram { of, edges } => {
                let ascend = edges.windows(2).all(|pair| pair[0] < pair[1]);
                let is_finite = edges.iter().all(|edge| edge.is_finite());
                let fits = (2..=HISTOGRAM_EDGES_MAX).contains(&edges.len());
                if !ascend || !is_finite || !fits {
                    return Err(ReductionError::Edges);
                }
                let bins = edges.len() - 1;
                (checked(of)?.0, edges, Reduced::Histogram(vec![0; bins]))
            }
        };
        let bins_per_unit = bins_per_unit(&edges);
        Ok((Self { edges, bins_per_unit, reduced }, number))
    }

    /// Adds the records of a batch that match.
    pub(super) fn add(&mut self, answers: &Answers) {
        let matches = &answers.selected;
        if let Reduced::Count(count) = &mut self.reduced {
            *count += matches.iter().filter(|is_match| **is_match).count() as u64;
            return;
        }
        let Some(values) = &answers.numbers else { return };
        match &mut self.reduced {
            Reduced::Count(_) => {}
            Reduced::Minimum(least) => merge_extreme(least, extreme(values, matches, true), true),
            Reduced::Maximum(most) => merge_extreme(most, extreme(values, matches, false), false),
            Reduced::IntegerSum(sum) => *sum += integer_sum(values, matches),
            Reduced::FloatSum(high, low) => {
                for value in chosen(&values.as_floats(), matches) {
                    (*high, *low) = plus((*high, *low), value);
                }
            }
            Reduced::Histogram(counts) => {
                for value in chosen(&values.as_floats(), matches) {
                    if let Some(bin) = bin_of(value, &self.edges, self.bins_per_unit) {
                        counts[bin] += 1;
                    }
                }
            }
        }
    }

    /// Result of the records that were added.
    pub(super) fn reduced(&self) -> &Reduced {
        &self.reduced
    }
}

impl Reduced {
    /// Adds the result of other records. Returns false if it is of another reduction.
    #[must_use]
    pub fn merge(&mut self, other: Self) -> bool {
        match (self, other) {
            (Self::Count(own), Self::Count(other)) => *own = own.saturating_add(other),
            (Self::Minimum(own), Self::Minimum(other)) => merge_extreme(own, other, true),
            (Self::Maximum(own), Self::Maximum(other)) => merge_extreme(own, other, false),
            (Self::IntegerSum(own), Self::IntegerSum(other)) => *own = own.saturating_add(other),
            (Self::FloatSum(high, low), Self::FloatSum(other, rest)) => {
                (*high, *low) = plus(plus((*high, *low), other), rest);
            }
            (Self::Histogram(own), Self::Histogram(other)) if own.len() == other.len() => {
                own.iter_mut().zip(other).for_each(|(own, other)| {
                    *own = own.saturating_add(other);
                });
            }
            _ => return false,
        }
        true
    }
}

fn chosen<'a, T: Copy>(values: &'a [T], matches: &'a [bool]) -> impl Iterator<Item = T> + 'a {
    values.iter().zip(matches).filter(|(_, is_match)| **is_match).map(|(value, _)| *value)
}

fn integer_sum(values: &Column, matches: &[bool]) -> i128 {
    match values {
        Column::Signed(values) => chosen(values, matches).map(i128::from).sum(),
        Column::Unsigned(values) => chosen(values, matches).map(i128::from).sum(),
        Column::Truth(_) | Column::Float(_) => 0,
    }
}

pub(super) fn extreme(values: &Column, matches: &[bool], is_least: bool) -> Option<Constant> {
    match values {
        Column::Signed(values) => {
            let all = chosen(values, matches);
            if is_least { all.min() } else { all.max() }.map(Constant::Signed)
        }
        Column::Unsigned(values) => {
            let all = chosen(values, matches);
            if is_least { all.min() } else { all.max() }.map(Constant::Unsigned)
        }
        Column::Float(values) => {
            let further = |one: f64, other: f64| match one.partial_cmp(&other) {
                None if one.is_nan() => one,
                None => other,
                Some(Ordering::Less) if !is_least => other,
                Some(Ordering::Greater) if is_least => other,
                Some(_) => one,
            };
            chosen(values, matches).reduce(further).map(Constant::Float)
        }
        Column::Truth(_) => None,
    }
}

pub(super) fn merge_extreme(own: &mut Option<Constant>, other: Option<Constant>, is_least: bool) {
    let (one, other) = match (*own, other) {
        (_, None) => return,
        (None, other) => {
            *own = other;
            return;
        }
        (Some(one), Some(other)) => (one, other),
    };
    let column = match (one, other) {
        (Constant::Signed(one), Constant::Signed(other)) => Column::Signed(vec![one, other]),
        (Constant::Unsigned(one), Constant::Unsigned(other)) => Column::Unsigned(vec![one, other]),
        (one, other) => Column::Float(vec![one.as_float(), other.as_float()]),
    };
    *own = extreme(&column, &[true, true], is_least);
}

/// Adds a number to one of twice the precision (Knuth's TwoSum).
fn plus((high, low): (f64, f64), value: f64) -> (f64, f64) {
    let sum = high + value;
    if !sum.is_finite() {
        return (sum, 0.0);
    }
    let part = sum - high;
    let lost = (high - (sum - part)) + (value - part);
    let low = low + lost;
    // Normalised again: `low` is less than half a unit of the last place of `high`.
    let normal = sum + low;
    if normal.is_finite() { (normal, low - (normal - sum)) } else { (normal, 0.0) }
}

/// Returns the number of bins in a range of length 1, if all have nearly the same width.
fn bins_per_unit(edges: &[f64]) -> Option<f64> {
    let (first, bins) = (*edges.first()?, edges.len().checked_sub(1)? as f64);
    let per_unit = bins / (edges.last()? - first);
    let is_near = |(at, edge): (usize, &f64)| ((edge - first) * per_unit - at as f64).abs() < 0.5;
    (per_unit.is_finite() && edges.iter().enumerate().all(is_near)).then_some(per_unit)
}

/// Returns the bin of a value, with the same rule as `numpy.histogram`.
fn bin_of(value: f64, edges: &[f64], bins_per_unit: Option<f64>) -> Option<usize> {
    let (first, last) = (*edges.first()?, *edges.last()?);
    if value.is_nan() || value < first || value > last {
        return None;
    }
    let bins = edges.len() - 1;
    let Some(per_unit) = bins_per_unit else {
        return Some(edges.partition_point(|edge| *edge <= value).min(bins) - 1);
    };
    // Near the edge of a bin this may be its neighbour.
    let mut bin = (((value - first) * per_unit) as usize).min(bins - 1);
    while value < edges[bin] {
        bin -= 1;
    }
    while bin + 1 < bins && value >= edges[bin + 1] {
        bin += 1;
    }
    Some(bin)
}
