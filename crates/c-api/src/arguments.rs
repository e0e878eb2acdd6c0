//! Arguments as C gives them: pointers that are checked, and then trusted as the header demands.
//!
//! *Invariants:*
//! - Only C makes values of these types. It promises what `unisono.h` says: a pointer is NULL, or
//!   valid for what the function does with it until the function returns.
//! - NULL, misaligned pointers and counts beyond a limit are refused before a pointer is followed.
#![allow(unsafe_code)]

use crate::border::Failure;
use client::RawMemory;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A string of the caller.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The string; `None` for NULL.
    pub(crate) fn optional(&self, name: &'static str) -> Result<Option<&str>, Failure> {
        if self.0.is_null() {
            return Ok(None);
        }
        let text = self.bytes();
        let text = text.to_str().map_err(|_| Failure::argument(name, "is not UTF-8"))?;
        Ok(Some(text))
    }

    /// The string as a local path, which must be there and may have any bytes.
    pub(crate) fn path(&self, name: &'static str) -> Result<&Path, Failure> {
        if self.0.is_null() {
            return Err(Failure::argument(name, "is NULL"));
        }
        Ok(Path::new(OsStr::from_bytes(self.bytes().to_bytes())))
    }

    /// The string, which must not be NULL.
    fn bytes(&self) -> &CStr {
        // SAFETY: the caller promises a string that ends with a zero byte.
        unsafe { CStr::from_ptr(self.0) }
    }

    /// The string, which must be there.
    pub(crate) fn required(&self, name: &'static str) -> Result<&str, Failure> {
        self.optional(name)?.ok_or_else(|| Failure::argument(name, "is NULL"))
    }
}

/// Memory of the caller for a text.
#[repr(transparent)]
pub(crate) struct TextBuffer(*mut c_char);

impl TextBuffer {
    /// Stores as much of the text as `bytes` bytes hold together with the zero byte at its end. May
    /// be NULL for no bytes.
    pub(crate) fn fill(&self, text: &str, bytes: usize, name: &'static str) -> Result<(), Failure> {
        let Some(room) = bytes.checked_sub(1) else { return Ok(()) };
        check(self.0, name)?;
        let mut cut = text.as_bytes()[..text.len().min(room)].to_vec();
        cut.push(0);
        // SAFETY: the caller promises `bytes` bytes, of which no more are written.
        unsafe { self.0.cast::<u8>().copy_from(cut.as_ptr(), cut.len()) };
        Ok(())
    }
}

/// A place for a result.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

/// A place for a result that was checked.
pub(crate) struct Slot<'a, T>(&'a Out<T>);

impl<T> Out<T> {
    /// The place, which must be there.
    pub(crate) fn slot(&self, name: &'static str) -> Result<Slot<'_, T>, Failure> {
        check(self.0, name)?;
        Ok(Slot(self))
    }

    /// The place; `None` for NULL.
    pub(crate) fn optional(&self, name: &'static str) -> Result<Option<Slot<'_, T>>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.slot(name).map(Some) }
    }
}

impl<T> Slot<'_, T> {
    /// Stores the result. The bytes there before may be anything.
    pub(crate) fn set(&self, value: T) {
        // SAFETY: `slot` has checked it, and the caller promises that it may be written.
        unsafe { self.0.0.write(value) };
    }
}

/// An array of the caller for results.
#[repr(transparent)]
pub(crate) struct OutArray<T>(*mut T);

/// An array for results that was checked.
pub(crate) struct ArraySlot<'a, T>(&'a OutArray<T>, usize);

impl<T> OutArray<T> {
    /// The array of `count` places; may be NULL when there are none.
    pub(crate) fn slot(
        &self,
        count: usize,
        name: &'static str,
    ) -> Result<ArraySlot<'_, T>, Failure> {
        if count > 0 {
            check(self.0, name)?;
        }
        Ok(ArraySlot(self, count))
    }
}

impl<T: Copy> ArraySlot<'_, T> {
    /// Stores results, as far as there are places.
    pub(crate) fn set(&self, values: &[T]) {
        let count = values.len().min(self.1);
        // SAFETY: `slot` has checked it, and the caller promises so many places.
        unsafe { self.0.0.copy_from(values.as_ptr(), count) };
    }
}

/// An array of the caller, of plain values.
#[repr(transparent)]
pub(crate) struct Array<T>(*const T);

impl<T> Array<T> {
    /// The array of `count` values, at most `most`; may be NULL when there are none.
    pub(crate) fn values(
        &self,
        count: usize,
        most: usize,
        name: &'static str,
    ) -> Result<&[T], Failure> {
        if count > most {
            return Err(Failure::argument(name, format!("has {count} entries, more than {most}")));
        }
        if count == 0 {
            return Ok(&[]);
        }
        check(self.0, name)?;
        // SAFETY: it is aligned, and the caller promises that it has so many values.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// Bytes of the caller that a transfer reads or writes.
#[repr(transparent)]
pub(crate) struct Bytes(*const c_void);

impl Bytes {
    /// The `length` bytes. Until the transfer has ended the caller leaves them alone.
    pub(crate) fn memory(&self, length: u64, name: &'static str) -> Result<RawMemory, Failure> {
        memory(self.0, length, name)
    }
}

/// The bytes of an entry of `struct iovec`.
pub(crate) fn iovec(entry: &libc::iovec, name: &'static str) -> Result<RawMemory, Failure> {
    memory(entry.iov_base, entry.iov_len as u64, name)
}

fn memory(base: *const c_void, length: u64, name: &'static str) -> Result<RawMemory, Failure> {
    if base.is_null() && length > 0 {
        return Err(Failure::argument(name, "is NULL"));
    }
    let fits = isize::try_from(length).ok();
    let fits = fits.filter(|length| (base as usize).checked_add(*length as usize).is_some());
    let length = fits.ok_or_else(|| {
        Failure::argument(name, format!("cannot have {length} bytes: they do not fit in memory"))
    })?;
    // SAFETY: the caller promises that the transfer may use the bytes until it has ended.
    Ok(unsafe { RawMemory::new(base.cast_mut().cast(), length as usize) })
}

/// A structure that begins with its size (`size_t`), so that it can grow: what a caller does not
/// know is zero, and what this library does not know must be. [`extensible`] declares one.
///
/// # Safety
///
/// It is `repr(C)`, has only integers as fields, no padding, and the size first.
pub(crate) unsafe trait Extensible: Copy + Default {}

/// Declares a structure of the header that begins with its size.
macro_rules! extensible {
    ($(#[$meta:meta])* struct $name:ident { size: usize, $($field:ident: $integer:ident,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Default)]
        pub(crate) struct $name {
            size: usize,
            $($field: $integer,)*
        }

        const _: () = {
            let bytes = usize::BITS $(+ $integer::BITS)*;
            assert!(size_of::<$name>() == bytes as usize / 8, "a structure has no padding");
        };

        // SAFETY: the fields are integers, as they have BITS, the size is the first, and the
        // assertion above finds padding.
        #[allow(unsafe_code)]
        unsafe impl $crate::arguments::Extensible for $name {}
    };
}

pub(crate) use extensible;

/// Most bytes of an extensible structure. A greater size is an uninitialised field.
const STRUCTURE_BYTES_MAX: usize = 4096;

/// An extensible structure of the caller for reading; NULL for the default.
#[repr(transparent)]
pub(crate) struct Options<T>(*const T);

impl<T: Extensible> Options<T> {
    /// The structure, or all zero for NULL.
    pub(crate) fn read(&self, name: &'static str) -> Result<T, Failure> {
        let mut known = T::default();
        if self.0.is_null() {
            return Ok(known);
        }
        let size = size_field(self.0, name)?;
        // SAFETY: the caller promises so many bytes, and every one is part of an integer.
        let given = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), size) };
        let (shared, beyond) = given.split_at(size.min(size_of::<T>()));
        if beyond.iter().any(|byte| *byte != 0) {
            return Err(Failure::argument(name, "sets fields that this release does not support"));
        }
        // SAFETY: integers may have any bytes, and no more are written than it has.
        unsafe { (&raw mut known).cast::<u8>().copy_from(shared.as_ptr(), shared.len()) };
        Ok(known)
    }
}

/// An extensible structure of the caller to be filled.
#[repr(transparent)]
pub(crate) struct Filled<T>(*mut T);

/// An extensible structure to be filled, checked.
pub(crate) struct FilledSlot<'a, T> {
    place: &'a Filled<T>,
    size: usize,
}

impl<T: Extensible> Filled<T> {
    /// The structure, which must be there.
    pub(crate) fn slot(&self, name: &'static str) -> Result<FilledSlot<'_, T>, Failure> {
        check(self.0, name)?;
        Ok(FilledSlot { place: self, size: size_field(self.0, name)? })
    }
}

impl<T: Extensible> Filled<T> {
    /// The structure; `None` for NULL.
    pub(crate) fn optional(
        &self,
        name: &'static str,
    ) -> Result<Option<FilledSlot<'_, T>>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.slot(name).map(Some) }
    }
}

impl<T: Extensible> FilledSlot<'_, T> {
    /// The structure as it is now.
    pub(crate) fn value(&self, name: &'static str) -> Result<T, Failure> {
        Options(self.place.0.cast_const()).read(name)
    }

    /// Stores the fields behind the size that the caller knows.
    pub(crate) fn fill(&self, value: &T) {
        let first = size_of::<usize>();
        let length = self.size.min(size_of::<T>()).saturating_sub(first);
        // SAFETY: the first field of the value is its size.
        let from = unsafe { (&raw const *value).cast::<u8>().add(first) };
        // SAFETY: the size was checked to be at least that of its own field.
        let to = unsafe { self.place.0.cast::<u8>().add(first) };
        // SAFETY: both have so many bytes behind the first field, and the value is this library's.
        unsafe { to.copy_from_nonoverlapping(from, length) };
    }
}

/// The size that a structure says it has.
fn size_field<T>(structure: *const T, name: &'static str) -> Result<usize, Failure> {
    check(structure, name)?;
    // SAFETY: it is aligned, and the caller promises that the size is there.
    let size = unsafe { structure.cast::<usize>().read() };
    match size {
        size if (size_of::<usize>()..=STRUCTURE_BYTES_MAX).contains(&size) => Ok(size),
        size => Err(Failure::argument(name, format!("has the size {size}; set it with sizeof"))),
    }
}

/// Refuses NULL and misaligned pointers.
fn check<T>(pointer: *const T, name: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(name, "is NULL"));
    }
    match (pointer as usize).is_multiple_of(align_of::<T>()) {
        true => Ok(()),
        false => Err(Failure::argument(name, "is not aligned")),
    }
}

/// A handle: a value of this library that the caller holds.
#[repr(transparent)]
pub(crate) struct Handle<T>(*mut Held<T>);

/// A value behind a handle.
pub(crate) struct Held<T> {
    /// Process that made it; a forked child has only a copy of the memory.
    process: u32,
    value: T,
}

impl<T> Handle<T> {
    /// NULL.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());

    /// A new handle.
    pub(crate) fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(Held { process: std::process::id(), value })))
    }

    /// True for NULL.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// The value, of this process or another.
    pub(crate) fn anywhere(&self, name: &'static str) -> Result<&T, Failure> {
        Ok(&self.held(name)?.value)
    }

    /// The value, which this process must have made.
    pub(crate) fn get(&self, name: &'static str) -> Result<&T, Failure> {
        let held = self.held(name)?;
        if held.process == std::process::id() { Ok(&held.value) } else { Err(Failure::Forked) }
    }

    /// The value, whose handle is freed; `None` for NULL. In another process it stays as it is.
    pub(crate) fn take(self, name: &'static str) -> Result<Option<T>, Failure> {
        if self.is_none() {
            return Ok(None);
        }
        self.get(name)?;
        Ok(self.free())
    }

    /// [`Handle::take`] in whatever process.
    pub(crate) fn take_anywhere(self, name: &'static str) -> Result<Option<T>, Failure> {
        if self.is_none() {
            return Ok(None);
        }
        self.held(name)?;
        Ok(self.free())
    }

    fn held(&self, name: &'static str) -> Result<&Held<T>, Failure> {
        check(self.0, name)?;
        // SAFETY: it is aligned, and the caller promises a handle that was not freed.
        Ok(unsafe { &*self.0 })
    }

    fn free(self) -> Option<T> {
        // SAFETY: `new` made it from a box, and the caller promises that nobody uses it any more.
        Some(unsafe { Box::from_raw(self.0) }.value)
    }
}
