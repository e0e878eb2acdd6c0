//! Connections of threads that wait for small calls: one to each server, for one thread at a time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use units::ServerId;
use world::Address;
use world_real::BlockingConnection;

/// The servers, and the connections to them that are there.
pub(super) struct BlockingSlots {
    servers: Vec<Server>,
    /// Number of connections made.
    made: AtomicU32,
}

struct Server {
    address: Address,
    /// True once the client has found that the server has left or does not answer.
    has_left: AtomicBool,
    slot: Mutex<Slot>,
}

/// Maximum number of connections that are made. Each takes a descriptor of the program.
const MADE_MAX: u32 = 256;

/// Connection to one server.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) connection: Option<BlockingConnection>,
    /// Number of calls so far: each has a number of its own.
    pub(super) calls: u64,
    /// Number of calls without a connection.
    pub(super) calls_without_connection: u32,
    pub(super) failures: u32,
    /// Header of the latest answer.
    pub(super) header: Vec<u8>,
}

impl BlockingSlots {
    pub(super) fn new(addresses: impl Iterator<Item = Address>) -> Self {
        let server = |address| {
            let (has_left, slot) = (AtomicBool::new(false), Mutex::default());
            Server { address, has_left, slot }
        };
        Self { servers: addresses.map(server).collect(), made: AtomicU32::new(0) }
    }

    /// Locks the slot of a server, unless another thread uses it, which is not waited for. Returns
    /// the address of the server too.
    pub(super) fn try_lock(&self, server: ServerId) -> Option<(&Address, MutexGuard<'_, Slot>)> {
        let Server { address, slot, .. } = self.servers.get(server.0 as usize)?;
        match slot.try_lock() {
            Ok(slot) => Some((address, slot)),
            // The thread that panicked has taken its connection with it.
            Err(TryLockError::Poisoned(slot)) => Some((address, slot.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Counts a connection that is to be made. False when there were too many.
    pub(super) fn may_make(&self) -> bool {
        self.made.fetch_add(1, Ordering::Relaxed) < MADE_MAX
    }

    /// Notes that a server has left, or does not answer. No call to it succeeds any more.
    pub(super) fn server_left(&self, server: ServerId) {
        if let Some(server) = self.servers.get(server.0 as usize) {
            server.has_left.store(true, Ordering::Release);
        }
    }

    /// True once a server has left.
    pub(super) fn has_left(&self, server: ServerId) -> bool {
        let server = self.servers.get(server.0 as usize);
        server.is_none_or(|server| server.has_left.load(Ordering::Acquire))
    }
}
