//! Lost servers for which a client waits, and the number of losses of each.

use crate::signal::Signal;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{Duration, ServerId};
use wire::ClientKey;

/// Change in the connection to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerChange {
    /// It is lost. What it had not stored may be lost too.
    Lost,
    /// It was lost, and cannot be reached yet.
    Absent,
    /// It is there again.
    Returned,
}

/// Hears of each change. If it returns false, the server is not waited for any longer.
pub(super) type Observer = Rc<dyn Fn(ServerId, ServerChange) -> bool>;

/// Servers that come back.
#[derive(Default)]
pub(crate) struct Returns {
    /// Time for which a lost server is waited for; none is, if it is 0.
    pub(super) patience: Cell<Duration>,
    /// Lost servers to which the client tries to connect.
    pub(super) awaited: RefCell<BTreeSet<ServerId>>,
    /// Number of times that each server was lost.
    pub(super) losses: RefCell<BTreeMap<ServerId, u64>>,
    /// Keys of the connections to servers that were lost.
    pub(super) keys: RefCell<BTreeMap<ServerId, ClientKey>>,
    pub(super) observer: RefCell<Option<Observer>>,
    /// Notified when a server has returned, or is waited for no longer.
    pub(super) changed: Signal,
}

impl Returns {
    /// True if lost servers are waited for.
    pub(crate) fn are_awaited(&self) -> bool {
        self.patience.get() > Duration::ZERO
    }

    /// Tells of a change. False if the server is not to be waited for any longer.
    pub(super) fn observe(&self, server: ServerId, change: ServerChange) -> bool {
        let observer = self.observer.borrow().clone();
        observer.is_none_or(|observer| observer(server, change))
    }

    /// Notes a loss of a server that is waited for. True if the caller must begin to connect again.
    pub(super) fn lost(&self, server: ServerId) -> bool {
        if !self.awaited.borrow_mut().insert(server) {
            return false;
        }
        *self.losses.borrow_mut().entry(server).or_default() += 1;
        self.observe(server, ServerChange::Lost);
        true
    }

    pub(super) fn end_waiting(&self, server: ServerId) {
        self.awaited.borrow_mut().remove(&server);
        self.changed.notify();
    }
}
