//! The error of damaged published values.

use interface::UserError;

/// An error in the files that this crate carries; its tests parse all of them.
pub(crate) fn defect(cause: impl Into<String>) -> UserError {
    UserError::new(
        interface::ExitCode::Failed,
        "the published values cannot be read",
        cause,
        "this is a defect of unisono; please report it with the command line",
    )
}
