//! Open files.

use crate::interrupted::Interrupted;
use crate::memory::Memory;
use crate::open_file::OpenFile;
use crate::part::Part;
use crate::waiting::{Started, wait, wait_for_transfer};
use client::{Direction, DiskOrder, Operation, PlannedBlock, RawMemory, UserError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

/// Block that a server would transfer: server, disk, block, address, shares (rank, bytes).
type Planned = (u32, u32, u64, u64, Vec<(u32, u64)>);

/// An open file. May be used by several threads at a time.
#[pyclass(frozen, module = "unisono")]
pub(crate) struct File {
    name: String,
    interrupted: Arc<Interrupted>,
    /// `None` when it was closed.
    open: Mutex<Option<Arc<OpenFile>>>,
}

impl File {
    pub(crate) fn new(file: client::File, interrupted: Arc<Interrupted>) -> Self {
        Self {
            name: file.name(),
            interrupted,
            open: Mutex::new(Some(Arc::new(OpenFile::new(file)))),
        }
    }

    /// Makes a call that transfers data, after those that were interrupted.
    fn transfer<T: Send + 'static>(
        &self,
        py: Python<'_>,
        call: impl FnOnce() -> Result<T, UserError> + Send + 'static,
    ) -> PyResult<T> {
        self.interrupted.settle(py, &self.name)?;
        wait_for_transfer(py, (&self.interrupted, slice::from_ref(&self.name)), call)
    }

    /// Begins a call that transfers memory, after those that were interrupted. Waits for its end,
    /// unless it has ended at once.
    fn begin<T: Send + 'static>(
        &self,
        py: Python<'_>,
        file: Result<Arc<OpenFile>, UserError>,
        memory: Memory,
        begin: impl FnOnce(&OpenFile, RawMemory) -> Operation<T>,
    ) -> PyResult<T> {
        self.interrupted.settle(py, &self.name)?;
        let file = file.map_err(|error| crate::errors::exception(py, &error))?;
        let mut transfer = memory.transfer(|memory| begin(&file, memory));
        if transfer.test() {
            return transfer.wait().map_err(|error| crate::errors::exception(py, &error));
        }
        // The file stays open until the end, also after an interrupt.
        let end = move || {
            let ended = transfer.wait();
            drop(file);
            ended
        };
        wait_for_transfer(py, (&self.interrupted, slice::from_ref(&self.name)), end)
    }

    /// The file, unless it was closed.
    pub(crate) fn get(&self) -> Result<Arc<OpenFile>, UserError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| {
            UserError::usage(
                format!("cannot use {:?}", self.name),
                "it was closed",
                "open it again",
            )
        })
    }
}

#[pymethods]
impl File {
    /// Its name in the instance.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// True when it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// True if a transfer goes on whose wait was interrupted. Later calls wait for its end.
    #[getter]
    fn interrupted(&self) -> bool {
        self.interrupted.has(&self.name)
    }

    /// Its size now, in bytes, whoever has changed it.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        let file = self.get();
        self.transfer(py, move || file?.size())
    }

    /// Makes it `size` bytes long. New bytes are zero.
    fn set_size(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        let file = self.get();
        self.transfer(py, move || file?.set_size(size))
    }

    /// Reads into an object with the buffer protocol, without a copy; returns the number of bytes
    /// read, fewer than asked for only at the end of the file.
    fn read_into(&self, py: Python<'_>, offset: u64, into: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (file, memory) = (self.get(), Memory::to_fill(into)?);
        self.begin(py, file, memory, |file, memory| file.start_read_memory(memory, offset))
    }

    /// Reads bytes from an offset on; fewer than `length` only at the end of the file.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.get();
        let (memory, bytes) = Memory::new_bytes(py, length)?;
        let begin = |file: &OpenFile, memory| file.start_read_memory(memory, offset);
        let read = self.begin(py, file, memory, begin)?;
        // The end of the file: the bytes behind it were not filled.
        if read < length { Ok(PyBytes::new(py, &bytes.as_bytes()[..read])) } else { Ok(bytes) }
    }

    /// Writes the bytes of an object with the buffer protocol, without a copy; returns their
    /// number.
    fn write(&self, py: Python<'_>, offset: u64, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (file, memory) = (self.get(), Memory::to_write(data)?);
        let bytes = memory.bytes();
        let begin = |file: &OpenFile, memory| file.start_write_memory(memory, offset);
        self.begin(py, file, memory, begin).map(|()| bytes)
    }

    /// Reads a part of the file into memory: one request to each server.
    fn read_part(
        &self,
        py: Python<'_>,
        part: PyRef<'_, Part>,
        into: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (file, part, memory) = (self.get(), part.0.clone(), Memory::to_fill(into)?);
        self.transfer(py, move || {
            let file = file?;
            let begin = |memory| file.start_part(Direction::Read, part, memory, false);
            memory.transfer(begin).wait()
        })
    }

    /// Writes a part of the file from memory: one request to each server.
    fn write_part(
        &self,
        py: Python<'_>,
        part: PyRef<'_, Part>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (file, part, memory) = (self.get(), part.0.clone(), Memory::to_write(data)?);
        self.transfer(py, move || {
            let file = file?;
            let begin = |memory| file.start_part(Direction::Write, part, memory, false);
            memory.transfer(begin).wait()
        })
    }

    /// Bytes in a block, the unit in which the file lies on its servers.
    #[getter]
    fn block_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let file = self.get().map_err(|error| crate::errors::exception(py, &error))?;
        Ok(file.page_bytes())
    }

    /// Blocks that the servers would transfer if members with these parts, by rank, made a directed
    /// call: (server, disk, block, address, shares) for each block, in the order of each disk, with
    /// shares (rank, bytes). The second value is false if a disk has more than `blocks_max`.
    fn plan(
        &self,
        py: Python<'_>,
        is_write: bool,
        parts: Vec<PyRef<'_, Part>>,
        blocks_max: u64,
    ) -> PyResult<(Vec<Planned>, bool)> {
        let parts: Vec<_> = parts.iter().map(|part| part.0.clone()).collect();
        let direction = if is_write { Direction::Write } else { Direction::Read };
        let file = self.get();
        let plan = wait(py, move || file?.plan(direction, DiskOrder::Sorted, parts, blocks_max))?;
        let planned = plan.transfers.into_iter().map(|transfer| {
            let PlannedBlock { block, address, shares } = transfer.block;
            let shares = shares.into_iter().map(|(client, bytes)| (client.0, bytes)).collect();
            (transfer.server.0, transfer.disk.0, block, address, shares)
        });
        Ok((planned.collect(), plan.is_complete))
    }

    /// Waits until all that was written is with the disks; with `sync` on stable storage (fsync).
    /// Raises earlier failures of write-behind.
    #[pyo3(signature = (*, sync=false))]
    fn flush(&self, py: Python<'_>, sync: bool) -> PyResult<()> {
        let file = self.get();
        self.transfer(py, move || file?.flush(sync))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Closes it. An exception under way is not replaced by another of the close.
    #[pyo3(signature = (*error))]
    fn __exit__(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        let closed = self.close(py);
        let is_failing = error.get_item(0).is_ok_and(|kind| !kind.is_none());
        if is_failing { Ok(()) } else { closed }
    }

    /// Closes it; does nothing when it was closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(file) = open else { return Ok(()) };
        wait(py, move || match Arc::try_unwrap(file) {
            Ok(file) => file.close(),
            // Transfers are under way; the last of them closes it.
            Err(_) => Ok(()),
        })
    }
}

impl File {
    /// Begins a collective transfer.
    pub(crate) fn start(
        &self,
        py: Python<'_>,
        group: &client::Group,
        direction: Direction,
        options: client::CollectiveOptions,
        part: &Part,
        memory: Memory,
    ) -> PyResult<Started> {
        let file = match self.settled(py) {
            Ok(file) => file,
            Err(error) => {
                memory.release(py);
                return Err(error);
            }
        };
        let part = part.0.clone();
        let begin = |memory| group.start_memory(direction, options, &file, part, memory);
        let interrupted = (Arc::clone(&self.interrupted), vec![self.name.clone()]);
        let transfer = memory.transfer(begin);
        Ok(Started::new(transfer, vec![file], interrupted))
    }

    /// The file, after the ends of its interrupted transfers.
    pub(crate) fn settled(&self, py: Python<'_>) -> PyResult<Arc<OpenFile>> {
        let file = self.get().map_err(|error| crate::errors::exception(py, &error))?;
        self.interrupted.settle(py, &self.name)?;
        Ok(file)
    }

    /// Interrupted transfers of its connection, and its name.
    pub(crate) fn interrupted_by_name(&self) -> (Arc<Interrupted>, String) {
        (Arc::clone(&self.interrupted), self.name.clone())
    }
}
