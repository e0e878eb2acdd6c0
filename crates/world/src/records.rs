//! Small records that survive: where the catalogue keeps what it knows, and a server what its
//! disks do not show.
//!
//! This is also the seam for a catalogue kept elsewhere, such as in etcd: whoever implements it
//! passes the same conformance cases.

use std::future::Future;
use thiserror::Error;

/// Which of a node's records are meant. They have nothing in common, and can lie in different
/// places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shelf {
    /// What the catalogue knows: of one node, for all.
    Catalogue,
    /// Sizes of files that no data shows: each node's own.
    Sizes,
}

impl Shelf {
    /// Every one; `shelf as usize` is its place here.
    pub const ALL: [Self; 2] = [Self::Catalogue, Self::Sizes];
}

/// Durable records, each a number and some bytes. Always real bytes, in every world.
pub trait Records: 'static {
    /// Every record of a shelf, in ascending order of key.
    fn records(
        &self,
        shelf: Shelf,
    ) -> impl Future<Output = Result<Vec<(u64, Vec<u8>)>, RecordsError>>;

    /// Makes all of `changes` on a shelf, or none of them, in their order. On stable storage when
    /// it returns. Calls take effect in the order in which they were made; those that wait may be
    /// made together, and then fail together. A call that is given up may still take effect.
    fn record_change(
        &self,
        shelf: Shelf,
        changes: Vec<RecordChange>,
    ) -> impl Future<Output = Result<(), RecordsError>>;
}

/// What becomes of one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordChange {
    /// Which record.
    pub key: u64,
    /// What it holds from now on; without a value there is no such record.
    pub value: Option<Vec<u8>>,
}

impl RecordChange {
    /// Stores `value` under `key`, replacing what was there.
    pub fn put(key: u64, value: Vec<u8>) -> Self {
        Self { key, value: Some(value) }
    }

    /// Removes `key`, if it is there.
    pub fn remove(key: u64) -> Self {
        Self { key, value: None }
    }
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
