//! Comparisons of columns with constants and with one another.
//!
//! As in NumPy, integers are compared exactly, also those with a sign with those without; an
//! integer and a float are compared as binary64; a comparison with NaN is false, but for `!=`.

use super::constant::Constant;
use super::number::Column;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// Comparison of two values.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// All comparisons.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// Comparison with the sides exchanged.
    pub fn reversed(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    /// Result for values of that order; `None` if one of them is NaN.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    /// Compares each value with a constant. One loop for each comparison, which has no branches.
    fn each<T: PartialOrd + Copy>(self, values: &[T], with: T) -> Vec<bool> {
        match self {
            Self::Equal => values.iter().map(|value| *value == with).collect(),
            Self::NotEqual => values.iter().map(|value| *value != with).collect(),
            Self::Less => values.iter().map(|value| *value < with).collect(),
            Self::LessOrEqual => values.iter().map(|value| *value <= with).collect(),
            Self::Greater => values.iter().map(|value| *value > with).collect(),
            Self::GreaterOrEqual => values.iter().map(|value| *value >= with).collect(),
        }
    }

    /// Compares the values of a column with a constant.
    pub(super) fn with_constant(self, column: &Column, with: Constant) -> Vec<bool> {
        let all = |order, length| vec![self.holds(Some(order)); length];
        match (column, with) {
            (Column::Truth(values), with) => {
                let values = Column::Signed(values.iter().map(|value| i64::from(*value)).collect());
                self.with_constant(&values, with)
            }
            (Column::Signed(values), Constant::Signed(with)) => self.each(values, with),
            (Column::Signed(values), Constant::Unsigned(with)) => match i64::try_from(with) {
                Ok(with) => self.each(values, with),
                Err(_) => all(Ordering::Less, values.len()),
            },
            (Column::Unsigned(values), Constant::Unsigned(with)) => self.each(values, with),
            (Column::Unsigned(values), Constant::Signed(with)) => match u64::try_from(with) {
                Ok(with) => self.each(values, with),
                Err(_) => all(Ordering::Greater, values.len()),
            },
            (Column::Float(values), with) => self.each(values, with.as_float()),
            (column, Constant::Float(with)) => self.each(&column.as_floats(), with),
        }
    }

    /// Compares the values of two columns of equal length.
    pub(super) fn of_columns(self, left: &Column, right: &Column) -> Vec<bool> {
        let integers = |left: &[i128], right: &[i128]| {
            let pairs = left.iter().zip(right);
            pairs.map(|(left, right)| self.holds(left.partial_cmp(right))).collect()
        };
        match (left.as_integers(), right.as_integers()) {
            (Some(left), Some(right)) => integers(&left, &right),
            _ => {
                let (left, right) = (left.as_floats(), right.as_floats());
                let pairs = left.iter().zip(right.iter());
                pairs.map(|(left, right)| self.holds(left.partial_cmp(right))).collect()
            }
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Column {
    /// Its values as binary64.
    pub(super) fn as_floats(&self) -> Cow<'_, [f64]> {
        match self {
            Self::Truth(values) => values.iter().map(|it| f64::from(u8::from(*it))).collect(),
            Self::Signed(values) => values.iter().map(|it| *it as f64).collect(),
            Self::Unsigned(values) => values.iter().map(|it| *it as f64).collect(),
            Self::Float(values) => Cow::Borrowed(values),
        }
    }

    /// Its values as integers, if they are some.
    pub(super) fn as_integers(&self) -> Option<Vec<i128>> {
        match self {
            Self::Truth(values) => Some(values.iter().map(|it| i128::from(*it)).collect()),
            Self::Signed(values) => Some(values.iter().map(|it| i128::from(*it)).collect()),
            Self::Unsigned(values) => Some(values.iter().map(|it| i128::from(*it)).collect()),
            Self::Float(_) => None,
        }
    }
}
