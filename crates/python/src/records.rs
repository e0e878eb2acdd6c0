//! Records of files that match a condition.

use crate::errors::{exception, usage};
use crate::file::File;
use crate::group::Group;
use crate::memory::Memory;
use crate::waiting::wait;
use client::{Condition, Constant, Expression, RecordGrid, Reduced, Reduction, Share};
use interface::{
    FieldKind, RecordField, condition_with, field_of, key_of, number_of, predicate_of,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::sync::Arc;

/// Field of a type: name, offset, kind as NumPy writes it, bytes of an element, shape.
type Field = (String, u32, String, u32, Vec<u32>);

/// Type of the records of a file.
#[pyclass(frozen, module = "unisono")]
pub(crate) struct RecordType(interface::RecordType);

#[pymethods]
impl RecordType {
    #[new]
    fn new(py: Python<'_>, fields: Vec<Field>, record_bytes: u32) -> PyResult<Self> {
        let field = |(name, offset, kind, bytes, shape): Field| {
            let kind = FieldKind::of_word(&kind).filter(|kind| kind.bytes() == bytes);
            RecordField { name, offset, kind: kind.unwrap_or(FieldKind::Other { bytes }), shape }
        };
        let found =
            interface::RecordType::new(fields.into_iter().map(field).collect(), record_bytes);
        found.map(Self).map_err(|error| exception(py, &error))
    }
}

impl RecordType {
    fn condition(
        &self,
        condition: Option<&str>,
        operator: Option<String>,
        module: Option<Vec<u8>>,
    ) -> Result<Condition, client::UserError> {
        let always = || Ok(Expression::always());
        let predicate = condition.map_or_else(always, |text| predicate_of(&self.0, text))?;
        condition_with(predicate, operator, module)
    }

    fn grid(&self, start: u64, count: u64) -> RecordGrid {
        RecordGrid { start, record_bytes: self.0.record_bytes(), count }
    }
}

/// Records that match, of this process.
#[pyclass(frozen, module = "unisono")]
pub(crate) struct Records(Arc<client::Records>);

#[pymethods]
impl Records {
    /// Number of records of this process.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// Blocks that were read for it, and that were not, since no record of them matches.
    #[getter]
    fn blocks(&self) -> (u64, u64) {
        let blocks = self.0.blocks();
        (blocks.read, blocks.skipped)
    }

    /// Reads them into an object with the buffer protocol. Collective, with a group.
    fn read_into(&self, py: Python<'_>, into: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (records, memory) = (Arc::clone(&self.0), Memory::to_fill(into)?);
        wait(py, move || memory.transfer(|memory| records.start_read_memory(memory)).wait())
    }
}

/// The group whose members make a call.
fn members(group: Option<PyRef<'_, Group>>) -> Option<client::Group> {
    group.map(|group| group.inner().clone())
}

/// Finds records of a file that match, from byte `start` on. With a group all members make the
/// call. `share` is "even", "part" or "key".
#[pyfunction]
#[pyo3(signature = (
    file, records, start, count, condition, *, group=None, share="even", key=None, operator=None,
    module=None
))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn find_records(
    py: Python<'_>,
    file: PyRef<'_, File>,
    records: PyRef<'_, RecordType>,
    start: u64,
    count: u64,
    condition: Option<&str>,
    group: Option<PyRef<'_, Group>>,
    share: &str,
    key: Option<&str>,
    operator: Option<String>,
    module: Option<Vec<u8>>,
) -> PyResult<Records> {
    let failed = |error| exception(py, &error);
    let condition = records.condition(condition, operator, module).map_err(failed)?;
    let share = match (share, key) {
        ("even", None) => Share::Even,
        ("part", None) => Share::Part,
        ("key", Some(key)) => Share::Key(key_of(&records.0, key).map_err(failed)?),
        _ => {
            let cause = format!("{share:?} is no way to share records");
            return Err(usage(py, "cannot find records", &cause, "use even or part"));
        }
    };
    let (file, grid) = (file.get(), records.grid(start, count));
    let group = members(group);
    let found = wait(py, move || file?.find_records(group.as_ref(), grid, condition, share))?;
    Ok(Records(Arc::new(found)))
}

/// Computes a number from records that match. `what` is "count", "minimum", "maximum", "sum" or
/// "histogram". With a group all members make the call.
#[pyfunction]
#[pyo3(signature = (
    file, records, start, count, condition, what, *, group=None, of="", edges=None, operator=None,
    module=None
))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn reduce_records<'py>(
    py: Python<'py>,
    file: PyRef<'_, File>,
    records: PyRef<'_, RecordType>,
    start: u64,
    count: u64,
    condition: Option<&str>,
    what: &str,
    group: Option<PyRef<'_, Group>>,
    of: &str,
    edges: Option<Vec<f64>>,
    operator: Option<String>,
    module: Option<Vec<u8>>,
) -> PyResult<(Bound<'py, PyAny>, (u64, u64))> {
    let failed = |error| exception(py, &error);
    let condition = records.condition(condition, operator, module).map_err(failed)?;
    let of = || number_of(&records.0, of).map_err(failed);
    let reduction = match what {
        "count" => Reduction::Count,
        "minimum" => Reduction::Minimum(of()?),
        "maximum" => Reduction::Maximum(of()?),
        "sum" => Reduction::Sum(of()?),
        "histogram" => Reduction::Histogram { of: of()?, edges: edges.unwrap_or_default() },
        other => {
            let cause = format!("{other:?} is no number of records");
            return Err(usage(py, "cannot reduce records", &cause, "use count or sum"));
        }
    };
    let (file, grid) = (file.get(), records.grid(start, count));
    let group = members(group);
    let (reduced, blocks) =
        wait(py, move || file?.reduce_records(group.as_ref(), grid, condition, reduction))?;
    Ok((value_of(py, reduced)?, (blocks.read, blocks.skipped)))
}

/// Returns a number as Python has it.
fn value_of(py: Python<'_>, reduced: Reduced) -> PyResult<Bound<'_, PyAny>> {
    match reduced {
        Reduced::Count(count) => count.into_bound_py_any(py),
        Reduced::Minimum(value) | Reduced::Maximum(value) => match value {
            None => Ok(py.None().into_bound(py)),
            Some(Constant::Signed(value)) => value.into_bound_py_any(py),
            Some(Constant::Unsigned(value)) => value.into_bound_py_any(py),
            Some(Constant::Float(value)) => value.into_bound_py_any(py),
        },
        Reduced::IntegerSum(sum) => sum.into_bound_py_any(py),
        Reduced::FloatSum(sum, _) => sum.into_bound_py_any(py),
        Reduced::Histogram(counts) => counts.into_bound_py_any(py),
    }
}

/// Has the servers compute bounds of fields for each block. With a group all members make the call.
#[pyfunction]
#[pyo3(signature = (file, records, start, count, fields, *, group=None))]
pub(crate) fn summarise_records(
    py: Python<'_>,
    file: PyRef<'_, File>,
    records: PyRef<'_, RecordType>,
    start: u64,
    count: u64,
    fields: Vec<String>,
    group: Option<PyRef<'_, Group>>,
) -> PyResult<()> {
    let fields = fields.iter().map(|field| field_of(&records.0, field));
    let fields = fields.collect::<Result<Vec<_>, _>>().map_err(|error| exception(py, &error))?;
    let (file, grid) = (file.get(), records.grid(start, count));
    let group = members(group);
    wait(py, move || file?.summarise_records(group.as_ref(), grid, fields))
}
