//! Copies of the catalogue at other servers, as the server that keeps it sees them.
//!
//! Each change of the records has a position, which the records hold too. The first of the other
//! servers is *awaited*: a change is answered when it has the change as well, unless it does not
//! answer. The others get changes soon after. A server that connects without the last change gets
//! all records anew.
//!
//! A change that begins when no other one is active is sent *early*, while it is stored here.
//! Others are sent when all before them have ended, many in one message.
//!
//! Invariants:
//! - Changes reach a copy in the order of their positions, without a gap.
//! - A copy at the position that is stored here has what is stored here: of all changes that may
//!   not be stored here, a copy has at most one, its last, and gets all records anew if that one
//!   failed.
//! - A server that does not answer delays changes once, for at most [`ANSWER_TIMEOUT`].

use crate::client::greet;
use crate::signal::Signal;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::rc::Rc;
use tracing::debug;
use units::{Duration, PeerId, ServerId};
use wire::{CatalogueChange, CatalogueRequest, ClientKey, Fault, Message, Reply, RequestId};
use world::{Address, RecordChange, RecordTable, RecordsError, World};

/// Key of the record with the position of the last change, which no entry has.
pub const POSITION_KEY: u64 = u64::MAX;

/// Position of a copy with these records; 0 if it is not whole.
pub fn position_of(records: &[(u64, Vec<u8>)]) -> u64 {
    let found = records.iter().find(|(key, _)| *key == POSITION_KEY);
    found.and_then(|(_, value)| wire::decode_record(value).ok()).unwrap_or(0)
}

/// Maximum number of servers with a copy.
pub const COPIES_MAX: usize = 7;

/// Time limit of a copy to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_ms(2_000);

/// Pause before another attempt to connect.
const CONNECT_PAUSE: Duration = Duration::from_ms(200);

/// Bytes of records after which a message takes no further one.
pub(super) const MESSAGE_BYTES: usize = 256 << 10;

/// Bytes of changes that may wait for a copy that is not awaited. With more it begins anew.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Records, as messages have them.
type Changed = Vec<(u64, Option<Vec<u8>>)>;

/// Positions that a start skips: those of changes that failed before may be in a copy.
const SKIPPED: u64 = 1 << 20;

/// Copies of the catalogue.
pub(crate) struct Copies<W> {
    world: W,
    /// Position of the last change that was begun.
    last: Cell<u64>,
    /// Position of the next change. Those of this process follow one another.
    next: Cell<u64>,
    /// Changes that have ended before an earlier one has. `None`: it was sent early.
    ended: RefCell<BTreeMap<u64, Option<Changed>>>,
    /// True if the last change was made. So one of this process has been stored before any is sent
    /// early, and the next process uses no position again; and on a full disk, where all fail, none
    /// is sent early.
    sends_early: Cell<bool>,
    /// Position up to which all changes of this process have ended.
    settled: Cell<u64>,
    /// Position of the last change that has ended with all before.
    last_settled: Cell<u64>,
    followers: RefCell<Vec<Rc<Follower>>>,
    /// Notified when a copy has more, or is given up.
    copied: Signal,
}

/// Change that has begun. When it is dropped without an end, it is not known whether it was made.
pub(super) struct Begun<'a, W: World> {
    copies: &'a Copies<W>,
    position: u64,
    /// What copies get when it has ended; `None` if it was sent early.
    later: Option<Changed>,
    is_ended: Cell<bool>,
}

/// Server with a copy.
struct Follower {
    server: ServerId,
    address: Address,
    is_awaited: bool,
    peer: Cell<Option<PeerId>>,
    /// True while changes are kept for it.
    is_following: Cell<bool>,
    /// True once it has all records.
    is_whole: Cell<bool>,
    /// True if it may have a change that failed.
    is_wrong: Cell<bool>,
    waiting: RefCell<VecDeque<(u64, Changed)>>,
    waiting_bytes: Cell<usize>,
    /// Position that it has answered.
    position: Cell<u64>,
    reply: RefCell<Option<Result<Reply, Fault>>>,
    /// Notified when there are changes for it, when it has answered, and when it has left.
    changed: Signal,
}

/// Another server of the instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherServer {
    /// Number of the server.
    pub server: ServerId,
    /// Its address.
    pub address: Address,
}

fn bytes_of(changed: &Changed) -> usize {
    changed.iter().map(|(_, value)| 16 + value.as_ref().map_or(0, Vec::len)).sum()
}

impl<W: World> Copies<W> {
    /// Makes none yet, of records whose last change has this position.
    pub(super) fn new(world: W, position: u64) -> Self {
        // 0 is the position of a copy that is not whole.
        let last = position.max(1);
        let next = last.next_multiple_of(SKIPPED) + 1;
        Self {
            world,
            last: Cell::new(last),
            next: Cell::new(next),
            ended: RefCell::default(),
            sends_early: Cell::new(false),
            settled: Cell::new(next - 1),
            last_settled: Cell::new(last),
            followers: RefCell::default(),
            copied: Signal::default(),
        }
    }

    /// Adds the servers that keep copies. Returns the work for each, which never ends.
    pub(crate) fn follow(
        self: &Rc<Self>,
        holders: Vec<OtherServer>,
    ) -> Vec<impl Future<Output = ()> + use<W>> {
        let followers = holders.into_iter().take(COPIES_MAX).enumerate();
        let followers = followers.map(|(index, OtherServer { server, address })| {
            Rc::new(Follower {
                server,
                address,
                is_awaited: index == 0,
                peer: Cell::new(None),
                is_following: Cell::new(false),
                is_whole: Cell::new(false),
                is_wrong: Cell::new(false),
                waiting: RefCell::default(),
                waiting_bytes: Cell::new(0),
                position: Cell::new(0),
                reply: RefCell::default(),
                changed: Signal::default(),
            })
        });
        let followers: Vec<Rc<Follower>> = followers.collect();
        self.followers.borrow_mut().clone_from(&followers);
        let work = |follower| {
            let copies = Rc::clone(self);
            async move { copies.serve(follower).await }
        };
        followers.into_iter().map(work).collect()
    }

    /// Begins a change of the records. Also returns the change that records its position; `None` if
    /// there are no copies.
    pub(super) fn begin(&self, changes: &[RecordChange]) -> Option<(Begun<'_, W>, RecordChange)> {
        if self.followers.borrow().is_empty() {
            return None;
        }
        let position = self.next.get();
        let is_early = self.settled.get() + 1 == position && self.sends_early.get();
        self.next.set(position + 1);
        self.last.set(position);
        let changed = changes.iter().map(|change| (change.key, change.value.clone())).collect();
        let later = match is_early {
            true => {
                self.keep(position, &changed);
                None
            }
            false => Some(changed),
        };
        let record = RecordChange::put(POSITION_KEY, wire::encode_record(&position));
        Some((Begun { copies: self, position, later, is_ended: Cell::new(false) }, record))
    }

    /// Keeps a change for all servers that follow.
    fn keep(&self, position: u64, changed: &Changed) {
        for follower in self.followers.borrow().iter().filter(|one| one.is_following.get()) {
            follower.keep(position, changed.clone());
        }
    }

    fn end(&self, position: u64, changed: Option<Changed>) {
        self.ended.borrow_mut().insert(position, changed);
        loop {
            let next = self.settled.get() + 1;
            let Some(changed) = self.ended.borrow_mut().remove(&next) else { break };
            self.settled.set(next);
            self.last_settled.set(next);
            // Whoever follows since an early one has begun gets it with all records.
            if let Some(changed) = changed {
                self.keep(next, &changed);
            }
        }
        self.copied.notify();
    }

    /// Has all servers get all records anew: they may have a change that was not made.
    fn distrust(&self) {
        for follower in self.followers.borrow().iter() {
            follower.is_wrong.set(true);
            follower.give_up();
        }
    }

    /// Gives up all copies, because the server ends.
    pub(crate) fn give_up(&self) {
        let followers = self.followers.take();
        followers.iter().for_each(|follower| follower.give_up());
        self.copied.notify();
    }

    /// Servers whose copies have the last change.
    pub(crate) fn current(&self) -> Vec<ServerId> {
        let followers = self.followers.borrow();
        let is_current = |one: &&Rc<Follower>| {
            one.is_whole.get() && one.position.get() == self.last_settled.get()
        };
        followers.iter().filter(is_current).map(|one| one.server).collect()
    }

    /// True for the connection to a server with a copy.
    pub(crate) fn is_at(&self, peer: PeerId) -> bool {
        self.followers.borrow().iter().any(|one| one.peer.get() == Some(peer))
    }

    /// Takes the answer of a server with a copy. Returns `false` if it is from nobody else.
    pub(crate) fn accept(&self, peer: PeerId, result: Result<Reply, Fault>) -> bool {
        let followers = self.followers.borrow();
        let Some(follower) = followers.iter().find(|one| one.peer.get() == Some(peer)) else {
            return false;
        };
        *follower.reply.borrow_mut() = Some(result);
        follower.changed.notify();
        true
    }

    /// Notes that a peer has departed.
    pub(crate) fn departed(&self, peer: PeerId) {
        let followers = self.followers.borrow();
        if let Some(follower) = followers.iter().find(|one| one.peer.get() == Some(peer)) {
            follower.peer.set(None);
            follower.give_up();
            self.copied.notify();
        }
    }

    /// Keeps the copy of one server.
    async fn serve(&self, follower: Rc<Follower>) {
        loop {
            if let Err(cause) = self.copy_to(&follower).await {
                debug!(server = follower.server.0, cause, "a copy of the catalogue is behind");
            }
            follower.give_up();
            if let Some(peer) = follower.peer.take() {
                self.world.disconnect(peer);
            }
            self.copied.notify();
            self.world.sleep(CONNECT_PAUSE).await;
        }
    }

    /// Connects, and sends all changes until it fails.
    async fn copy_to(&self, follower: &Follower) -> Result<(), String> {
        let key = ClientKey(self.world.random());
        let connected = pin!(greet(&self.world, &follower.address, key));
        let connected = match select(connected, pin!(self.world.sleep(ANSWER_TIMEOUT))).await {
            Either::Left((connected, _)) => connected.map_err(|error| error.to_string())?,
            Either::Right(_) => return Err("it does not answer".to_owned()),
        };
        follower.peer.set(Some(connected));
        // No change has this position: only its own is asked for.
        let question = CatalogueChange { from: Some(u64::MAX), to: 0, records: Vec::new() };
        let found = self.ask(follower, question).await?;
        let start = self.last.get();
        // From here on, all later changes are kept for it.
        follower.follow(found);
        if found != start || follower.is_wrong.get() {
            // Some of the earlier ones may not be in the records yet.
            self.copied.until(|| (self.settled.get() >= start).then_some(())).await;
            self.copy_all(follower, start).await?;
            follower.is_wrong.set(false);
        }
        follower.is_whole.set(true);
        loop {
            let next = || {
                let has_next = !follower.waiting.borrow().is_empty();
                (has_next || !follower.is_following.get()).then_some(())
            };
            follower.changed.until(next).await;
            if !follower.is_following.get() {
                return Err("too much waited for it, or it has left".to_owned());
            }
            if let Some((to, records)) = follower.take_waiting(start) {
                let from = Some(follower.position.get());
                self.send(follower, CatalogueChange { from, to, records }).await?;
            }
        }
    }

    /// Sends all records, which have the changes up to `start`.
    async fn copy_all(&self, follower: &Follower, start: u64) -> Result<(), String> {
        let records = self.world.records(RecordTable::Catalogue).await;
        let records = records.map_err(|error: RecordsError| error.to_string())?;
        let mut from = None;
        let (mut part, mut bytes) = (Changed::new(), 0);
        for (key, value) in records.into_iter().filter(|(key, _)| *key != POSITION_KEY) {
            bytes += 16 + value.len();
            part.push((key, Some(value)));
            if bytes >= MESSAGE_BYTES {
                let records = std::mem::take(&mut part);
                self.send(follower, CatalogueChange { from, to: 0, records }).await?;
                (from, bytes) = (Some(0), 0);
            }
        }
        self.send(follower, CatalogueChange { from, to: start, records: part }).await
    }

    /// Sends a change, which must be made.
    async fn send(&self, follower: &Follower, change: CatalogueChange) -> Result<(), String> {
        let to = change.to;
        let position = self.ask(follower, change).await?;
        if position != to {
            return Err(format!("it is at {position} and not at {to}"));
        }
        follower.position.set(position);
        self.copied.notify();
        Ok(())
    }

    /// Sends a change, and returns the position of the copy.
    async fn ask(&self, follower: &Follower, change: CatalogueChange) -> Result<u64, String> {
        let asked = pin!(self.call(follower, change));
        match select(asked, pin!(self.world.sleep(ANSWER_TIMEOUT))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err("it does not answer".to_owned()),
        }
    }

    async fn call(&self, follower: &Follower, change: CatalogueChange) -> Result<u64, String> {
        let peer = follower.peer.get().ok_or("it has left")?;
        follower.reply.take();
        let request = CatalogueRequest::Copy(change).into();
        let message = wire::encode(&Message::Request { id: RequestId(0), request });
        let sent = self.world.send(peer, world::Message::new(message)).await;
        sent.map_err(|error| error.to_string())?;
        let answered = || match follower.peer.get() {
            Some(_) => follower.reply.take().map(Some),
            None => Some(None),
        };
        match follower.changed.until(answered).await {
            Some(Ok(Reply::Copied { position })) => Ok(position),
            Some(Ok(other)) => Err(format!("it answered {other:?}")),
            Some(Err(fault)) => Err(fault.to_string()),
            None => Err("it has left".to_owned()),
        }
    }
}

impl<W: World> Begun<'_, W> {
    /// Ends the change, which was made. Waits until the awaited copy has it, or does not answer.
    pub(super) async fn made(mut self) {
        self.is_ended.set(true);
        self.copies.sends_early.set(true);
        self.copies.end(self.position, self.later.take());
        let awaited = self.copies.followers.borrow().iter().find(|one| one.is_awaited).cloned();
        let Some(awaited) = awaited else { return };
        let is_copied = || {
            let is_there = !awaited.is_whole.get() || awaited.position.get() >= self.position;
            is_there.then_some(())
        };
        self.copies.copied.until(is_copied).await;
    }

    /// Ends the change, which was not made.
    pub(super) fn failed(self) {
        self.is_ended.set(true);
        self.copies.sends_early.set(false);
        if self.later.is_none() {
            self.copies.distrust();
        }
        self.end_without();
    }

    /// Ends the change for copies: they get nothing of it.
    fn end_without(&self) {
        self.copies.end(self.position, self.later.as_ref().map(|_| Changed::new()));
    }
}

impl<W: World> Drop for Begun<'_, W> {
    fn drop(&mut self) {
        if !self.is_ended.get() {
            self.copies.distrust();
            self.end_without();
        }
    }
}

impl Follower {
    /// Keeps a change for it.
    fn keep(&self, position: u64, changed: Changed) {
        self.waiting_bytes.update(|waiting| waiting + bytes_of(&changed));
        self.waiting.borrow_mut().push_back((position, changed));
        if self.waiting_bytes.get() > WAITING_BYTES_MAX {
            self.give_up();
        }
        self.changed.notify();
    }

    /// Keeps changes for it from now on.
    fn follow(&self, position: u64) {
        self.waiting.borrow_mut().clear();
        self.waiting_bytes.set(0);
        self.position.set(position);
        self.is_whole.set(false);
        self.is_following.set(true);
    }

    /// Keeps no changes for it any more.
    fn give_up(&self) {
        self.is_following.set(false);
        self.is_whole.set(false);
        self.waiting.borrow_mut().clear();
        self.waiting_bytes.set(0);
        self.position.set(0);
        self.changed.notify();
    }

    /// Takes as many of the next changes as a message may have, and the position of the last;
    /// `None` if there are none. Those up to `start` are in the copy.
    fn take_waiting(&self, start: u64) -> Option<(u64, Changed)> {
        let mut waiting = self.waiting.borrow_mut();
        let (mut last, mut records, mut bytes) = (None, Changed::new(), 0);
        while bytes < MESSAGE_BYTES
            && let Some((position, changed)) = waiting.pop_front()
        {
            if position <= start {
                continue;
            }
            bytes += bytes_of(&changed);
            records.extend(changed);
            last = Some(position);
        }
        self.waiting_bytes.set(waiting.iter().map(|(_, changed)| bytes_of(changed)).sum());
        last.map(|last| (last, records))
    }
}
