//! What a server does for longer than a block takes: collectives, and the parts of single clients.
//!
//! Invariant: an entry, and the bytes counted for a buffer, go with whoever works on them, however
//! that ends.

use crate::server::Server;
use crate::signal::Signal;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::collections::btree_map::Entry;
use units::{FileId, PeerId};
use wire::Fault;
use world::World;

/// A transfer under way.
pub(crate) struct Underway {
    pub(crate) file: FileId,
    /// Why it must end, once it must.
    pub(crate) verdict: Option<Fault>,
}

/// A transfer's entry among those under way, as long as it is.
pub(crate) struct Running<'a, W: World> {
    server: &'a Server<W>,
    key: (PeerId, u64),
}

impl<'a, W: World> Running<'a, W> {
    /// Enters the transfer `key`: who asked for it, and its number.
    pub(crate) fn new(
        server: &'a Server<W>,
        key: (PeerId, u64),
        file: FileId,
    ) -> Result<Self, Fault> {
        match server.collectives.borrow_mut().entry(key) {
            Entry::Occupied(_) => {
                let cause = format!("collective {} is already under way", key.1);
                Err(Fault::BadRequest { cause })
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Underway { file, verdict: None });
                Ok(Self { server, key })
            }
        }
    }

    /// Why it must end, once it must.
    pub(crate) fn verdict(&self) -> Option<Fault> {
        self.server.collectives.borrow().get(&self.key)?.verdict.clone()
    }
}

impl<W: World> Drop for Running<'_, W> {
    fn drop(&mut self) {
        self.server.collectives.borrow_mut().remove(&self.key);
        self.server.departures.notify();
    }
}

/// The bytes that transfers hold in buffers, of which a server has so many. Whoever wants more
/// than there are free waits, in the order of coming; one buffer there always is, however long.
pub(crate) struct Buffers {
    bytes_max: u64,
    held: Cell<u64>,
    waiting: RefCell<VecDeque<u64>>,
    next: Cell<u64>,
    freed: Signal,
}

/// The bytes of a buffer, as long as it is held.
pub(crate) struct Held<'a> {
    buffers: &'a Buffers,
    bytes: u64,
}

/// A place among those who wait.
struct Turn<'a> {
    buffers: &'a Buffers,
    number: u64,
}

impl Buffers {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            held: Cell::default(),
            waiting: RefCell::default(),
            next: Cell::default(),
            freed: Signal::default(),
        }
    }

    /// Bytes that are held now.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.get()
    }

    /// Waits until there is room for a buffer of `bytes` bytes. Whoever holds one must need no
    /// other to be done with it.
    pub(crate) async fn take(&self, bytes: u64) -> Held<'_> {
        if !(self.waiting.borrow().is_empty() && self.has_room(bytes)) {
            let turn = Turn { buffers: self, number: self.next.get() };
            self.next.set(turn.number + 1);
            self.waiting.borrow_mut().push_back(turn.number);
            let is_first = || self.waiting.borrow().front() == Some(&turn.number);
            self.freed.until(|| (is_first() && self.has_room(bytes)).then_some(())).await;
            self.held.set(self.held.get() + bytes);
            return Held { buffers: self, bytes };
        }
        self.held.set(self.held.get() + bytes);
        Held { buffers: self, bytes }
    }

    fn has_room(&self, bytes: u64) -> bool {
        let held = self.held.get();
        held == 0 || held.saturating_add(bytes) <= self.bytes_max
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.buffers.waiting.borrow_mut().retain(|number| *number != self.number);
        self.buffers.freed.notify();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let held = &self.buffers.held;
        held.set(held.get() - self.bytes);
        self.buffers.freed.notify();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: no more is held than there is, in the order of coming; one that is too long is held
    //! alone; who gives up waiting does not keep others from their turn.
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn buffers_are_given_in_turn() {
        let buffers = Buffers::new(10);
        let first = buffers.take(6).now_or_never().unwrap();
        let _second = buffers.take(4).now_or_never().unwrap();
        let mut long = Box::pin(buffers.take(20));
        let mut short = Box::pin(buffers.take(1));
        assert!((&mut long).now_or_never().is_none());
        drop(first);
        assert!((&mut short).now_or_never().is_none(), "it came later");
        assert!((&mut long).now_or_never().is_none());
        drop(long);
        let short = short.now_or_never().unwrap();
        assert_eq!(buffers.held_bytes(), 5);
        drop((short, _second));
        let long = buffers.take(20).now_or_never().unwrap();
        assert!(buffers.take(0).now_or_never().is_none());
        drop(long);
        assert_eq!(buffers.held_bytes(), 0);
    }
}
