//! The border between C and Rust: how a function is exported, and how a call ends.
//!
//! *Invariants:*
//! - A panic is caught here, and nowhere else.
//! - A failing call leaves its error for [`crate::errors`] before it returns.
#![allow(unsafe_code)]

use crate::errors;
use interface::{ErrorKind, UserError};
use std::any::Any;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reason for the end of a call without a result.
pub(crate) enum Failure {
    /// An argument makes no sense.
    Argument {
        /// Name of the argument in the header.
        name: &'static str,
        /// Reason, which begins with a verb: `is NULL`.
        cause: String,
    },
    /// A handle belongs to the parent process.
    Forked,
    /// An error that the library of the crate `client` has explained.
    Explained(UserError),
}

impl From<UserError> for Failure {
    fn from(error: UserError) -> Self {
        Self::Explained(error)
    }
}

impl Failure {
    /// An argument that makes no sense; `cause` begins with a verb.
    pub(crate) fn argument(name: &'static str, cause: impl Into<String>) -> Self {
        Self::Argument { name, cause: cause.into() }
    }

    fn into_error(self, function: &'static str) -> UserError {
        let refused = format!("{function} refused its arguments");
        match self {
            Self::Explained(error) => error,
            Self::Argument { name, cause } => UserError::of_kind(
                ErrorKind::Usage,
                refused,
                format!("the argument {name} {cause}"),
                format!(
                    "the comment of {function} in {} says what is permitted",
                    header_of(function)
                ),
            ),
            Self::Forked => UserError::of_kind(
                ErrorKind::Forked,
                refused,
                "the handle was made before this process was forked, and belongs to the parent",
                "connect again in the child, or fork before connecting",
            ),
        }
    }
}

/// Header that declares a function.
fn header_of(function: &str) -> &'static str {
    if function.starts_with("unisono_trace_") { "unisono_trace.h" } else { "unisono.h" }
}

/// Type that an exported function returns.
pub(crate) trait Answer {
    /// Type of a result.
    type Value;
    /// Answer of a call that has a result.
    fn done(value: Self::Value) -> Self;
    /// Answer of a call that failed with an errno, positive.
    fn failed(errno: c_int) -> Self;
}

impl Answer for c_int {
    type Value = ();
    fn done((): ()) -> Self {
        0
    }
    fn failed(errno: c_int) -> Self {
        -errno
    }
}

impl Answer for i64 {
    type Value = u64;
    fn done(bytes: u64) -> Self {
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }
    fn failed(errno: c_int) -> Self {
        -Self::from(errno)
    }
}

impl Answer for () {
    type Value = ();
    fn done((): ()) {}
    fn failed(_: c_int) {}
}

impl Answer for u32 {
    type Value = Self;
    fn done(value: Self) -> Self {
        value
    }
    fn failed(_: c_int) -> Self {
        0
    }
}

impl Answer for u64 {
    type Value = Self;
    fn done(value: Self) -> Self {
        value
    }
    fn failed(_: c_int) -> Self {
        0
    }
}

impl Answer for usize {
    type Value = Self;
    fn done(value: Self) -> Self {
        value
    }
    fn failed(_: c_int) -> Self {
        0
    }
}

impl Answer for *const c_char {
    type Value = Self;
    fn done(value: Self) -> Self {
        value
    }
    fn failed(_: c_int) -> Self {
        std::ptr::null()
    }
}

/// Does the work of an exported function, and keeps its error for `unisono_last_error`.
pub(crate) fn call<A: Answer>(
    function: &'static str,
    work: impl FnOnce() -> Result<A::Value, Failure>,
) -> A {
    let error = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return A::done(value),
        Ok(Err(failure)) => failure.into_error(function),
        Err(panic) => defect(function, panic.as_ref()),
    };
    let errno = error.kind.row().errno;
    errors::keep(&error);
    A::failed(errno)
}

/// The error of a call that panicked.
fn defect(function: &'static str, panic: &(dyn Any + Send)) -> UserError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text =
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the reason is unknown");
    UserError::of_kind(
        ErrorKind::Internal,
        format!("{function} was abandoned"),
        format!("the library has a defect: {text}"),
        "report it with the program's standard error output",
    )
}

/// Exports functions to C. Each body ends with a `Result` of what its [`Answer`] needs.
macro_rules! exported {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $answer:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        #[allow(unsafe_code)]
        // SAFETY: the prefix of the name is that of this library; nobody else defines it.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($argument: $kind),*) $(-> $answer)? {
            $crate::border::call(stringify!($name), move || $body)
        }
    )*};
}

pub(crate) use exported;
