//! Groups, and collective transfers.

use crate::file::File;
use crate::memory::Memory;
use crate::part::{Part, strategy};
use crate::waiting::{Started, wait};
use client::{CollectiveOptions, Direction, RawFileTransfer};
use pyo3::prelude::*;
use std::sync::Arc;

/// Transfer of one of several files: is it a write, the file, the part, and the memory.
type FileTransfer<'py> = (bool, PyRef<'py, File>, PyRef<'py, Part>, Bound<'py, PyAny>);

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

    /// Begins transfers of several files as one collective call. Each is (is_write, file, part,
    /// object with the buffer protocol).
    #[pyo3(signature = (transfers, *, method="disk-directed", sync=false))]
    fn start_files(
        &self,
        py: Python<'_>,
        transfers: Vec<FileTransfer<'_>>,
        method: &str,
        sync: bool,
    ) -> PyResult<Started> {
        let strategy = strategy(py, method)?;
        let options = CollectiveOptions { strategy, sync, ..Default::default() };
        let mut settled = Vec::with_capacity(transfers.len());
        let mut memories = Vec::with_capacity(transfers.len());
        for (is_write, file, _, object) in &transfers {
            let taken = file.settled(py).and_then(|file| {
                settled.push(file);
                if *is_write { Memory::to_write(object) } else { Memory::to_fill(object) }
            });
            match taken {
                Ok(memory) => memories.push(memory),
                Err(error) => {
                    memories.into_iter().for_each(|memory: Memory| memory.release(py));
                    return Err(error);
                }
            }
        }
        let (mut interrupted, mut names) = (Arc::default(), Vec::new());
        for (_, file, ..) in &transfers {
            let (of_connection, name) = file.interrupted_by_name();
            interrupted = of_connection;
            names.push(name);
        }
        let transfer = Memory::transfer_all(memories, |memories| {
            let described = transfers.iter().zip(&settled).zip(memories);
            let described = described.map(|(((is_write, _, part, _), file), memory)| {
                let direction = if *is_write { Direction::Write } else { Direction::Read };
                RawFileTransfer {
                    direction,
                    file: client::File::clone(file),
                    part: part.0.clone(),
                    memory,
                }
            });
            self.0.start_files(options, described.collect())
        });
        Ok(Started::new(transfer, settled, (interrupted, names)))
    }

    fn __repr__(&self) -> String {
        format!("<unisono group: rank {} of {}>", self.0.rank(), self.0.size())
    }
}
