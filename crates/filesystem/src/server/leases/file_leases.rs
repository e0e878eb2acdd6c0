//! Leases of files, and the clients that are to return theirs.

use crate::signal::Signal;
use policy::{GatheredPart, GatheredWrite, WriteOrder};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{ByteRange, FileId, PeerId};

/// Leases of all files at one server.
#[derive(Default)]
pub(crate) struct Leases {
    files: RefCell<BTreeMap<FileId, FileLeases>>,
    /// True once no further lease is given, because the server ends.
    is_closed: Cell<bool>,
    /// Notified when a lease has ended, or a client has flushed.
    changed: Signal,
}

/// Leases of one file: at least one, or the turn of a write.
struct FileLeases {
    /// Clock of the stamps of all its clients.
    clock: u64,
    order: WriteOrder<PeerId>,
    grants: BTreeMap<PeerId, Grant>,
    /// Number of the next grant.
    next: u64,
    /// True while gathered writes of a client are carried out.
    is_writing: bool,
}

/// Lease of one client.
struct Grant {
    number: u64,
    recalled: Recalled,
}

/// Latest command to a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Recalled {
    Nothing,
    ToFlush,
    ToEnd,
}

/// Turn of a client to have writes of a file with leases carried out. Over when dropped.
pub(crate) struct Turn<'a> {
    leases: &'a Leases,
    file: FileId,
}

impl Leases {
    /// True when no client has a lease of any file.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.borrow().is_empty()
    }

    /// Gives no lease any more.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
    }

    /// Files of which clients have leases.
    pub(crate) fn files(&self) -> Vec<FileId> {
        self.files.borrow().keys().copied().collect()
    }

    /// Clients that were told to flush or to return a lease and have not done it.
    pub(crate) fn recalled_clients(&self) -> Vec<PeerId> {
        let files = self.files.borrow();
        let grants = files.values().flat_map(|file| &file.grants);
        let recalled = grants.filter(|(_, grant)| grant.recalled != Recalled::Nothing);
        recalled.map(|(client, _)| *client).collect()
    }

    /// Gives a client a lease. False if it has one, or clients by another clock have.
    pub(super) fn grant(&self, file: FileId, client: PeerId, clock: u64, since: u64) -> bool {
        if self.is_closed.get() {
            return false;
        }
        let mut files = self.files.borrow_mut();
        let leases = files.entry(file).or_insert_with(|| FileLeases {
            clock,
            order: WriteOrder::default(),
            grants: BTreeMap::new(),
            next: 0,
            is_writing: false,
        });
        if leases.grants.is_empty() {
            leases.clock = clock;
        }
        if leases.clock != clock || leases.grants.contains_key(&client) {
            return false;
        }
        let number = leases.next;
        leases.next += 1;
        leases.grants.insert(client, Grant { number, recalled: Recalled::Nothing });
        leases.order.begin(client, since);
        true
    }

    /// True if a client other than this one has a lease of a file.
    pub(super) fn has_others(&self, file: FileId, client: PeerId) -> bool {
        let files = self.files.borrow();
        let leases = files.get(&file);
        leases.is_some_and(|leases| leases.grants.keys().any(|other| *other != client))
    }

    /// Ends the lease of a client that has closed a file, if it has one.
    pub(crate) fn end(&self, file: FileId, client: PeerId) {
        let mut files = self.files.borrow_mut();
        let Some(leases) = files.get_mut(&file) else { return };
        if leases.grants.remove(&client).is_none() {
            return;
        }
        leases.order.end(client);
        if leases.is_unused() {
            files.remove(&file);
        }
        drop(files);
        self.changed.notify();
    }

    /// Ends all leases of a client that has left.
    pub(crate) fn leave(&self, client: PeerId) {
        for file in self.files() {
            self.end(file, client);
        }
    }

    /// Ends all leases of a file whose data goes.
    pub(crate) fn forget(&self, file: FileId) {
        if self.files.borrow_mut().remove(&file).is_some() {
            self.changed.notify();
        }
    }

    /// Returns the clients that are to be told to return a lease of a file, all but `except`, and
    /// the numbers of all grants that end then.
    pub(super) fn begin_recall(
        &self,
        file: FileId,
        except: Option<PeerId>,
    ) -> (Vec<PeerId>, BTreeSet<u64>) {
        let mut files = self.files.borrow_mut();
        let Some(leases) = files.get_mut(&file) else { return Default::default() };
        let others = leases.grants.iter_mut().filter(|(client, _)| Some(**client) != except);
        let (mut told, mut ending) = (Vec::new(), BTreeSet::new());
        for (client, grant) in others {
            ending.insert(grant.number);
            if grant.recalled < Recalled::ToEnd {
                grant.recalled = Recalled::ToEnd;
                told.push(*client);
            }
        }
        (told, ending)
    }

    /// Waits until these grants have ended.
    pub(super) async fn until_ended(&self, file: FileId, ending: BTreeSet<u64>) {
        let has_ended = || {
            let files = self.files.borrow();
            let leases = files.get(&file);
            let goes_on = |leases: &FileLeases| {
                leases.grants.values().any(|grant| ending.contains(&grant.number))
            };
            (!leases.is_some_and(goes_on)).then_some(())
        };
        self.changed.until(has_ended).await;
    }

    /// Waits for the turn of a client to have its gathered writes carried out. `None` if it has no
    /// lease.
    pub(super) async fn turn(&self, file: FileId, client: PeerId) -> Option<Turn<'_>> {
        self.turn_while(file, |leases| leases.grants.contains_key(&client)).await
    }

    /// Waits for the turn of a write that is not gathered, by a server with this clock. `None` if
    /// no client has a lease by the same clock.
    pub(super) async fn turn_by(&self, file: FileId, clock: u64) -> Option<Turn<'_>> {
        self.turn_while(file, |leases| leases.clock == clock).await
    }

    async fn turn_while(
        &self,
        file: FileId,
        condition: impl Fn(&FileLeases) -> bool,
    ) -> Option<Turn<'_>> {
        let begin = || {
            let mut files = self.files.borrow_mut();
            match files.get_mut(&file) {
                Some(leases) if condition(leases) => {
                    (!std::mem::replace(&mut leases.is_writing, true)).then_some(true)
                }
                Some(_) | None => Some(false),
            }
        };
        let has_turn = self.changed.until(begin).await;
        has_turn.then_some(Turn { leases: self, file })
    }

    /// Waits until a client may go on that has flushed all its writes up to a stamp: the server
    /// remembers no more than `writes_max` pieces, or all others have flushed as much. Until then
    /// returns, whenever there are new ones, the clients that are to be told to flush.
    pub(super) async fn next_to_tell(
        &self,
        file: FileId,
        stamp: u64,
        writes_max: usize,
    ) -> Option<Vec<PeerId>> {
        let next = || {
            let mut files = self.files.borrow_mut();
            match files.get_mut(&file) {
                Some(leases) => leases.next_to_tell(stamp, writes_max),
                None => Some(None),
            }
        };
        self.changed.until(next).await
    }
}

impl FileLeases {
    fn is_unused(&self) -> bool {
        self.grants.is_empty() && !self.is_writing
    }

    /// Returns the clients to tell, or that there are none to wait for. `None` to wait.
    fn next_to_tell(&mut self, stamp: u64, writes_max: usize) -> Option<Option<Vec<PeerId>>> {
        if self.order.remembered() > writes_max {
            self.order.forget_all_unused();
        }
        if self.order.remembered() <= writes_max {
            return Some(None);
        }
        let (mut told, mut waits) = (Vec::new(), false);
        for client in self.order.behind_stamp(stamp) {
            waits = true;
            if let Some(grant) = self.grants.get_mut(&client)
                && grant.recalled == Recalled::Nothing
            {
                grant.recalled = Recalled::ToFlush;
                told.push(client);
            }
        }
        match (waits, told.is_empty()) {
            (false, _) => Some(None),
            (true, false) => Some(Some(told)),
            (true, true) => None,
        }
    }
}

impl Turn<'_> {
    /// Notes a write that was not gathered.
    pub(crate) fn wrote(&self, client: PeerId, range: ByteRange, stamp: u64) {
        if let Some(leases) = self.leases.files.borrow_mut().get_mut(&self.file) {
            leases.order.wrote(client, range, stamp);
        }
    }

    /// Returns the parts of a flush that count.
    pub(super) fn parts(&self, writes: &[GatheredWrite]) -> Vec<GatheredPart> {
        let files = self.leases.files.borrow();
        files.get(&self.file).map_or_else(Vec::new, |one| one.order.parts(writes))
    }

    /// Notes that the writes of a client up to `until` are carried out.
    pub(super) fn flushed(&self, client: PeerId, writes: &[GatheredWrite], until: u64) {
        let mut files = self.leases.files.borrow_mut();
        let Some(leases) = files.get_mut(&self.file) else { return };
        leases.order.flushed(client, writes, until);
        if let Some(grant) = leases.grants.get_mut(&client)
            && grant.recalled == Recalled::ToFlush
        {
            grant.recalled = Recalled::Nothing;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut files = self.leases.files.borrow_mut();
        if let Some(leases) = files.get_mut(&self.file) {
            leases.is_writing = false;
            if leases.is_unused() {
                files.remove(&self.file);
            }
        }
        drop(files);
        self.leases.changed.notify();
    }
}
