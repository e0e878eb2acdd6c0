//! Errors as C sees them: the last one of each thread, and the table of kinds.

use crate::arguments::Out;
use crate::border::{Answer, Failure, exported};
use interface::{ErrorKind, KINDS, UserError};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::sync::LazyLock;

/// `unisono_error_t`.
#[repr(C)]
pub(crate) struct ErrorView {
    kind: u32,
    errno_value: c_int,
    exit_code: c_int,
    has_range: c_int,
    name: *const c_char,
    mpi_class: *const c_char,
    error: *const c_char,
    cause: *const c_char,
    help: *const c_char,
    text: *const c_char,
    file: *const c_char,
    range_start: u64,
    range_end: u64,
    server: i64,
    rank_count: usize,
    ranks: *const u32,
}

/// `unisono_kind_t`.
#[repr(C)]
pub(crate) struct KindView {
    name: *const c_char,
    mpi_class: *const c_char,
    errno_value: c_int,
    exit_code: c_int,
}

/// An error, with what its view points to.
struct Kept {
    view: ErrorView,
    _texts: [CString; 4],
    _file: Option<CString>,
    _ranks: Vec<u32>,
}

thread_local! {
    static LAST: RefCell<Option<Box<Kept>>> = const { RefCell::new(None) };
}

/// Names of the kinds, and their MPI classes, by number from 1 on.
static NAMES: LazyLock<Vec<[CString; 2]>> =
    LazyLock::new(|| KINDS.iter().map(|row| [text(row.name), text(row.mpi_class)]).collect());

/// Keeps an error as the last one of this thread, if the thread is not at its end.
pub(crate) fn keep(error: &UserError) {
    let kept = Box::new(Kept::new(error));
    let _ = LAST.try_with(|last| last.replace(Some(kept)));
}

impl Kept {
    fn new(error: &UserError) -> Self {
        let row = error.kind.row();
        let texts =
            [&error.error, &error.cause, &error.help, &error.to_string()].map(|one| text(one));
        let file = error.place.file.as_deref().map(text);
        let ranks: Vec<u32> = error.place.ranks.iter().map(|rank| rank.0).collect();
        let [name, mpi_class] = names(error.kind);
        let range = error.place.range;
        let view = ErrorView {
            kind: error.kind as u32,
            errno_value: row.errno,
            exit_code: c_int::from(error.code as u8),
            has_range: c_int::from(range.is_some()),
            name,
            mpi_class,
            error: texts[0].as_ptr(),
            cause: texts[1].as_ptr(),
            help: texts[2].as_ptr(),
            text: texts[3].as_ptr(),
            file: file.as_ref().map_or(ptr::null(), |file| file.as_ptr()),
            range_start: range.map_or(0, |range| range.start),
            range_end: range.map_or(0, |range| range.end),
            server: error.place.server.map_or(-1, |server| i64::from(server.0)),
            rank_count: ranks.len(),
            ranks: if ranks.is_empty() { ptr::null() } else { ranks.as_ptr() },
        };
        Self { view, _texts: texts, _file: file, _ranks: ranks }
    }
}

/// Name of a kind and its MPI class, valid for ever.
fn names(kind: ErrorKind) -> [*const c_char; 2] {
    NAMES[kind as usize - 1].each_ref().map(|name| name.as_ptr())
}

/// Text without zero bytes, which none of the library's has.
pub(crate) fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

impl Answer for *const ErrorView {
    type Value = Self;
    fn done(value: Self) -> Self {
        value
    }
    fn failed(_: c_int) -> Self {
        ptr::null()
    }
}

exported! {
    /// Last error of the calling thread.
    fn unisono_last_error() -> *const ErrorView {
        let view = |kept: &Kept| &raw const kept.view;
        let last = LAST.try_with(|last| last.borrow().as_deref().map_or(ptr::null(), view));
        Ok(last.unwrap_or(ptr::null()))
    }

    /// Row of a kind.
    fn unisono_kind(kind: u32, row: Out<KindView>) -> c_int {
        let slot = row.slot("row")?;
        let known = ErrorKind::of_number(kind)
            .ok_or_else(|| Failure::argument("kind", format!("is {kind}, which is not a kind of \
                                                              error")))?;
        let [name, mpi_class] = names(known);
        let (errno_value, code) = (known.row().errno, known.row().code);
        slot.set(KindView { name, mpi_class, errno_value, exit_code: c_int::from(code as u8) });
        Ok(())
    }
}
