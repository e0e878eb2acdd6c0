//! Small calls of a client whose program runs on its node.

use super::kept::{Kept, KeptPages};
use super::pending::{Added, PendingWrites};
use super::store::{Activity, GatheredStore, KeptStore, TakenWrites};
use crate::client::state::Client;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use units::{ByteRange, Run};
use wire::{Fault, FileRecord};
use world::{Memory, Payload, Scope, World};

/// Maximum number of pages that are fetched for one read, and once more to read from them.
const FETCHES_MAX: u32 = 3;

/// Small writes and reads of one open file. Writes are gathered, and pages kept to read from them,
/// where the servers permit it.
pub struct SmallCalls<W: World> {
    client: Client<W>,
    store: Rc<Store<W>>,
    sending: Scope<W, Infallible>,
}

struct Store<W: World> {
    world: W,
    record: Rc<RefCell<FileRecord>>,
    pending: RefCell<PendingWrites<Vec<W::Payload>>>,
    kept: RefCell<KeptPages<W::Payload>>,
}

impl<W: World> SmallCalls<W> {
    /// Makes none yet of an open file. They learn its size from `record`, and tell it there.
    pub fn new(client: &Client<W>, record: Rc<RefCell<FileRecord>>) -> Self {
        let world = client.world().clone();
        let sending = Scope::new(world.clone());
        let (pending, kept) = (RefCell::default(), RefCell::default());
        let store = Rc::new(Store { world, record, pending, kept });
        Self { client: client.clone(), store, sending }
    }

    /// Returns data of `length` bytes, for programs whose data does not matter.
    pub fn payload(&self, length: u64) -> W::Payload {
        self.store.world.memory(length).freeze()
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
            let added = self.store.add(range, payload);
            if matches!(added, Added::Gathered | Added::HalfFull) {
                let cost = self.client.costs().gather.of(1, range.length());
                self.store.world.compute(cost).await;
            }
            match added {
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

impl<W: World> SmallCalls<W> {
    /// Reads bytes from kept pages, if they are there or it is time to fetch them. `None` if the
    /// caller must read them by itself.
    ///
    /// # Errors
    /// Faults of the servers.
    pub async fn read(&self, offset: u64, length: u64) -> Result<Option<W::Payload>, Fault> {
        let range = ByteRange::checked_at(offset, length).filter(|range| !range.is_empty());
        let Some(range) = range else { return Ok(None) };
        let record = self.store.record.borrow().clone();
        for _ in 0..FETCHES_MAX {
            if self.store.pending.borrow().concerns(range) {
                self.client.settle(record.file, false).await;
                return Ok(None);
            }
            let memory = self.store.world.memory(length);
            let kept = self.store.kept.borrow_mut().read(
                &record,
                range,
                self.store.now(),
                |page, start, part| {
                    let run = Run::contiguous(part.start, part.end - part.start);
                    memory.scatter(&[run], &page.slice(start, run.length));
                },
            );
            let block = match kept {
                Kept::Read => {
                    let cost = self.client.costs().kept_read.of(1, range.length());
                    self.store.world.compute(cost).await;
                    return Ok(Some(memory.freeze()));
                }
                Kept::Missing => return Ok(None),
                Kept::Wants(block) => block,
            };
            let event = self.store.kept.borrow().event();
            let store = Rc::clone(&self.store) as Rc<dyn KeptStore>;
            let (page, may_keep) = self.client.page_to_keep(&record, block, store).await?;
            if !may_keep || !self.store.kept.borrow_mut().keep(&record, block, page, event) {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

impl<W: World> KeptStore for Store<W> {
    fn drop_pages(&self) {
        self.kept.borrow_mut().drop_all();
    }

    fn used_at(&self) -> u64 {
        self.kept.borrow().used_at()
    }

    fn confirm(&self, at: u64) {
        self.kept.borrow_mut().confirm(at);
    }

    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl<W: World> Store<W> {
    fn now(&self) -> u64 {
        self.world.now().as_ns()
    }

    fn add(&self, range: ByteRange, payload: &W::Payload) -> Added {
        let mut pending = self.pending.borrow_mut();
        let added = pending.add(&self.record.borrow(), range, self.now(), |data, part| {
            data.push(payload.slice(part.start, part.end - part.start));
        });
        if matches!(added, Added::Gathered | Added::HalfFull) {
            self.kept.borrow_mut().wrote(range);
        }
        added
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
