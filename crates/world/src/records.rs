//! A few small records that survive: where the catalogue keeps what it knows.

use std::future::Future;
use thiserror::Error;

/// Durable records, each a number and some bytes. Always real bytes, in every world.
pub trait Records: 'static {
    /// Every record, in ascending order of key.
    fn records(&self) -> impl Future<Output = Result<Vec<(u64, Vec<u8>)>, RecordsError>>;

    /// Stores `value` under `key`, replacing what was there. All or nothing, and on stable
    /// storage when it returns.
    fn record_put(
        &self,
        key: u64,
        value: Vec<u8>,
    ) -> impl Future<Output = Result<(), RecordsError>>;

    /// Removes `key`; succeeds when there is none. Durable when it returns.
    fn record_delete(&self, key: u64) -> impl Future<Output = Result<(), RecordsError>>;
}

/// The records could not be read or changed; they are as before.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RecordsError {
    /// There is no room for the change.
    #[error("there is no space left to {operation}")]
    NoSpace {
        /// What was attempted.
        operation: String,
    },
    /// Any other failure.
    #[error("the records failed to {operation}: {cause}")]
    Failed {
        /// What was attempted.
        operation: String,
        /// What the store said.
        cause: String,
    },
}
