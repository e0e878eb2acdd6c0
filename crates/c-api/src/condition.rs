//! Conditions over the fields of records.

use crate::border::Failure;
use policy::Operator;

/// Largest number of bytes of a condition.
const BYTES_MAX: usize = 1 << 16;

/// Condition over the fields of a record, as a text, and an operator beside it.
pub(crate) struct Condition {
    text: String,
    operator: Option<Operator>,
}

impl Condition {
    /// Keeps a text.
    pub(crate) fn new(text: String) -> Result<Self, Failure> {
        match text.len() <= BYTES_MAX {
            true => Ok(Self { text, operator: None }),
            false => Err(Failure::argument("condition", "is too long")),
        }
    }

    /// Condition that an operator selects a record.
    pub(crate) fn of_operator(operator: Operator) -> Self {
        Self { text: "true".to_owned(), operator: Some(operator) }
    }

    /// Condition that both are true. At most one has an operator.
    pub(crate) fn and(&self, other: &Self) -> Result<Self, Failure> {
        let operator = match (&self.operator, &other.operator) {
            (Some(_), Some(_)) => {
                return Err(Failure::argument("right", "has an operator or a module as left has"));
            }
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        let both = Self::new(format!("({}) and ({})", self.text, other.text))?;
        Ok(Self { operator, ..both })
    }

    /// The text of a condition without an operator, which no other part can combine.
    pub(crate) fn plain_text(&self, what: &'static str) -> Result<&str, Failure> {
        match self.operator {
            None => Ok(&self.text),
            Some(_) => Err(Failure::argument(
                what,
                "has an operator or a module, which can only be combined by \
                 unisono_condition_and",
            )),
        }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The operator.
    pub(crate) fn operator(&self) -> Option<&Operator> {
        self.operator.as_ref()
    }
}
