//! Errors as a user sees them, in three parts: error, cause and help.

use crate::exit_code::ExitCode;
use crate::kind::{ErrorKind, ErrorPlace, KINDS};
use serde::{Deserialize, Serialize};
use std::{fmt, io};
use wire::Fault;

/// True if the system had no space for local data: on the disk, in a quota, or within the limit of
/// a file's size (`ulimit -f`).
pub fn is_no_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// An error in three parts, with the exit code of a command that ends with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserError {
    /// Description of the failure.
    pub error: String,
    /// Reason for the failure.
    pub cause: String,
    /// Action that the user can take.
    pub help: String,
    /// Exit code of a command that fails with the error.
    pub code: ExitCode,
    /// Kind of error, by which programs decide.
    pub kind: ErrorKind,
    /// File, bytes, server and ranks, as far as they are known.
    pub place: Box<ErrorPlace>,
}

impl UserError {
    /// Makes an error of usage.
    pub fn usage(
        error: impl Into<String>,
        cause: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::new(ExitCode::Usage, error, cause, help)
    }

    /// Makes an error with an exit code; the kind follows from the code.
    pub fn new(
        code: ExitCode,
        error: impl Into<String>,
        cause: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (kind, place) = (ErrorKind::of_code(code), Box::default());
        Self { error: error.into(), cause: cause.into(), help: help.into(), code, kind, place }
    }

    /// Replaces the description by `what`, the operation that failed.
    pub fn doing(self, what: impl Into<String>) -> Self {
        Self { error: what.into(), ..self }
    }

    /// Makes an error of a kind; the exit code follows from the kind.
    pub fn of_kind(
        kind: ErrorKind,
        error: impl Into<String>,
        cause: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { kind, ..Self::new(kind.row().code, error, cause, help) }
    }

    /// Makes an error from a fault of the file system, met while doing `what`.
    pub fn of_fault(what: &str, fault: &Fault) -> Self {
        let (kind, place) = (ErrorKind::of_fault(fault), ErrorPlace::of_fault(fault).into());
        Self { place, ..Self::of_kind(kind, what, fault.to_string(), fault.help()) }
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, cause, help, .. } = self;
        write!(out, "error: {}\ncause: {}\nhelp:  {}", line(error), line(cause), line(help))
    }
}

/// Escapes control characters in a part of an error, which must be one line: names in it may hold
/// any characters.
fn line(part: &str) -> String {
    let shown = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.into(),
    };
    part.chars().map(shown).collect()
}

impl std::error::Error for UserError {}

/// An error in the form that one process sends to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    error: String,
    cause: String,
    help: String,
    code: u8,
    #[serde(default)]
    kind: u32,
}

impl From<UserError> for Failure {
    fn from(UserError { error, cause, help, code, kind, .. }: UserError) -> Self {
        Self { error, cause, help, code: code as u8, kind: kind as u32 }
    }
}

impl From<Failure> for UserError {
    fn from(Failure { error, cause, help, code, kind }: Failure) -> Self {
        let kind = ErrorKind::of_number(kind).unwrap_or(ErrorKind::Other);
        let codes = KINDS.iter().map(|row| row.code);
        let code = codes.into_iter().find(|known| *known as u8 == code);
        let error = Self::of_kind(kind, error, cause, help);
        Self { code: code.unwrap_or(ExitCode::Failed), ..error }
    }
}
