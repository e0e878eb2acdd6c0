//! Functions of the numbers of a record that a program adds to its servers.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use thiserror::Error;

/// Largest number of bytes of the name of a function.
pub const FUNCTION_NAME_BYTES_MAX: usize = 64;

/// Largest number of operands of a function.
pub const FUNCTION_OPERANDS_MAX: usize = 16;

/// Function of some numbers of a record. Integers are given as the nearest floats.
pub trait RecordFunction: Send + Sync {
    /// Number of operands, at most [`FUNCTION_OPERANDS_MAX`].
    fn operands(&self) -> usize;

    /// Computes the results for some records: `operands` has a column for each operand, as long
    /// as `results`.
    fn evaluate(&self, operands: &[Vec<f64>], results: &mut [f64]);
}

/// Functions of a program, by their names.
#[derive(Clone, Default)]
pub struct RecordFunctions(BTreeMap<String, Arc<dyn RecordFunction>>);

/// Reason for which a function or an operator is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{name:?} is refused: {cause}")]
pub struct RefusedFunction {
    /// Its name.
    pub name: String,
    /// Reason.
    pub cause: String,
}

/// A function that has panicked.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the function custom.{name} has failed")]
pub struct FailedFunction {
    /// Name of the function.
    pub name: String,
}

impl RecordFunctions {
    /// Adds a function, in place of one with the same name. Conditions, keys and values write
    /// `custom.` and the name: `custom.mass(px, py, pz, energy) > 80`.
    ///
    /// # Errors
    /// A name that is no word of letters, digits and `_`, and too many operands.
    pub fn with(
        mut self,
        name: &str,
        function: impl RecordFunction + 'static,
    ) -> Result<Self, RefusedFunction> {
        check_name(name)?;
        if function.operands() > FUNCTION_OPERANDS_MAX {
            let cause = format!("it has more than {FUNCTION_OPERANDS_MAX} operands");
            return Err(RefusedFunction { name: name.to_owned(), cause });
        }
        self.0.insert(name.to_owned(), Arc::new(function));
        Ok(self)
    }

    /// The function of a name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<dyn RecordFunction>> {
        self.0.get(name)
    }
}

/// Checks the name of a function or an operator.
pub(super) fn check_name(name: &str) -> Result<(), RefusedFunction> {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || name.len() > FUNCTION_NAME_BYTES_MAX || !is_word {
        let cause = "its name is no word of letters, digits and _".to_owned();
        return Err(RefusedFunction { name: name.to_owned(), cause });
    }
    Ok(())
}

impl fmt::Debug for RecordFunctions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.keys()).finish()
    }
}

/// Computes a function for `count` records. One that panics ends this computation only.
pub(super) fn computed(
    (name, function): (&str, &dyn RecordFunction),
    operands: &[Vec<f64>],
    count: usize,
) -> Result<Vec<f64>, FailedFunction> {
    let mut results = vec![0.0; count];
    let evaluated = catch_unwind(AssertUnwindSafe(|| function.evaluate(operands, &mut results)));
    evaluated.map(|()| results).map_err(|_| FailedFunction { name: name.to_owned() })
}
