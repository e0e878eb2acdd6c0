//! Conditions over the fields of records.

use crate::border::Failure;

/// Largest number of bytes of a condition.
const BYTES_MAX: usize = 1 << 16;

/// Condition over the fields of a record, as a text.
pub(crate) struct Condition(String);

impl Condition {
    /// Keeps a text.
    pub(crate) fn new(text: String) -> Result<Self, Failure> {
        match text.len() <= BYTES_MAX {
            true => Ok(Self(text)),
            false => Err(Failure::argument("condition", "is too long")),
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}
