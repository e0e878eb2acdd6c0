//! Budget of the bytes of active requests: of lists that describe accesses, and of data that comes
//! with requests of caches at clients.
//!
//! Requests of a collective wait for one another, so none can wait for memory of others. When the
//! budget is exceeded, the client that holds most of it is disconnected.
//!
//! Invariant: the bytes of a [`HeldRequest`] count as used exactly as long as it lives.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use units::PeerId;

/// Size up to which a request does not count, in bytes. The number of requests of a client is
/// limited.
const FREE_BYTES: u64 = 4 << 10;

/// Bytes of the active requests of all clients.
pub(crate) struct RequestBudget {
    bytes_max: u64,
    bytes: Cell<u64>,
    of_clients: RefCell<BTreeMap<PeerId, u64>>,
}

/// Bytes of one request.
pub(crate) struct HeldRequest {
    budget: Rc<RequestBudget>,
    client: PeerId,
    bytes: u64,
}

impl RequestBudget {
    /// Makes a budget; `u64::MAX` means no limit.
    pub(crate) fn new(bytes_max: u64) -> Rc<Self> {
        Rc::new(Self { bytes_max, bytes: Cell::default(), of_clients: RefCell::default() })
    }

    /// Counts a request of `bytes` bytes; `None` if it need not be counted.
    pub(crate) fn hold(self: &Rc<Self>, client: PeerId, bytes: u64) -> Option<HeldRequest> {
        if bytes <= FREE_BYTES || self.bytes_max == u64::MAX {
            return None;
        }
        self.bytes.update(|sum| sum + bytes);
        *self.of_clients.borrow_mut().entry(client).or_default() += bytes;
        Some(HeldRequest { budget: Rc::clone(self), client, bytes })
    }

    /// Returns the client that holds most, if the budget is exceeded.
    pub(crate) fn exceeded_by(&self) -> Option<PeerId> {
        if self.bytes.get() <= self.bytes_max {
            return None;
        }
        let of_clients = self.of_clients.borrow();
        of_clients.iter().max_by_key(|(_, bytes)| **bytes).map(|(client, _)| *client)
    }
}

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.budget.bytes.update(|sum| sum - self.bytes);
        let mut of_clients = self.budget.of_clients.borrow_mut();
        if let Some(held) = of_clients.get_mut(&self.client) {
            *held -= self.bytes;
            if *held == 0 {
                of_clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: small requests do not count, and the client that holds most is the one to go.
    use super::*;

    #[test]
    fn the_largest_holder_exceeds_the_budget() {
        let budget = RequestBudget::new(100 << 10);
        assert!(budget.hold(PeerId(1), FREE_BYTES).is_none());
        let first = budget.hold(PeerId(1), 60 << 10);
        let second = budget.hold(PeerId(2), 30 << 10);
        assert_eq!(budget.exceeded_by(), None);
        let third = budget.hold(PeerId(2), 40 << 10);
        assert_eq!(budget.exceeded_by(), Some(PeerId(2)));
        drop(second);
        assert_eq!(budget.exceeded_by(), None);
        drop((first, third));
        assert!(budget.of_clients.borrow().is_empty() && budget.bytes.get() == 0);
        assert!(RequestBudget::new(u64::MAX).hold(PeerId(1), 1 << 30).is_none());
    }
}
