//! Errors of the library as exceptions, whose classes are in Python: one for each kind.

use client::UserError;
use interface::KINDS;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names of all kinds of errors, with the exit code and the errno of each.
#[pyfunction]
pub(crate) fn error_kinds() -> Vec<(&'static str, u8, i32)> {
    KINDS.iter().map(|row| (row.name, row.code as u8, row.errno)).collect()
}

/// Makes the exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &UserError) -> PyErr {
    make(py, error).map_or_else(|failure| failure, PyErr::from_value)
}

fn make<'py>(py: Python<'py>, error: &UserError) -> PyResult<Bound<'py, PyAny>> {
    let place = PyDict::new(py);
    place.set_item("file", error.place.file.clone())?;
    place.set_item("range", error.place.range.map(|range| (range.start, range.end)))?;
    place.set_item("server", error.place.server.map(|server| server.0))?;
    let ranks: Vec<u32> = error.place.ranks.iter().map(|rank| rank.0).collect();
    place.set_item("ranks", ranks)?;
    let UserError { error: what, cause, help, .. } = error;
    let of_kind = py.import("unisono.errors")?.getattr("of_kind")?;
    of_kind.call1((error.kind.row().name, what, cause, help, place))
}

/// Makes the exception for wrong arguments.
pub(crate) fn usage(py: Python<'_>, what: &str, cause: &str, help: &str) -> PyErr {
    exception(py, &UserError::usage(what, cause, help))
}
