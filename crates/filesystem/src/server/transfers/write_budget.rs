//! Budget of data that goes with requests, and waits for room in the cache or for other members of
//! a collective.
//!
//! Invariant: the bytes of a [`WritePermit`] count as used exactly as long as it lives.

use std::cell::Cell;
use std::rc::Rc;

/// Limit on data that waits with its requests, for any number of clients.
pub(crate) struct WriteBudget {
    bytes_max: u64,
    bytes: Cell<u64>,
}

/// Permit to keep the data of one request.
pub(crate) struct WritePermit {
    write_budget: Rc<WriteBudget>,
    bytes: u64,
}

impl WriteBudget {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: Cell::default() }
    }

    /// Takes a permit for `bytes` bytes, unless that exceeds the budget. A single permit may exceed
    /// it.
    pub(crate) fn keep(self: &Rc<Self>, bytes: u64) -> Option<WritePermit> {
        let before = self.bytes.get();
        let after = before.saturating_add(bytes);
        if before > 0 && after > self.bytes_max {
            return None;
        }
        self.bytes.set(after);
        Some(WritePermit { write_budget: Rc::clone(self), bytes })
    }
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        self.write_budget.bytes.update(|bytes| bytes - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    //! Proves: permits never exceed the budget, but a single one may.
    use super::*;

    #[test]
    fn write_permits_stay_within_the_budget() {
        let brought = Rc::new(WriteBudget::new(10));
        let first = brought.keep(20);
        assert!(first.is_some() && brought.keep(1).is_none());
        drop(first);
        let both = (brought.keep(4), brought.keep(6));
        assert!(both.0.is_some() && both.1.is_some() && brought.keep(1).is_none());
        drop(both.0);
        assert!(brought.keep(5).is_none() && brought.keep(4).is_some());
    }
}
