//! Clients that are being pinged, and requests that are no reason to ping any.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use units::PeerId;

/// Clients that are being pinged.
#[derive(Default)]
pub(crate) struct Probes(RefCell<BTreeSet<PeerId>>);

/// Ping of one client.
pub(crate) struct Probe<'a> {
    probes: &'a Probes,
    client: PeerId,
}

impl Probes {
    /// Begins to ping a client, unless it is being pinged already.
    pub(crate) fn begin(&self, client: PeerId) -> Option<Probe<'_>> {
        let is_new = self.0.borrow_mut().insert(client);
        is_new.then(|| Probe { probes: self, client })
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.probes.0.borrow_mut().remove(&self.client);
    }
}

/// Guard of an active request whose wait has a time-out of its own.
pub(crate) struct BoundedWait(Rc<Cell<usize>>);

impl BoundedWait {
    /// Counts one more such request.
    pub(crate) fn begin(count: &Rc<Cell<usize>>) -> Self {
        count.update(|requests| requests + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for BoundedWait {
    fn drop(&mut self) {
        self.0.update(|requests| requests - 1);
    }
}
