//! Constants of expressions.

use serde::{Deserialize, Serialize};

/// Constant of an expression.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Constant {
    /// Integer that is not greater than `i64::MAX`.
    Signed(i64),
    /// Integer that is not negative.
    Unsigned(u64),
    /// Other number.
    Float(f64),
}

impl Constant {
    /// The nearest number of binary64.
    pub(super) fn as_float(self) -> f64 {
        match self {
            Self::Signed(value) => value as f64,
            Self::Unsigned(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Smallest constant that has the value of an integer; a float if no integer of 64 bits has.
    pub fn of_integer(value: i128) -> Self {
        match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => Self::Signed(value),
            (_, Ok(value)) => Self::Unsigned(value),
            _ => Self::Float(value as f64),
        }
    }
}
