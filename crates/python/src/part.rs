//! Parts of a file: which bytes a member has, and where they lie in its memory.

use crate::errors::usage;
use client::{ClientId, Dimension, Distribution, Level, ListEntry, Nested, OwnPart};
use policy::BYTES_MAX;
use pyo3::prelude::*;

/// Three numbers, as a tuple of Python.
type Triple = (u64, u64, u64);

/// A part of a file, as a rule that stays short.
#[pyclass(frozen, module = "unisono")]
pub(crate) struct Part(pub(crate) OwnPart);

#[pymethods]
impl Part {
    /// No bytes: a member with nothing to move still takes part.
    #[staticmethod]
    fn nothing() -> Self {
        Self(OwnPart::NOTHING)
    }

    /// `length` bytes at an offset of the file.
    #[staticmethod]
    fn contiguous(py: Python<'_>, offset: u64, length: u64) -> PyResult<Self> {
        checked(py, OwnPart::contiguous(offset, length))
    }

    /// A union of nested strides. Each is (offset in the file, offset in memory, length, levels),
    /// with levels (count, stride in the file, stride in memory), the innermost first; in bytes.
    #[staticmethod]
    fn nested(py: Python<'_>, nests: Vec<(u64, u64, u64, Vec<Triple>)>) -> PyResult<Self> {
        let nest = |(file_offset, memory_offset, length, levels): (_, _, _, Vec<Triple>)| Nested {
            file_offset,
            memory_offset,
            length,
            levels: levels
                .into_iter()
                .map(|(count, file_stride, memory_stride)| Level {
                    count,
                    file_stride,
                    memory_stride,
                })
                .collect(),
        };
        checked(py, OwnPart::Nested(nests.into_iter().map(nest).collect()))
    }

    /// Pieces without a rule: (offset in the file, offset in memory, length) each, in bytes.
    #[staticmethod]
    fn list(py: Python<'_>, pieces: Vec<Triple>) -> PyResult<Self> {
        let entry =
            |(file_offset, memory_offset, length)| ListEntry { file_offset, memory_offset, length };
        checked(py, OwnPart::List(pieces.into_iter().map(entry).collect()))
    }

    /// Part of a process of a distributed array, packed in its memory in C order. `distribution`
    /// has a word for each dimension: "block", "cyclic", "cyclic(k)" or "none"; `grid` has the
    /// processes along each.
    #[staticmethod]
    #[pyo3(signature = (shape, item_bytes, distribution, grid, rank, size, offset=0))]
    #[allow(clippy::too_many_arguments, reason = "the description of an array in one call")]
    fn dealt(
        py: Python<'_>,
        shape: Vec<u64>,
        item_bytes: u64,
        distribution: Vec<String>,
        grid: Vec<u32>,
        rank: u32,
        size: u32,
        offset: u64,
    ) -> PyResult<Self> {
        let dimensions = distribution.iter().map(|word| {
            word.parse::<Dimension>().map_err(|error| {
                let cause = format!("{word:?}: {error}");
                let help = "write block, cyclic, cyclic(k) or none";
                usage(py, "cannot distribute an array", &cause, help)
            })
        });
        let dimensions = dimensions.collect::<PyResult<_>>()?;
        let distribution =
            Distribution { shape, record_bytes: item_bytes, dimensions, grid, clients: size };
        let part = OwnPart::Dealt { distribution, client: ClientId(rank), file_offset: offset };
        let error = part.validate(ClientId(rank), BYTES_MAX).err();
        match error {
            Some(error) => {
                let cause = error.to_string();
                let help = "the product of the grid must not be above the number of processes";
                Err(usage(py, "cannot distribute an array", &cause, help))
            }
            None => Ok(Self(part)),
        }
    }

    /// Number of its bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn __repr__(&self) -> String {
        format!("Part({:?})", self.0)
    }
}

/// Returns a part that any file can have.
fn checked(py: Python<'_>, part: OwnPart) -> PyResult<Part> {
    match part.validate(ClientId(0), BYTES_MAX) {
        Ok(()) => Ok(Part(part)),
        Err(error) => {
            let help = "give offsets and lengths within a file";
            Err(usage(py, "cannot describe a part of a file", &error.to_string(), help))
        }
    }
}

/// Strategy of a name.
pub(crate) fn strategy(py: Python<'_>, name: &str) -> PyResult<client::Strategy> {
    name.parse().map_err(|cause: String| {
        usage(
            py,
            "cannot transfer collectively",
            &cause,
            "leave the method out, or give one of these",
        )
    })
}
