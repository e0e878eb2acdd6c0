//! The access of a pattern.

use crate::UserError;
use policy::{Access, Pattern};

/// The access of a pattern.
///
/// # Errors
/// Fails when the pattern does not fit the sizes or the number of clients.
pub fn access_of(
    pattern: &Pattern,
    clients: u32,
    record_bytes: u64,
    file_bytes: u64,
) -> Result<Access, UserError> {
    pattern.access(clients, record_bytes, file_bytes).map_err(|error| {
        UserError::usage(
            format!("pattern {pattern} does not fit"),
            error.to_string(),
            "choose a size that is a multiple of the record, and at least one client",
        )
    })
}
