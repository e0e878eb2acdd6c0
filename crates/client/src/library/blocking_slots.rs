//! Connections of threads that wait for small calls: one to each server, for one thread at a time.

use std::sync::{Mutex, MutexGuard, TryLockError};
use world::Address;
use world_real::BlockingConnection;

/// The servers, and the connections to them that are there.
pub(super) struct BlockingSlots(Vec<(Address, Mutex<Slot>)>);

/// Connection to one server.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) connection: Option<BlockingConnection>,
    /// Number of calls so far: each has a number of its own.
    pub(super) calls: u64,
    /// Number of calls without a connection.
    pub(super) missed: u32,
    pub(super) failures: u32,
    /// Header of the latest answer.
    pub(super) header: Vec<u8>,
}

impl BlockingSlots {
    pub(super) fn new(addresses: impl Iterator<Item = Address>) -> Self {
        Self(addresses.map(|address| (address, Mutex::default())).collect())
    }

    /// Locks the slot of a server, unless another thread uses it, which is not waited for. Returns
    /// the address of the server too.
    pub(super) fn take(&self, server: usize) -> Option<(&Address, MutexGuard<'_, Slot>)> {
        let (address, slot) = self.0.get(server)?;
        match slot.try_lock() {
            Ok(slot) => Some((address, slot)),
            // The thread that panicked has taken its connection with it.
            Err(TryLockError::Poisoned(slot)) => Some((address, slot.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
