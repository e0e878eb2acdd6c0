//! The error of damaged published values.

use interface::UserError;

/// Returns an error about a file of this crate; the tests of the crate parse all of them.
pub(crate) fn defect(cause: impl Into<String>) -> UserError {
    UserError::new(
        interface::ExitCode::Failed,
        "the published values cannot be read",
        cause,
        "this is a defect of unisono; please report it with the command line",
    )
}
