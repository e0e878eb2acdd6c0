//! Small writes of a client whose program runs on its node.

use super::pending::{Added, PendingWrites};
use super::store::{Activity, GatheredStore, TakenWrites};
use crate::client::state::Client;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use units::{ByteRange, Run};
use wire::{Fault, FileRecord};
use world::{Memory, Payload, Scope, World};

/// Small writes of one open file, which are gathered where the servers permit it.
pub struct SmallWrites<W: World> {
    client: Client<W>,
    store: Rc<Store<W>>,
    sending: Scope<W, Infallible>,
}

struct Store<W: World> {
    world: W,
    record: RefCell<FileRecord>,
    pending: RefCell<PendingWrites<Vec<W::Payload>>>,
}

impl<W: World> SmallWrites<W> {
    /// Makes none yet of an open file.
    pub fn new(client: &Client<W>, record: FileRecord) -> Self {
        let (world, pending) = (client.world().clone(), RefCell::default());
        let sending = Scope::new(world.clone());
        let store = Rc::new(Store { world, record: RefCell::new(record), pending });
        Self { client: client.clone(), store, sending }
    }

    /// Returns the record of the file. It need not have the size that gathered writes will make.
    pub fn record(&self) -> FileRecord {
        self.store.record.borrow().clone()
    }

    /// True if nothing waits to be sent.
    pub fn is_quiet(&self) -> bool {
        self.store.pending.borrow().activity().oldest.is_none()
    }

    /// Gathers a write of `payload` to the bytes from `offset` on. False if the caller must write
    /// them by itself.
    ///
    /// # Errors
    /// Faults of the servers.
    pub async fn write(&self, offset: u64, payload: &W::Payload) -> Result<bool, Fault> {
        let range = ByteRange::checked_at(offset, payload.length());
        let Some(range) = range.filter(|range| !range.is_empty()) else { return Ok(false) };
        let file = self.store.record.borrow().file;
        loop {
            match self.store.add(range, payload) {
                Added::Gathered => return Ok(true),
                Added::HalfFull => {
                    let client = self.client.clone();
                    self.sending.spawn(async move {
                        client.settle(file, false).await;
                        Ok(())
                    });
                    return Ok(true);
                }
                Added::Full => self.client.settle(file, false).await,
                Added::Refused => return Ok(false),
                Added::WantsLease => {
                    let store = Rc::clone(&self.store) as Rc<dyn GatheredStore<W::Payload>>;
                    if !self.client.begin_gathering(store).await? {
                        self.store.pending.borrow_mut().refused();
                        return Ok(false);
                    }
                }
            }
        }
    }
}

impl<W: World> Store<W> {
    fn now(&self) -> u64 {
        self.world.now().as_ns()
    }

    fn add(&self, range: ByteRange, payload: &W::Payload) -> Added {
        self.pending.borrow_mut().add(&self.record.borrow(), range, self.now(), |data, part| {
            data.push(payload.slice(part.start, part.end - part.start));
        })
    }
}

impl<W: World> GatheredStore<W::Payload> for Store<W> {
    fn permit(&self, may_gather: bool) {
        self.pending.borrow_mut().permit(may_gather, self.now());
    }

    fn take(&self) -> TakenWrites<W::Payload> {
        let join = |parts: Vec<W::Payload>| {
            let memory = self.world.memory(parts.iter().map(Payload::length).sum());
            let mut offset = 0;
            for part in parts {
                memory.scatter(&[Run::contiguous(offset, part.length())], &part);
                offset += part.length();
            }
            memory.freeze()
        };
        self.pending.borrow_mut().take(self.now(), join)
    }

    fn flushed(&self, outcome: Result<(), Fault>) {
        self.pending.borrow_mut().flushed(outcome);
    }

    fn activity(&self) -> Activity {
        self.pending.borrow().activity()
    }

    fn record(&self) -> FileRecord {
        self.record.borrow().clone()
    }

    fn learn(&self, record: &FileRecord) {
        self.record.borrow_mut().learn(record.size());
    }

    fn take_failure(&self) -> Option<Fault> {
        self.pending.borrow_mut().take_failure()
    }
}
