//! Small durable records: the store of the catalogue, and of file sizes that a server's disks do
//! not show.
//!
//! This is also the seam for a catalogue kept elsewhere, such as in etcd: its implementation must
//! pass the same conformance cases.

use std::future::Future;
use thiserror::Error;

/// A table of a node's records. The tables have nothing in common, and can lie in different places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordTable {
    /// Records of the catalogue: on one node, for all.
    Catalogue,
    /// Sizes of files that no data shows: on each node its own.
    Sizes,
    /// Copy of the records of the catalogue, of another node.
    CatalogueCopy,
    /// Marks of files that may differ from their copies: on each node its own.
    Mirrors,
    /// Files of which disks that took the place of lost ones lack what those had: on each node its
    /// own.
    Lacking,
    /// Protections of files that were changed since the files were made: on each node its own.
    Protections,
}

impl RecordTable {
    /// All tables; `table as usize` is the index here.
    pub const ALL: [Self; 6] = [
        Self::Catalogue,
        Self::Sizes,
        Self::CatalogueCopy,
        Self::Mirrors,
        Self::Lacking,
        Self::Protections,
    ];
}

/// Durable records, each a number with some bytes. The bytes are real in every world.
pub trait Records: 'static {
    /// Returns every record of a table, in ascending order of key.
    fn records(
        &self,
        table: RecordTable,
    ) -> impl Future<Output = Result<Vec<(u64, Vec<u8>)>, RecordsError>>;

    /// Makes all of `changes` to a table in their order, or none of them, durably. Calls take
    /// effect in their order. Waiting calls may be made together, and then fail together. A call
    /// whose future is dropped may still take effect.
    fn record_change(
        &self,
        table: RecordTable,
        changes: Vec<RecordChange>,
    ) -> impl Future<Output = Result<(), RecordsError>>;
}

/// Change of one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordChange {
    /// Key of the record.
    pub key: u64,
    /// New value; `None` removes the record.
    pub value: Option<Vec<u8>>,
}

impl RecordChange {
    /// Creates a change that stores `value` under `key`, replacing the previous value.
    pub fn put(key: u64, value: Vec<u8>) -> Self {
        Self { key, value: Some(value) }
    }

    /// Creates a change that removes `key`, if it exists.
    pub fn remove(key: u64) -> Self {
        Self { key, value: None }
    }
}

/// Error of an operation on records; the records have not changed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RecordsError {
    /// There is no room for the change.
    #[error("there is no space left to {operation}")]
    NoSpace {
        /// Attempted operation.
        operation: String,
    },
    /// Any other failure.
    #[error("the records failed to {operation}: {cause}")]
    Failed {
        /// Attempted operation.
        operation: String,
        /// Message of the store.
        cause: String,
    },
}
