//! Memory of Python objects that a call transfers.
#![allow(unsafe_code)]

use crate::errors::usage;
use client::{Operation, RawMemory, UserError};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

/// Memory of an object of Python. It stays where it is as long as this lives.
pub(crate) struct Memory(Option<Held>);

/// What keeps the memory of an object where it is.
enum Held {
    /// Of an object with the buffer protocol.
    Buffer(PyUntypedBuffer),
    /// Of new `bytes`, which no program has seen yet.
    Bytes { _object: Py<PyBytes>, raw: RawBytes },
}

/// First byte and length of new `bytes`.
struct RawBytes(*mut u8, usize);

// SAFETY: the bytes are those of an object that `Held` keeps, and no other thread knows them.
unsafe impl Send for RawBytes {}

/// Memory whose calls have ended on threads without the interpreter, until a call releases it.
static ENDED: Mutex<Vec<Held>> = Mutex::new(Vec::new());

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
        Ok(Self(Some(Held::Buffer(buffer))))
    }

    /// Makes `bytes` that a read fills. They must not be given to a program before its end.
    pub(crate) fn new_bytes(py: Python<'_>, length: usize) -> PyResult<(Self, Bound<'_, PyBytes>)> {
        let size = length.cast_signed();
        // SAFETY: without a source, Python makes bytes of this size that are not initialised. The
        // pointer is null after a failure.
        let made = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), size) };
        // SAFETY: the reference is new, and owned by nobody else.
        let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?.cast_into::<PyBytes>()?;
        // SAFETY: it is an object of the type `bytes`.
        let first = unsafe { ffi::PyBytes_AsString(made.as_ptr()) };
        let raw = RawBytes(first.cast(), length);
        Ok((Self(Some(Held::Bytes { _object: made.clone().unbind(), raw })), made))
    }

    /// Number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0 {
            Some(Held::Buffer(buffer)) => buffer.len_bytes(),
            Some(Held::Bytes { raw, .. }) => raw.1,
            None => 0,
        }
    }

    fn first(&self) -> *mut u8 {
        match &self.0 {
            Some(Held::Buffer(buffer)) => buffer.buf_ptr().cast(),
            Some(Held::Bytes { raw, .. }) => raw.0,
            None => std::ptr::null_mut(),
        }
    }

    /// Begins an operation that transfers the memory.
    pub(crate) fn transfer<T>(self, begin: impl FnOnce(RawMemory) -> Operation<T>) -> Transfer<T> {
        // SAFETY: the memory is held until the operation has ended. That nobody else changes the
        // bytes meanwhile is the promise of the program, as for every such call in Python.
        let operation = begin(unsafe { RawMemory::new(self.first(), self.bytes()) });
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
        if let Some(held) = self.0.take() {
            ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        }
    }
}

/// Releases memory whose calls have ended. The caller has the interpreter.
pub(crate) fn release_ended() {
    let ended = std::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(ended);
}
