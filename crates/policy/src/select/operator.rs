//! Operators: what looks at records, and selects some of them.
//!
//! An expression is one, a program adds others to its servers, and users send them as modules. The
//! caller is the same for all: it reads blocks, and delivers or counts what an operator selects.

use super::number::Column;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice::ChunksExact;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

use super::functions::{FailedFunction, RefusedFunction, check_name};

/// Largest number of records that an operator looks at in one call: their columns fit a processor's
/// first cache.
pub const BATCH_RECORDS_MAX: usize = 1_024;

/// Largest number of bytes of these records, if there are several.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Whole records of a file that follow one another.
#[derive(Clone, Copy, Debug)]
pub struct RecordBatch<'a> {
    bytes: &'a [u8],
    record_bytes: usize,
}

/// Records that an operator selects, and their numbers.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Answers {
    pub(super) selected: Vec<bool>,
    /// A number for each record, if the selection needs one. Those of other records mean nothing.
    pub(super) numbers: Option<Column>,
}

/// An operator that has failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{cause}")]
pub struct FailedOperator {
    /// What has failed, as a sentence.
    pub cause: String,
}

/// Operator that looks at records.
pub trait RecordOperator: Send {
    /// Looks at some records, at most [`BATCH_RECORDS_MAX`]. The answer for a record must depend on
    /// its bytes only: records come in any order, and may come twice.
    ///
    /// # Errors
    /// A failure, which is an error of the call that selects.
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator>;
}

impl<'a> RecordBatch<'a> {
    /// Records of `record_bytes` bytes, at least 1, of which `bytes` is a whole number.
    pub fn new(bytes: &'a [u8], record_bytes: usize) -> Self {
        Self { bytes, record_bytes }
    }

    /// All their bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Number of records.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.record_bytes
    }

    /// The bytes of each record.
    pub fn records(&self) -> ChunksExact<'a, u8> {
        self.bytes.chunks_exact(self.record_bytes)
    }

    /// Returns the bytes of records in parts, each of which one call of an operator looks at.
    pub(super) fn batches(bytes: &'a [u8], record_bytes: usize) -> impl Iterator<Item = Self> {
        let records = batch_records(record_bytes);
        bytes.chunks(records * record_bytes).map(move |bytes| Self { bytes, record_bytes })
    }
}

/// Returns the largest number of records of a size that an operator looks at in one call.
pub fn batch_records(record_bytes: usize) -> usize {
    (BATCH_BYTES_MAX / record_bytes.max(1)).clamp(1, BATCH_RECORDS_MAX)
}

impl Answers {
    /// Selects the records that have a number, and gives them these, which keys and values of the
    /// selection write as `answer()`.
    pub fn of(numbers: impl IntoIterator<Item = Option<i64>>) -> Self {
        let all = numbers.into_iter().map(|number| (number.is_some(), number.unwrap_or(-1)));
        let (selected, numbers) = all.unzip();
        Self { selected, numbers: Some(Column::Signed(numbers)) }
    }

    /// True if it selects one.
    pub(super) fn has_some(&self) -> bool {
        self.selected.contains(&true)
    }
}

impl From<FailedFunction> for FailedOperator {
    fn from(failed: FailedFunction) -> Self {
        Self { cause: failed.to_string() }
    }
}

/// Operators of a program, by their names.
#[derive(Clone, Default)]
pub struct RecordOperators(
    BTreeMap<String, Arc<dyn Fn() -> Box<dyn RecordOperator> + Send + Sync>>,
);

impl RecordOperators {
    /// Adds an operator, in place of one with the same name. Each selection that names it gets a
    /// clone.
    ///
    /// # Errors
    /// A name that is no word of letters, digits and `_`.
    pub fn with(
        mut self,
        name: &str,
        operator: impl RecordOperator + Clone + Sync + 'static,
    ) -> Result<Self, RefusedFunction> {
        check_name(name)?;
        self.0.insert(name.to_owned(), Arc::new(move || Box::new(operator.clone())));
        Ok(self)
    }

    /// A new operator of a name.
    pub(super) fn make(&self, name: &str) -> Option<Box<dyn RecordOperator>> {
        let operator = self.0.get(name)?();
        Some(Box::new(Guarded { name: name.to_owned(), operator }))
    }
}

impl fmt::Debug for RecordOperators {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.keys()).finish()
    }
}

/// Operator of a program, whose panics and wrong answers end a call only.
struct Guarded {
    name: String,
    operator: Box<dyn RecordOperator>,
}

impl RecordOperator for Guarded {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        let failed = |how: &str| {
            let cause = format!("the operator {:?} of the servers {how}", self.name);
            FailedOperator { cause }
        };
        let looked_at = catch_unwind(AssertUnwindSafe(|| self.operator.look_at(records)));
        let answers = looked_at.map_err(|_| failed("has failed"))??;
        match answers.selected.len() == records.count() {
            true => Ok(answers),
            false => Err(failed("has not answered for each record")),
        }
    }
}

/// Compiler of modules that users send, which a program gives to its servers.
pub trait ModuleCompiler: Send + Sync {
    /// Returns the operator that a module is for records of `record_bytes` bytes. Both take bounded
    /// time and memory, whatever the module has.
    ///
    /// # Errors
    /// A module that is none, as a sentence.
    fn compile(
        &self,
        module: &[u8],
        record_bytes: u32,
    ) -> Result<Box<dyn RecordOperator>, FailedOperator>;
}

/// Operator that may take long, for a thread that does nothing else. Clones are the same operator.
#[derive(Clone)]
pub struct ApartOperator {
    operator: Arc<Mutex<Box<dyn RecordOperator>>>,
    record_bytes: usize,
}

impl ApartOperator {
    pub(super) fn new(operator: Box<dyn RecordOperator>, record_bytes: usize) -> Self {
        Self { operator: Arc::new(Mutex::new(operator)), record_bytes }
    }

    /// Looks at records that follow one another. Returns the answers for
    /// [`Selector::act`](super::Selector::act).
    pub fn look_at(&self, records: &[u8]) -> Result<Vec<Answers>, FailedOperator> {
        // An operator that has panicked is asked again, and fails or not.
        let mut operator = self.operator.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = RecordBatch::batches(records, self.record_bytes);
        batches.map(|batch| operator.look_at(batch)).collect()
    }
}
