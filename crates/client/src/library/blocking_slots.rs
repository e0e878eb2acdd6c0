//! Connections of threads that wait for small calls: one to each server, for one thread at a time.

use filesystem::ServerChange;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use units::ServerId;
use world::Address;
use world_real::BlockingConnection;

/// The servers, and the connections to them that are there.
pub(super) struct BlockingSlots {
    servers: Vec<Server>,
    /// Number of connections made.
    made: AtomicU32,
    /// Number of times that any server was lost.
    losses: AtomicU64,
}

struct Server {
    address: Address,
    /// True once the client has found that the server has left or does not answer, until it is
    /// there again.
    has_left: AtomicBool,
    /// Number of times that it was lost.
    losses: AtomicU64,
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
    /// Number of times that the server had been lost when the connection was made.
    losses: u64,
    /// Number of calls without a connection.
    pub(super) calls_without_connection: u32,
    pub(super) failures: u32,
    /// Header of the latest answer.
    pub(super) header: Vec<u8>,
}

impl BlockingSlots {
    pub(super) fn new(addresses: impl Iterator<Item = Address>) -> Self {
        let server = |address| {
            let (has_left, losses, slot) =
                (AtomicBool::new(false), AtomicU64::new(0), Mutex::default());
            Server { address, has_left, losses, slot }
        };
        Self {
            servers: addresses.map(server).collect(),
            made: AtomicU32::new(0),
            losses: AtomicU64::new(0),
        }
    }

    /// Locks the slot of a server, unless another thread uses it, which is not waited for. Returns
    /// the address of the server too.
    pub(super) fn try_lock(&self, server: ServerId) -> Option<(&Address, MutexGuard<'_, Slot>)> {
        let Server { address, slot, losses, .. } = self.servers.get(server.0 as usize)?;
        let mut slot = match slot.try_lock() {
            Ok(slot) => slot,
            // The thread that panicked has taken its connection with it.
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let losses = losses.load(Ordering::Acquire);
        if slot.losses != losses {
            *slot = Slot { losses, ..Slot::default() };
        }
        Some((address, slot))
    }

    /// Counts a connection that is to be made. False when there were too many.
    pub(super) fn may_make(&self) -> bool {
        self.made.fetch_add(1, Ordering::Relaxed) < MADE_MAX
    }

    /// Notes that a server is lost, and is waited for, or is there again.
    pub(super) fn server_changed(&self, server: ServerId, change: ServerChange) {
        let Some(server) = self.servers.get(server.0 as usize) else { return };
        if change == ServerChange::Lost {
            server.losses.fetch_add(1, Ordering::AcqRel);
            self.losses.fetch_add(1, Ordering::AcqRel);
        }
        if change != ServerChange::Absent {
            server.has_left.store(change == ServerChange::Lost, Ordering::Release);
        }
    }

    /// Number of times that any of these servers was lost and waited for.
    pub(super) fn losses(&self, servers: impl Iterator<Item = ServerId>) -> u64 {
        if self.losses.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let losses_of = |server: ServerId| {
            let server = self.servers.get(server.0 as usize)?;
            Some(server.losses.load(Ordering::Acquire))
        };
        servers.filter_map(losses_of).sum()
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
