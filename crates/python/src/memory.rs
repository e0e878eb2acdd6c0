//! Memory of Python objects that a call transfers.
#![allow(unsafe_code)]

use crate::errors::usage;
use client::{Operation, RawMemory, UserError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory of an object of Python. It stays where it is as long as this lives.
pub(crate) struct Memory(Option<Held>);

/// Owner of the memory of a call.
enum Held {
    /// Object with the buffer protocol.
    Buffer(Buffer),
    /// New `bytes`, which no program has seen yet.
    Bytes { _object: Py<PyBytes>, raw: RawBytes },
}

/// Buffer that an object has given out, contiguous in C order.
struct Buffer(Box<ffi::Py_buffer>);

/// First byte and length of new `bytes`.
struct RawBytes(*mut u8, usize);

// SAFETY: the bytes are those of an object that `Held` keeps, and no other thread knows them.
unsafe impl Send for RawBytes {}

// SAFETY: a buffer is plain data. Its object is used only with the interpreter, when it is
// released.
unsafe impl Send for Buffer {}

/// Memory whose calls have ended on threads without the interpreter, until a call releases it.
/// Null stands for none. A forked child abandons the list, whose lock another thread may have held.
static ENDED: AtomicPtr<Mutex<Vec<Held>>> = AtomicPtr::new(std::ptr::null_mut());

/// Gives a forked child a list of its own.
#[pyfunction]
pub(crate) fn after_fork() {
    ENDED.store(std::ptr::null_mut(), Ordering::Release);
}

fn ended() -> MutexGuard<'static, Vec<Held>> {
    let mut list = ENDED.load(Ordering::Acquire);
    if list.is_null() {
        let new: *mut _ = Box::leak(Box::default());
        list = match ENDED.compare_exchange(list, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => other,
        };
    }
    // SAFETY: a list is leaked, so it lives as long as the process.
    let list = unsafe { &*list };
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffer {
    /// # Errors
    /// The answer of the object, if it does not give out its memory so.
    fn of(object: &Bound<'_, PyAny>, flags: i32) -> PyResult<Self> {
        let mut buffer = Box::new(ffi::Py_buffer::new());
        // SAFETY: both pointers are valid; the object fills the buffer in when it returns 0.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *buffer, flags) };
        if status == 0 { Ok(Self(buffer)) } else { Err(PyErr::fetch(object.py())) }
    }
}

impl Buffer {
    /// True if the format of the elements has Python objects. Names of fields are between colons.
    fn has_objects(&self) -> bool {
        if self.0.format.is_null() {
            return false;
        }
        // SAFETY: a format is a text that ends with a zero byte, and lives as long as the buffer.
        let format = unsafe { std::ffi::CStr::from_ptr(self.0.format) };
        let outside_of_names = format.to_bytes().split(|byte| *byte == b':').step_by(2);
        outside_of_names.flatten().any(|byte| *byte == b'O')
    }
}

/// True for arrays of NumPy whose elements are, or have, Python objects.
fn has_objects(object: &Bound<'_, PyAny>) -> bool {
    let has_objects = |dtype: Bound<'_, PyAny>| dtype.getattr("hasobject")?.is_truthy();
    object.getattr("dtype").and_then(has_objects).unwrap_or(false)
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the buffer was filled in, and is released once. `Memory` drops it only with the
        // interpreter.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
    }
}

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
        let what = "cannot transfer the memory of an object";
        let of_objects = || {
            let help = "give numbers or bytes; pickle other objects";
            usage(py, what, "it has Python objects, not their bytes", help)
        };
        let with_format = Buffer::of(object, ffi::PyBUF_ND | ffi::PyBUF_FORMAT);
        // Not all kinds of elements have a format: dates of NumPy have none.
        let buffer = match with_format.or_else(|_| Buffer::of(object, ffi::PyBUF_ND)) {
            Ok(buffer) if buffer.has_objects() || has_objects(object) => return Err(of_objects()),
            Ok(buffer) => buffer,
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
                return Err(error);
            }
            Err(_) => {
                let help = "copy it before, for example by numpy.ascontiguousarray";
                return Err(usage(py, what, "its bytes are not contiguous in C order", help));
            }
        };
        if is_filled && buffer.0.readonly != 0 {
            let help = "give an object that can be written, such as a bytearray";
            return Err(usage(py, what, "it cannot be written", help));
        }
        Ok(Self(Some(Held::Buffer(buffer))))
    }

    /// Releases the memory, which no call transfers.
    pub(crate) fn release(self, _py: Python<'_>) {
        drop(self);
        release_ended();
    }

    /// Makes `bytes` that a read fills. They must not be given to a program before its end.
    pub(crate) fn new_bytes(py: Python<'_>, length: usize) -> PyResult<(Self, Bound<'_, PyBytes>)> {
        let Ok(size) = isize::try_from(length) else {
            let cause = "no memory has so many bytes";
            return Err(usage(py, "cannot read", cause, "give a smaller length"));
        };
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
            Some(Held::Buffer(buffer)) => usize::try_from(buffer.0.len).unwrap_or(0),
            Some(Held::Bytes { raw, .. }) => raw.1,
            None => 0,
        }
    }

    fn first(&self) -> *mut u8 {
        match &self.0 {
            Some(Held::Buffer(buffer)) => buffer.0.buf.cast(),
            Some(Held::Bytes { raw, .. }) => raw.0,
            None => std::ptr::null_mut(),
        }
    }

    /// Begins an operation that transfers the memory.
    pub(crate) fn transfer<T>(self, begin: impl FnOnce(RawMemory) -> Operation<T>) -> Transfer<T> {
        // SAFETY: the memory is held until the operation has ended. That nobody else changes the
        // bytes meanwhile is the promise of the program, as for every such call in Python.
        let operation = begin(unsafe { RawMemory::new(self.first(), self.bytes()) });
        Transfer { operation, memories: vec![self] }
    }

    /// Begins an operation that transfers several memories.
    pub(crate) fn transfer_all<T>(
        memories: Vec<Self>,
        begin: impl FnOnce(Vec<RawMemory>) -> Operation<T>,
    ) -> Transfer<T> {
        // SAFETY: as for one memory.
        let raw = |one: &Self| unsafe { RawMemory::new(one.first(), one.bytes()) };
        let operation = begin(memories.iter().map(raw).collect());
        Transfer { operation, memories }
    }
}

/// An operation under way, with the memories that it transfers. When dropped, waits for its end.
pub(crate) struct Transfer<T> {
    // Dropped before the memories.
    operation: Operation<T>,
    memories: Vec<Memory>,
}

impl<T> Transfer<T> {
    /// True when it has ended.
    pub(crate) fn test(&mut self) -> bool {
        self.operation.test()
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Result<T, UserError> {
        let Self { operation, memories } = self;
        let outcome = operation.wait();
        drop(memories);
        outcome
    }
}

impl Drop for Memory {
    /// Leaves the release to a thread that has the interpreter: waiting for it here could last, or
    /// never end when the interpreter ends.
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            ended().push(held);
        }
    }
}

/// Checks that the memory of an object can be written into a file, as it is.
#[pyfunction]
pub(crate) fn check_memory(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let memory = Memory::to_write(object)?;
    let bytes = memory.bytes();
    memory.release(object.py());
    Ok(bytes)
}

/// Releases memory whose calls have ended. The caller has the interpreter.
pub(crate) fn release_ended() {
    let ended = std::mem::take(&mut *ended());
    drop(ended);
}
