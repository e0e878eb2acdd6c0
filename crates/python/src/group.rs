//! Groups, and collective transfers.

use crate::file::File;
use crate::memory::Memory;
use crate::part::{Part, strategy};
use crate::waiting::{Started, wait};
use client::{CollectiveOptions, Direction};
use pyo3::prelude::*;

/// Processes that make collective calls together.
#[pyclass(frozen, module = "unisono")]
pub(crate) struct Group(client::Group);

impl Group {
    pub(crate) fn inner(&self) -> &client::Group {
        &self.0
    }

    pub(crate) fn new(group: client::Group) -> Self {
        Self(group)
    }
}

#[pymethods]
impl Group {
    /// Rank of this process.
    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank()
    }

    /// Number of members.
    #[getter]
    fn size(&self) -> u32 {
        self.0.size()
    }

    /// Waits until all members are here.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.0.clone();
        wait(py, move || group.barrier())
    }

    /// Gives each member's bytes to all of them; returns them by rank. Collective.
    fn all_gather(&self, py: Python<'_>, own: Vec<u8>) -> PyResult<Vec<Vec<u8>>> {
        let group = self.0.clone();
        wait(py, move || group.all_gather(&own))
    }

    /// Begins a collective read into an object with the buffer protocol.
    #[pyo3(signature = (file, part, into, *, method="disk-directed", node_group_size=0))]
    fn start_read(
        &self,
        py: Python<'_>,
        file: PyRef<'_, File>,
        part: PyRef<'_, Part>,
        into: &Bound<'_, PyAny>,
        method: &str,
        node_group_size: u32,
    ) -> PyResult<Started> {
        let strategy = strategy(py, method)?;
        let options = CollectiveOptions { strategy, node_group_size, ..Default::default() };
        let memory = Memory::to_fill(into)?;
        file.start(py, &self.0, Direction::Read, options, &part, memory)
    }

    /// Begins a collective write from an object with the buffer protocol. With `sync`, the data is
    /// on stable storage at the end.
    #[pyo3(signature = (
        file, part, data, *, method="disk-directed", sync=false, node_group_size=0
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn start_write(
        &self,
        py: Python<'_>,
        file: PyRef<'_, File>,
        part: PyRef<'_, Part>,
        data: &Bound<'_, PyAny>,
        method: &str,
        sync: bool,
        node_group_size: u32,
    ) -> PyResult<Started> {
        let strategy = strategy(py, method)?;
        let options = CollectiveOptions { strategy, sync, node_group_size, ..Default::default() };
        let memory = Memory::to_write(data)?;
        file.start(py, &self.0, Direction::Write, options, &part, memory)
    }

    fn __repr__(&self) -> String {
        format!("<unisono group: rank {} of {}>", self.0.rank(), self.0.size())
    }
}
