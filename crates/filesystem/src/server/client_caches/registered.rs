//! Clients with caches, their commands, and the answers that the server waits for.

use super::cached_files::CachedFiles;
use crate::line_locks::LineLocks;
use crate::signal::Signal;
use policy::{Directory, LineKey};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::rc::Rc;
use units::{Duration, PeerId};
use wire::{CacheAnswer, CacheCommand, CacheRegistration, Fault, LineName, LineTaker, Message};
use world::{Payload, Scope, World};

/// Maximum number of bytes of messages that wait to be sent to one client. A client with more gets
/// no further lines for its global part: it is disconnected.
const QUEUED_BYTES_MAX: u64 = 256 << 20;

/// Number of bytes that each message counts besides its data.
const MESSAGE_BYTES: u64 = 256;

/// Maximum time that a client may take to answer a command, at least: other clients wait for it.
/// After at most twice that time it is disconnected.
const STALL_TIMEOUT: Duration = Duration::from_ms(20_000);

/// Caches of the clients of one server.
pub(crate) struct ClientCaches<W: World> {
    /// State that all clients agree on; `None` while no client has a cache.
    pub(super) shared: RefCell<Option<Shared>>,
    clients: RefCell<BTreeMap<PeerId, Rc<Registered<W>>>>,
    pub(super) locks: LineLocks,
    pub(crate) files: CachedFiles,
    awaited: RefCell<BTreeMap<u64, Awaited<W::Payload>>>,
    next: Cell<u64>,
    /// Notified when the server has begun to wait for an answer.
    asked: Signal,
    answered: Signal,
    /// Clients for which too much waits.
    slow: RefCell<BTreeSet<PeerId>>,
}

/// State that all clients with caches share.
pub(super) struct Shared {
    pub(super) line_bytes: u64,
    pub(super) directory: Directory,
}

/// Client with a cache.
struct Registered<W: World> {
    address: String,
    ticket: u64,
    /// Messages to it, in the order in which they were decided.
    commands: RefCell<VecDeque<(Message, Option<W::Payload>)>>,
    /// Number of bytes of these messages, and of the one that is being sent.
    queued_bytes: Cell<u64>,
    added: Signal,
    /// True while the client is asked to confirm its commands.
    is_confirming: Cell<bool>,
    /// Task that sends the commands, and the one that watches for the answers.
    sending: Scope<W, Infallible>,
}

/// Answer that the server waits for.
struct Awaited<P> {
    client: PeerId,
    answer: Option<Answered<P>>,
}

/// Answer of a client to a command. A client that has left had nothing.
pub(super) struct Answered<P> {
    pub(super) was_there: bool,
    pub(super) line: Option<P>,
}

impl<W: World> Default for ClientCaches<W> {
    fn default() -> Self {
        Self {
            shared: RefCell::default(),
            clients: RefCell::default(),
            locks: LineLocks::default(),
            files: CachedFiles::default(),
            awaited: RefCell::default(),
            next: Cell::default(),
            asked: Signal::default(),
            answered: Signal::default(),
            slow: RefCell::default(),
        }
    }
}

impl<W: World> ClientCaches<W> {
    /// Adds a client. All must agree on the size of a line and on the cooperation.
    pub(super) fn register(
        &self,
        world: &W,
        client: PeerId,
        registration: CacheRegistration,
    ) -> Result<(), Fault> {
        let CacheRegistration { line_bytes, cooperation, chances, global_lines, address, ticket } =
            registration;
        let refused = |cause: &str| Err(Fault::BadRequest { cause: cause.to_owned() });
        if line_bytes == 0 || line_bytes > wire::LINE_BYTES_MAX {
            return refused("a block of a client's cache has 1 to 1048576 bytes");
        }
        let mut shared = self.shared.borrow_mut();
        let shared = shared.get_or_insert_with(|| Shared {
            line_bytes,
            directory: Directory::new(cooperation, chances),
        });
        let same = shared.line_bytes == line_bytes
            && shared.directory.cooperation() == cooperation
            && shared.directory.chances() == chances;
        if !same {
            return refused("other clients use caches with other blocks or another cooperation");
        }
        if shared.directory.has(client) {
            return refused("this client has a cache already");
        }
        shared.directory.register(client, global_lines.min(policy::LINES_MAX));
        let registered = Rc::new(Registered {
            address,
            ticket,
            commands: RefCell::default(),
            queued_bytes: Cell::default(),
            added: Signal::default(),
            is_confirming: Cell::default(),
            sending: Scope::new(world.clone()),
        });
        let (weak, world) = (Rc::downgrade(&registered), world.clone());
        registered.sending.spawn(async move {
            while let Some(registered) = weak.upgrade() {
                let next = || registered.commands.borrow_mut().pop_front();
                let (message, body) = registered.added.until(next).await;
                let (bytes, header) = (queued_bytes(&body), wire::encode(&message));
                let message = world::Message { body, ..world::Message::new(header) };
                // A client that has left is removed when the network reports it.
                let _ = world.send(client, message).await;
                registered.queued_bytes.update(|sum| sum - bytes);
            }
            Ok(())
        });
        self.clients.borrow_mut().insert(client, registered);
        Ok(())
    }

    /// Waits until a client has left an answer open for too long.
    pub(super) async fn until_stalled(&self, world: &W, client: PeerId) {
        loop {
            let oldest = self.asked.until(|| self.oldest_asked(client)).await;
            world.sleep(STALL_TIMEOUT).await;
            if self.oldest_asked(client) == Some(oldest) {
                return;
            }
        }
    }

    /// Number of the oldest command that a client has not answered.
    fn oldest_asked(&self, client: PeerId) -> Option<u64> {
        let awaited = self.awaited.borrow();
        let mut open = awaited.iter().filter(|(_, it)| it.client == client && it.answer.is_none());
        open.next().map(|(number, _)| *number)
    }

    /// Runs a task as long as a client uses its cache.
    pub(super) fn spawn_for(
        &self,
        client: PeerId,
        task: impl Future<Output = Result<(), Infallible>> + 'static,
    ) {
        if let Some(registered) = self.clients.borrow().get(&client) {
            registered.sending.spawn(task);
        }
    }

    /// Removes a client that has left.
    pub(crate) fn leave(&self, client: PeerId) {
        let Some(left) = self.clients.borrow_mut().remove(&client) else { return };
        // The task that sends holds the client while it waits.
        left.sending.cancel();
        self.slow.borrow_mut().remove(&client);
        let is_empty = self.clients.borrow().is_empty();
        let mut shared = self.shared.borrow_mut();
        match (&mut *shared, is_empty) {
            (Some(_), true) => {
                *shared = None;
                self.files.end_all();
            }
            (Some(shared), false) => shared.directory.leave(client),
            (None, _) => {}
        }
        drop(shared);
        for awaited in self.awaited.borrow_mut().values_mut() {
            if awaited.client == client && awaited.answer.is_none() {
                awaited.answer = Some(Answered { was_there: false, line: None });
            }
        }
        self.answered.notify();
    }

    /// Accepts the answer of a client. Returns false if nobody asked for it.
    pub(crate) fn accept(
        &self,
        client: PeerId,
        answer: CacheAnswer,
        line: Option<W::Payload>,
    ) -> bool {
        let mut all = self.awaited.borrow_mut();
        let was_there = answer.was_there;
        // The task that asked may have ended with its client.
        if let Some(awaited) = all.get_mut(&answer.number) {
            if awaited.client != client || awaited.answer.is_some() {
                return false;
            }
            awaited.answer = Some(Answered { was_there, line });
        }
        drop(all);
        self.answered.notify();
        answer.number < self.next.get()
    }

    /// Sends a client a command with a number, and waits for the answer.
    pub(super) async fn ask(
        &self,
        client: PeerId,
        command: impl FnOnce(u64) -> CacheCommand,
    ) -> Answered<W::Payload> {
        let asked = Asked { caches: self, number: self.next.get() };
        let number = asked.number;
        self.next.set(number + 1);
        if !self.command(client, command(number), None) {
            return Answered { was_there: false, line: None };
        }
        let stored = self.with(|directory| directory.last_stored()).unwrap_or(0);
        self.awaited.borrow_mut().insert(number, Awaited { client, answer: None });
        self.asked.notify();
        let answer = || self.awaited.borrow_mut().get_mut(&number)?.answer.take();
        let answered = self.answered.until(answer).await;
        // A client carries its commands out in their order.
        self.with(|directory| directory.carried_out(client, stored));
        answered
    }

    /// Tells if a client has a cache.
    pub(super) fn has(&self, client: PeerId) -> bool {
        self.clients.borrow().contains_key(&client)
    }

    /// Queues a command for a client. Returns false if it has left.
    pub(super) fn command(
        &self,
        client: PeerId,
        command: CacheCommand,
        body: Option<W::Payload>,
    ) -> bool {
        self.queue(client, Message::CacheCommand(command), body)
    }

    /// Queues a message for a client. Returns false if it has left.
    pub(super) fn queue(&self, client: PeerId, message: Message, body: Option<W::Payload>) -> bool {
        let clients = self.clients.borrow();
        let Some(registered) = clients.get(&client) else { return false };
        registered.queued_bytes.update(|sum| sum + queued_bytes(&body));
        if registered.queued_bytes.get() > QUEUED_BYTES_MAX {
            self.slow.borrow_mut().insert(client);
        }
        registered.commands.borrow_mut().push_back((message, body));
        registered.added.notify();
        true
    }

    /// Returns a client for which so much waits that it must be disconnected.
    pub(super) fn next_slow(&self) -> Option<PeerId> {
        let clients = self.clients.borrow();
        let is_slow = |client: &PeerId| {
            let registered = clients.get(client);
            registered.is_some_and(|it| it.queued_bytes.get() > QUEUED_BYTES_MAX)
        };
        while let Some(client) = self.slow.borrow_mut().pop_first() {
            if is_slow(&client) {
                return Some(client);
            }
        }
        None
    }

    /// Begins to ask a client to confirm its commands, unless it is being asked.
    pub(super) fn begin_confirmation(&self, client: PeerId) -> bool {
        let clients = self.clients.borrow();
        clients.get(&client).is_some_and(|it| !it.is_confirming.replace(true))
    }

    /// Has a client confirm its commands.
    pub(super) async fn confirm(&self, client: PeerId) {
        self.ask(client, |number| CacheCommand::Confirm { number }).await;
        if let Some(registered) = self.clients.borrow().get(&client) {
            registered.is_confirming.set(false);
        }
    }

    /// Returns the address and the secret of a client that takes a line, and a new number.
    pub(super) fn taker(&self, client: PeerId) -> Option<LineTaker> {
        let clients = self.clients.borrow();
        let Registered { address, ticket, .. } = &**clients.get(&client)?;
        let number = self.next.get();
        self.next.set(number + 1);
        Some(LineTaker { address: address.clone(), ticket: *ticket, number })
    }

    /// Uses the directory, if any client has a cache.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Directory) -> R) -> Option<R> {
        self.shared.borrow_mut().as_mut().map(|shared| act(&mut shared.directory))
    }

    /// Tells if any client has a cache.
    pub(crate) fn are_in_use(&self) -> bool {
        self.shared.borrow().is_some()
    }

    /// Number of bytes of a line, if `client` has a cache.
    pub(super) fn line_bytes(&self, client: PeerId) -> Result<u64, Fault> {
        let shared = self.shared.borrow();
        let registered = shared.as_ref().filter(|shared| shared.directory.has(client));
        registered.map(|shared| shared.line_bytes).ok_or_else(|| Fault::BadRequest {
            cause: "the client has not said that it has a cache".to_owned(),
        })
    }
}

/// Question that is forgotten when nobody waits for its answer any more.
struct Asked<'a, W: World> {
    caches: &'a ClientCaches<W>,
    number: u64,
}

impl<W: World> Drop for Asked<'_, W> {
    fn drop(&mut self) {
        self.caches.awaited.borrow_mut().remove(&self.number);
    }
}

/// Number of bytes that a message with this data counts.
fn queued_bytes<P: Payload>(body: &Option<P>) -> u64 {
    MESSAGE_BYTES + body.as_ref().map_or(0, Payload::length)
}

/// Returns the key of a line.
pub(super) fn key_of(line: LineName) -> LineKey {
    (line.file, line.line)
}

/// Returns the name of a line.
pub(super) fn name_of((file, line): LineKey) -> LineName {
    LineName { file, line }
}
