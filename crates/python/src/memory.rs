//! Memory of Python objects that a call transfers.
#![allow(unsafe_code)]

use crate::errors::usage;
use client::{Operation, RawMemory, UserError};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Memory of an object with the buffer protocol. It stays where it is as long as this lives.
pub(crate) struct Memory(Option<PyUntypedBuffer>);

/// Memory whose calls have ended on threads without the interpreter, until a call releases it.
static ENDED: Mutex<Vec<PyUntypedBuffer>> = Mutex::new(Vec::new());

impl Memory {
    /// Takes the memory of an object that is written into a file.
    pub(crate) fn to_write(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::take(object, false)
    }

    /// Takes the memory of an object that a file is read into.
    pub(crate) fn to_fill(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::take(object, true)
    }

    fn take(object: &Bound<'_, PyAny>, is_filled: bool) -> PyResult<Self> {
        let py = object.py();
        release_ended();
        let buffer = PyUntypedBuffer::get(object)?;
        let what = "cannot transfer the memory of an object";
        if !buffer.is_c_contiguous() && buffer.len_bytes() > 0 {
            let help = "copy it before, for example by numpy.ascontiguousarray";
            return Err(usage(py, what, "its bytes are not contiguous in C order", help));
        }
        if is_filled && buffer.readonly() {
            let help = "give an object that can be written, such as a bytearray";
            return Err(usage(py, what, "it cannot be written", help));
        }
        Ok(Self(Some(buffer)))
    }

    /// Number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, PyUntypedBuffer::len_bytes)
    }

    /// Begins an operation that transfers the memory.
    pub(crate) fn transfer<T>(self, begin: impl FnOnce(RawMemory) -> Operation<T>) -> Transfer<T> {
        let base = self.0.as_ref().map_or(std::ptr::null_mut(), |buffer| buffer.buf_ptr().cast());
        // SAFETY: the buffer is held until the operation has ended. That nobody else changes the
        // bytes meanwhile is the promise of the program, as for every such call in Python.
        let operation = begin(unsafe { RawMemory::new(base, self.bytes()) });
        Transfer { operation, memory: self }
    }
}

/// An operation under way, with the memory that it transfers. When dropped, waits for its end.
pub(crate) struct Transfer<T> {
    // Dropped before the memory.
    operation: Operation<T>,
    memory: Memory,
}

impl<T> Transfer<T> {
    /// True when it has ended.
    pub(crate) fn test(&mut self) -> bool {
        self.operation.test()
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Result<T, UserError> {
        let Self { operation, memory } = self;
        let outcome = operation.wait();
        drop(memory);
        outcome
    }
}

impl Drop for Memory {
    /// Leaves the release to a thread that has the interpreter: waiting for it here could last, or
    /// never end when the interpreter ends.
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take() {
            ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}

/// Releases memory whose calls have ended. The caller has the interpreter.
pub(crate) fn release_ended() {
    let ended = std::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(ended);
}
