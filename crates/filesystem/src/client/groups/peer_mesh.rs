//! Peer meshes: members of a group that are connected to one another, for the strategies in which
//! members exchange messages, and for the barriers of the papers' clients.
//!
//! Invariants:
//! - A member is connected to its partners in agreements, at most twice log2(members). It is
//!   connected to other members only after a memory was shared among members.
//! - A fault that ends a group for one member ends it for all of them, with the same fault.

use crate::client::faults::server_left;
use crate::client::state::Client;
use crate::scale::{LiteMap, SmallVec};
use futures_util::future::{Either, join, pending, ready, select};
use futures_util::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};
use policy::Dissemination;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, Instant, PeerId, RegionId, ServerId};
use wire::{
    CallId, ClientKey, Fault, GroupMessage, GroupRequest, LeaveRequest, Message, PreparedRequest,
    RegisterRequest,
};
use world::{Address, NetworkError, World};

/// Connections of one client to the other members of a group. All members make the same calls in
/// the same order.
pub struct PeerMesh<W: World> {
    client: Client<W>,
    number: u64,
    rank: ClientId,
    /// Addresses of all members, by rank.
    addresses: Rc<[Address]>,
    /// Time that this member waits for another to join.
    timeout: Duration,
    /// Connections to other members.
    peers: RefCell<LiteMap<ClientId, PeerId>>,
    /// Receiver of this member's token, by round of an agreement.
    recipients: SmallVec<[PeerId; ROUNDS]>,
    /// Keys of all members, by rank. Only member 0 has them, and names the members to servers.
    keys: Vec<ClientKey>,
    agreements: Cell<u64>,
    /// Number of the group at the servers, drawn at random by member 0.
    registered_as: Cell<u64>,
    /// Number of the next collective, equal at all members.
    collectives: Cell<u64>,
    /// Servers at which member 0 has registered the members; true after the server has done so.
    registered_at: RefCell<BTreeMap<ServerId, bool>>,
}

impl<W: World> Drop for PeerMesh<W> {
    /// Closes the connections to the members, so that none waits for this one. The servers forget
    /// the members.
    fn drop(&mut self) {
        let servers = self.registered_at.take();
        if !servers.is_empty() {
            let (group, first, count) = (self.registered_as.get(), ClientId(0), self.size());
            let leave = GroupRequest::Leave(LeaveRequest { group, first, count });
            self.client.notify_servers(servers.into_keys(), leave);
        }
        for peer in self.client.mailbox().close(self.number) {
            self.client.world().disconnect(peer);
        }
    }
}

/// Memory of this client that all servers can reach, and the regions of the other members.
pub struct SharedMemory<W: World> {
    pub(crate) memory: W::Memory,
    /// Region of the memory at the servers.
    pub(crate) region: RegionId,
    /// Regions of all members at the servers, by rank. Only member 0 has them.
    pub(crate) at_servers: Vec<RegionId>,
    /// Regions of all members among the members, by rank, once the memory is shared among them.
    among: OnceCell<Vec<RegionId>>,
}

impl<W: World> SharedMemory<W> {
    /// Returns this client's own memory.
    pub fn memory(&self) -> &W::Memory {
        &self.memory
    }

    /// Returns the region of a member among the members. Panics unless the memory is shared there.
    pub(crate) fn region_of(&self, member: ClientId) -> RegionId {
        let among = self.among.get().expect("two-phase shares memory among members first");
        among[member.0 as usize]
    }
}

/// Receivers of the values of an agreement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Member 0 only. Each value takes one path there.
    First,
    /// All members. That is much data in a large group, unless few members bring a value.
    All,
}

/// Rounds of an agreement among up to 4,096 members.
const ROUNDS: usize = 12;

/// Maximum number of servers at which member 0 registers the members at a time. A registration has
/// some 12 bytes for every member, and there may be hundreds of servers.
const REGISTRATIONS_MAX: usize = 64;

/// Pause before another attempt to connect to a member that does not listen yet.
const CONNECT_PAUSE: Duration = Duration::from_ms(5);

impl<W: World> PeerMesh<W> {
    /// Joins the group `group` as member `rank`. `addresses` has the addresses of all members, by
    /// rank. The number must be new to all of them.
    ///
    /// # Errors
    /// [`Fault::ClientLeft`] when a partner of this member has not joined within `timeout`. The
    /// partners that did join wait no longer than their own timeout.
    pub async fn join(
        client: Client<W>,
        group: u64,
        rank: ClientId,
        addresses: Rc<[Address]>,
        timeout: Duration,
    ) -> Result<Self, Fault> {
        client.mailbox().open(group)?;
        let mut joined = Self {
            client,
            number: group,
            rank,
            addresses,
            timeout,
            peers: RefCell::default(),
            recipients: SmallVec::new(),
            keys: Vec::new(),
            agreements: Cell::new(0),
            registered_as: Cell::new(0),
            collectives: Cell::new(0),
            registered_at: RefCell::default(),
        };
        let ways = joined.dissemination();
        joined.meet(ways.partners()).await?;
        joined.recipients = (0..ways.rounds()).map(|round| joined.peer(ways.next(round))).collect();
        let key = Some(joined.client.key().0);
        let keys = joined.exchange(For::First, key, None).await?;
        joined.keys = keys.into_iter().map(ClientKey).collect();
        let number = (rank == ClientId(0)).then(|| joined.client.world().random());
        let number = joined.exchange(For::All, number, None).await?;
        let number = number.first().copied().unwrap_or_default();
        joined.registered_as.set(number);
        // No two meshes share numbers of parts.
        joined.collectives.set(number);
        Ok(joined)
    }

    fn dissemination(&self) -> Dissemination {
        Dissemination::new(self.rank, self.size())
    }

    /// Waits until this member and all of `members` are connected. Connects to each of them even if
    /// the group is broken: some may get the failure from no other member.
    async fn meet(&self, members: Vec<ClientId>) -> Result<(), Fault> {
        let deadline = self.client.world().now() + self.timeout;
        let lower = members.iter().copied().filter(|member| *member < self.rank);
        let connected: FuturesUnordered<_> =
            lower.map(|member| self.unless_broken(self.connect_to(member, deadline))).collect();
        let all_connected = connected.collect::<()>();
        join(all_connected, self.unless_broken(self.wait_for(members, deadline))).await;
        let Some(fault) = self.why_broken() else { return Ok(()) };
        self.break_off(&fault).await;
        Err(fault)
    }

    /// Runs `act`, and breaks the group if it fails.
    async fn unless_broken(&self, act: impl Future<Output = Result<(), Fault>>) {
        if let Err(fault) = act.await {
            self.break_off(&fault).await;
        }
    }

    /// Connects to a member and greets it. (Of two members the one of the higher rank connects, and
    /// the other answers.)
    async fn connect_to(&self, member: ClientId, deadline: Instant) -> Result<(), Fault> {
        let peer = self.connect_by(member, deadline).await?;
        self.client.mailbox().add_member(self.number, member, peer);
        self.greet(member, peer).await
    }

    /// Waits until all of `members` have greeted this one, and answers those of higher rank.
    async fn wait_for(&self, mut members: Vec<ClientId>, deadline: Instant) -> Result<(), Fault> {
        let mailbox = self.client.mailbox();
        let mut timeout = pin!(self.client.world().sleep_until(deadline));
        let mut answers = FuturesUnordered::new();
        let outcome = loop {
            let Some(&first) = members.first() else { break Ok(()) };
            let come = {
                let come = mailbox.one_joined(self.number, &members, || self.why_broken());
                let answering = pin!(all_of(&mut answers));
                match select(pin!(come), select(timeout.as_mut(), answering)).await {
                    Either::Left((come, _)) => come,
                    Either::Right(_) => {
                        let cause = "it did not join in time".to_owned();
                        Err(Fault::ClientLeft { client: first, cause })
                    }
                }
            };
            let (member, peer) = match come {
                Ok(come) => come,
                Err(fault) => break Err(fault),
            };
            members.retain(|waited_for| *waited_for != member);
            if member > self.rank {
                answers.push(self.unless_broken(self.greet(member, peer)));
            }
        };
        answers.collect::<()>().await;
        outcome
    }

    /// Sends a member the greeting of this one, and the fault of the group if it is broken.
    async fn greet(&self, member: ClientId, peer: PeerId) -> Result<(), Fault> {
        self.peers.borrow_mut().insert(member, peer);
        let join = GroupMessage::Join { group: self.number, client: self.rank };
        let sent = self.send_to(peer, join).await;
        if let Some(fault) = self.client.mailbox().broken(self.number) {
            // The member may have connected too late for the failure notice.
            let _ = self.send_to(peer, GroupMessage::Broken { fault }).await;
        }
        sent.map_err(|error| client_left(member, &error))
    }

    async fn connect_by(&self, member: ClientId, deadline: Instant) -> Result<PeerId, Fault> {
        let world = self.client.world();
        loop {
            let connected = pin!(world.connect(&self.addresses[member.0 as usize]));
            match select(connected, pin!(world.sleep_until(deadline))).await {
                Either::Left((Ok(peer), _)) => return Ok(peer),
                Either::Left((Err(error), _)) if world.now() >= deadline => {
                    return Err(client_left(member, &error));
                }
                Either::Left((Err(_), _)) => world.sleep(CONNECT_PAUSE).await,
                // A process that has stopped answers no greeting.
                Either::Right(_) => {
                    let cause = "it did not join in time".to_owned();
                    return Err(Fault::ClientLeft { client: member, cause });
                }
            }
            if let Some(broken) = self.why_broken() {
                return Err(broken);
            }
        }
    }

    /// Returns the reason why the members cannot agree any more.
    fn why_broken(&self) -> Option<Fault> {
        let broken = self.client.mailbox().why_broken(self.number);
        broken.or_else(|| self.client.0.servers().first_left())
    }

    /// Waits until a member has propagated a failure, or a server has left.
    pub(crate) async fn until_broken(&self) -> Fault {
        let mailbox = self.client.mailbox();
        let left = || self.client.0.servers().first_left();
        mailbox.until(|| mailbox.broken(self.number).or_else(left)).await
    }

    /// Name of a collective among those of all groups.
    pub(crate) fn call_id(&self, collective: u64) -> CallId {
        CallId { group: self.registered_as.get(), number: collective }
    }

    /// Time that this member waits for another to join.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// Rank of this client in the group.
    pub fn rank(&self) -> ClientId {
        self.rank
    }

    /// Returns the client itself.
    pub fn client(&self) -> &Client<W> {
        &self.client
    }

    /// Number of connections to other members.
    pub fn connections(&self) -> usize {
        self.peers.borrow().len()
    }

    /// Returns the connection to a member. Panics when there is none.
    pub(crate) fn peer(&self, member: ClientId) -> PeerId {
        let peer = self.peers.borrow().get(&member).copied();
        peer.unwrap_or_else(|| panic!("{} is not connected to {member}", self.rank))
    }

    /// Takes the number of the collective that begins now, equal at all members.
    pub(crate) fn next_collective(&self) -> u64 {
        let number = self.collectives.get();
        self.collectives.set(number.wrapping_add(1));
        number
    }

    /// Exposes `memory` to all servers, connected or not. Collective. It is costly, so share a
    /// memory once and use it often.
    pub async fn share(&self, memory: W::Memory) -> Result<SharedMemory<W>, Fault> {
        let exposed = self.client.expose_to_servers(&memory).await;
        let own = exposed.as_ref().ok().copied();
        let named = self.name(exposed.map(|region| region.0), For::First).await;
        if let (Err(_), Some(own)) = (&named, own) {
            self.client.world().withdraw(own).await;
        }
        let (own, all) = named?;
        let at_servers = all.into_iter().map(RegionId).collect();
        let region = RegionId(own);
        Ok(SharedMemory { memory, region, at_servers, among: OnceCell::new() })
    }

    /// Takes part in a [`PeerMesh::share`] of the other members with a fault instead of memory. All
    /// members return it, or another of several.
    pub(crate) async fn share_fault(&self, fault: Fault) -> Fault {
        let named = self.name(Err(fault.clone()), For::First).await;
        named.err().unwrap_or(fault)
    }

    /// Exposes the memory to all other members too, which connects all pairs of members.
    /// Collective. Returns at once the second time. The first two-phase transfer calls it if
    /// needed.
    pub async fn share_among_members(&self, shared: &SharedMemory<W>) -> Result<(), Fault> {
        if shared.among.get().is_some() {
            return Ok(());
        }
        // The timeout of a member begins when all are here.
        self.barrier().await?;
        let unmet =
            |member: &ClientId| *member != self.rank && !self.peers.borrow().contains_key(member);
        self.meet((0..self.size()).map(ClientId).filter(unmet).collect()).await?;
        let members: Vec<PeerId> = self.peers.borrow().values().copied().collect();
        let exposed = match self.client.world().expose(&shared.memory, &members).await {
            Ok(region) => Ok(region),
            Err(error) => Err(self.fault_of(&error).await),
        };
        let own = exposed.as_ref().ok().copied();
        let named = self.name(exposed.map(|region| region.0), For::All).await;
        if let (Err(_), Some(region)) = (&named, own) {
            self.client.world().withdraw(region).await;
        }
        let (_, regions) = named?;
        shared.among.get_or_init(|| regions.into_iter().map(RegionId).collect());
        Ok(())
    }

    /// Exchanges the regions of an exposed memory. Returns this member's region and all others.
    async fn name(&self, exposed: Result<u64, Fault>, whom: For) -> Result<(u64, Vec<u64>), Fault> {
        let own = exposed.as_ref().copied().unwrap_or(u64::MAX);
        let names = self.exchange(whom, Some(own), exposed.err()).await?;
        Ok((own, names))
    }

    /// Ends [`PeerMesh::share`] and returns the memory. Collective: a member answers the
    /// withdrawals of the others only while it is in a call, so none returns before all are done.
    pub async fn unshare(&self, shared: SharedMemory<W>) -> W::Memory {
        self.client.world().withdraw(shared.region).await;
        if shared.among.get().is_some() {
            self.client.world().withdraw(shared.region_of(self.rank)).await;
        }
        // In a broken group there is no member to wait for.
        let _ = self.barrier().await;
        shared.memory
    }

    /// Waits until all members are here.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.agree(Ok(())).await
    }

    /// Waits until all members are here. All of them return the same fault if any brings one.
    pub async fn agree(&self, own: Result<(), Fault>) -> Result<(), Fault> {
        self.exchange(For::All, None, own.err()).await.map(|_| ())
    }

    /// Returns every member's value, by rank, at member 0, and nothing at the others. Collective.
    pub async fn gather(&self, own: u64) -> Result<Vec<u64>, Fault> {
        self.exchange(For::First, Some(own), None).await
    }

    /// Registers all members at those of some servers where they are not. Member 0 calls it: it
    /// joins directed calls for all, as the one client that makes the request in Figure 2c (TOCS
    /// 1997).
    pub(crate) async fn register_at(
        &self,
        servers: impl Iterator<Item = ServerId>,
    ) -> Result<(), Fault> {
        let new: Vec<ServerId> = servers
            .filter(|server| self.registered_at.borrow().get(server) != Some(&true))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let (group, size) = (self.registered_as.get(), self.size());
        let members = (0..).map(ClientId).zip(self.keys.iter().copied()).collect();
        let request = GroupRequest::Register(Box::new(RegisterRequest { group, size, members }));
        self.registered_at.borrow_mut().extend(new.iter().map(|server| (*server, false)));
        let request = PreparedRequest::new(request);
        let calls = new.iter().map(|server| self.client.call_prepared(*server, &request));
        let answers = stream::iter(calls).buffer_unordered(REGISTRATIONS_MAX);
        answers.try_for_each(|_| ready(Ok(()))).await?;
        self.registered_at.borrow_mut().extend(new.iter().map(|server| (*server, true)));
        Ok(())
    }

    /// Sends the other members that this one is done, so that its departure is no failure.
    pub async fn leave(self) {
        // After a failure, the members get its reason first.
        self.client.mailbox().until_notified(self.number).await;
        let peers: Vec<PeerId> = self.peers.borrow().values().copied().collect();
        for peer in peers {
            // A member that has left needs no message.
            let _ = self.send_to(peer, GroupMessage::Leave).await;
        }
    }

    /// Runs one agreement by [`Dissemination`]. Returns the values by rank at their receivers. A
    /// member that cannot go on propagates the failure to its partners.
    async fn exchange(
        &self,
        whom: For,
        own: Option<u64>,
        fault: Option<Fault>,
    ) -> Result<Vec<u64>, Fault> {
        match self.disseminate(whom, own, fault).await {
            Ok((_, Some(fault))) => Err(fault),
            Ok((values, None)) => Ok(values),
            Err(broken) => {
                self.break_off(&broken).await;
                Err(broken)
            }
        }
    }

    /// Returns the values for this member by rank and the common fault, or fails with the reason
    /// why there is no agreement.
    async fn disseminate(
        &self,
        whom: For,
        own: Option<u64>,
        mut fault: Option<Fault>,
    ) -> Result<(Vec<u64>, Option<Fault>), Fault> {
        let mailbox = self.client.mailbox();
        if let Some(broken) = self.why_broken() {
            return Err(broken);
        }
        let number = self.agreements.get();
        self.agreements.set(number + 1);
        let ways = self.dissemination();
        let mut known = BTreeMap::from_iter(own.map(|value| (self.rank, value)));
        for round in 0..ways.rounds() {
            let values = match whom {
                For::All => known.clone(),
                For::First if ways.round_to_first() == Some(round) => std::mem::take(&mut known),
                For::First => BTreeMap::new(),
            };
            let values = values.into_iter().collect();
            let token = GroupMessage::Agree { number, round, values, fault: fault.clone() };
            if let Err(error) = self.send_to(self.recipients[round as usize], token).await {
                return Err(self.fault_of(&error).await);
            }
            let server_left = || self.client.0.servers().first_left();
            let awaited = (number, round, ways.last(round));
            let heard = mailbox.token(self.number, awaited, server_left).await?;
            known.extend(heard.values);
            fault = [fault, heard.fault].into_iter().flatten().min();
        }
        Ok((known.into_values().collect(), fault))
    }

    /// Propagates a failure to all partners, unless this member has done so before. Returns when
    /// all notices are sent. Otherwise a partner might see this member leave without the reason.
    async fn break_off(&self, fault: &Fault) {
        let mailbox = self.client.mailbox();
        self.client.0.propagate_failure(mailbox.give_up(self.number, fault));
        mailbox.until_notified(self.number).await;
    }

    async fn send_to(&self, peer: PeerId, message: GroupMessage) -> Result<(), NetworkError> {
        let header = wire::encode(&Message::Group(message));
        self.client.world().send(peer, world::Message::new(header)).await
    }

    /// Returns the fault of a broken connection. A member that has left may have sent a reason just
    /// before. That reason counts, because it names the first one that left.
    async fn fault_of(&self, error: &NetworkError) -> Fault {
        let NetworkError::Departed { peer, .. } = error else {
            return Fault::TransferFailed { cause: error.to_string() };
        };
        match self.client.server_at(*peer) {
            Some(server) => server_left(server, error),
            None => self.client.mailbox().until_broken(self.number).await,
        }
    }
}

/// Drives all futures, then stays pending.
async fn all_of(acts: &mut FuturesUnordered<impl Future<Output = ()>>) -> Infallible {
    while acts.next().await.is_some() {}
    pending().await
}

fn client_left(client: ClientId, error: &NetworkError) -> Fault {
    Fault::ClientLeft { client, cause: error.to_string() }
}
