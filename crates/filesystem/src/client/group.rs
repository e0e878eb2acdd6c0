//! Groups: clients that make collective transfers together.
//!
//! Invariants: a member is connected to its partners in agreements, of whom there are at most
//! twice log2(members), and to nobody else unless a memory is shared among members; a fault that
//! ends a group for one member ends it for all of them, and for the same reason.

use super::faults::server_left;
use super::servers::Exposed;
use super::state::Client;
use futures_util::future::{Either, join, pending, ready, select};
use futures_util::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};
use litemap::LiteMap;
use policy::Dissemination;
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, Instant, PeerId, RegionId, ServerId};
use wire::{
    Addresses, ClientKey, Fault, GroupMessage, Introduction, Message, PreparedRequest, Request,
};
use world::{Address, NetworkError, World};

/// One client's membership in a group. All members make the same calls in the same order.
pub struct Group<W: World> {
    client: Client<W>,
    number: u64,
    rank: ClientId,
    /// Where each member listens, by rank.
    addresses: Rc<[Address]>,
    /// How long this member waits for another to come.
    timeout: Duration,
    /// The members that this one is connected to.
    peers: RefCell<LiteMap<ClientId, PeerId>>,
    /// Whom this one tells in each round of an agreement.
    recipients: SmallVec<[PeerId; ROUNDS]>,
    /// Each member's name, by rank; known to member 0 only, who names them to the servers.
    keys: Vec<ClientKey>,
    agreements: Cell<u64>,
    /// The number of the next collective, the same at all members.
    collectives: Cell<u64>,
    /// The servers that were told of the members, and whether they have said so; of member 0 only.
    roster_servers: RefCell<BTreeMap<ServerId, bool>>,
}

impl<W: World> Drop for Group<W> {
    /// Ends the connections to the members, so that none waits for this one in vain; the servers
    /// forget them.
    fn drop(&mut self) {
        let servers = self.roster_servers.take();
        if !servers.is_empty() {
            let (group, members, addresses) = (self.number, Vec::new(), Addresses::default());
            let nobody = Introduction { group, members, addresses };
            let nobody = Request::Introduce(Box::new(nobody));
            self.client.notify_servers(servers.into_keys(), &nobody);
        }
        for peer in self.client.mailbox().close(self.number) {
            self.client.world().disconnect(peer);
        }
    }
}

/// A memory of this client that all servers can reach, and where the members' is.
pub struct SharedMemory<W: World> {
    pub(crate) memory: W::Memory,
    /// Its name at the servers.
    pub(crate) region: RegionId,
    /// All members' memories as the servers know them, by rank; known to member 0 only.
    pub(crate) at_servers: Vec<Exposed>,
    /// The names of all members' memories among the members, by rank, once they are shared there.
    among: OnceCell<Vec<RegionId>>,
}

impl<W: World> SharedMemory<W> {
    /// This client's own memory.
    pub fn memory(&self) -> &W::Memory {
        &self.memory
    }

    /// Whether the servers have to be told where the members are that have it: some may have to be
    /// called on. Known to member 0 only.
    pub(crate) fn needs_roster(&self) -> bool {
        self.at_servers.iter().any(|at| at.is_open)
    }

    /// The name of a member's memory to the other members. Panics unless it is shared there.
    pub(crate) fn region_of(&self, member: ClientId) -> RegionId {
        let among = self.among.get().expect("two-phase shares memory among members first");
        among[member.0 as usize]
    }
}

/// Who is to know the values that members bring to an agreement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Member 0 only: each value takes one way there.
    First,
    /// All members. Much data in a large group, unless few bring a value.
    All,
}

/// Rounds of an agreement among up to 4,096 members.
const ROUNDS: usize = 12;

/// Servers that are told of the members at a time: there may be hundreds, and each is sent 20 bytes
/// for every member.
const ROSTER_SENDS_MAX: usize = 64;

/// How long a member waits for another to listen before it tries again.
const CONNECT_PAUSE: Duration = Duration::from_ms(5);

impl<W: World> Group<W> {
    /// Joins the group number `group` as its member `rank`; `addresses` are all members', by rank.
    /// The number must be new to all of them. Fails when the members that this one has to do with
    /// have not come after `timeout`; those that have come wait no longer for others than their
    /// own timeout.
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
            collectives: Cell::new(0),
            roster_servers: RefCell::default(),
        };
        let ways = joined.dissemination();
        joined.meet(ways.partners()).await?;
        joined.recipients = (0..ways.rounds()).map(|round| joined.peer(ways.next(round))).collect();
        let key = Some(joined.client.key().0);
        let keys = joined.exchange(For::First, key, None).await?;
        joined.keys = keys.into_iter().map(ClientKey).collect();
        // Collectives have numbers that no other group's have, so that late news are not mistaken.
        let number = (rank == ClientId(0)).then(|| joined.client.world().random());
        let number = joined.exchange(For::All, number, None).await?;
        joined.collectives.set(number.first().copied().unwrap_or_default());
        Ok(joined)
    }

    fn dissemination(&self) -> Dissemination {
        Dissemination::new(self.rank, self.size())
    }

    /// Waits until this member and all of `members` have come and are connected. Each is tried,
    /// also when the group is broken already: some may have nobody else who tells them.
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

    /// Does something for the group, which is broken when that fails.
    async fn unless_broken(&self, act: impl Future<Output = Result<(), Fault>>) {
        if let Err(fault) = act.await {
            self.break_off(&fault).await;
        }
    }

    /// Connects to a member, and tells it that this one has come. (Of two members, the one of the
    /// higher rank does so, and the other answers.)
    async fn connect_to(&self, member: ClientId, deadline: Instant) -> Result<(), Fault> {
        let peer = self.connect_by(member, deadline).await?;
        self.client.mailbox().add_member(self.number, member, peer);
        self.greet(member, peer).await
    }

    /// Waits until all of `members` have said that they have come, and answers those who called.
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

    /// Tells a member that this one has come, and why it was in vain if that is known.
    async fn greet(&self, member: ClientId, peer: PeerId) -> Result<(), Fault> {
        self.peers.borrow_mut().insert(member, peer);
        let join = GroupMessage::Join { group: self.number, client: self.rank };
        let sent = self.send_to(peer, join).await;
        if let Some(fault) = self.client.mailbox().broken(self.number) {
            // It may have been connected too late to be told as the others were.
            let _ = self.send_to(peer, GroupMessage::Broken { fault }).await;
        }
        sent.map_err(|error| client_left(member, &error))
    }

    async fn connect_by(&self, member: ClientId, deadline: Instant) -> Result<PeerId, Fault> {
        let world = self.client.world();
        loop {
            match world.connect(&self.addresses[member.0 as usize]).await {
                Ok(peer) => return Ok(peer),
                Err(error) if world.now() >= deadline => {
                    return Err(client_left(member, &error));
                }
                Err(_) => world.sleep(CONNECT_PAUSE).await,
            }
            if let Some(broken) = self.why_broken() {
                return Err(broken);
            }
        }
    }

    /// Why the members cannot agree on anything any more.
    fn why_broken(&self) -> Option<Fault> {
        let broken = self.client.mailbox().why_broken(self.number);
        broken.or_else(|| self.client.0.calls.first_left())
    }

    /// Its number among the groups of this client.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// This client's number in the group.
    pub fn rank(&self) -> ClientId {
        self.rank
    }

    /// The client itself.
    pub fn client(&self) -> &Client<W> {
        &self.client
    }

    /// Number of connections to other members.
    pub fn connections(&self) -> usize {
        self.peers.borrow().len()
    }

    /// The names of all members, by rank; none but at member 0.
    pub(crate) fn keys(&self) -> &[ClientKey] {
        &self.keys
    }

    /// The connection to a member. Panics when there is none.
    pub(crate) fn peer(&self, member: ClientId) -> PeerId {
        let peer = self.peers.borrow().get(&member).copied();
        peer.unwrap_or_else(|| panic!("{} is not connected to {member}", self.rank))
    }

    /// The number of the collective that begins now, the same at all members.
    pub(crate) fn next_collective(&self) -> u64 {
        let number = self.collectives.get();
        self.collectives.set(number.wrapping_add(1));
        number
    }

    /// Lets all servers reach `memory`, connected or not. Collective; costly, so done once for a
    /// memory that is used often.
    pub async fn share(&self, memory: W::Memory) -> Result<SharedMemory<W>, Fault> {
        let exposed = self.client.expose_to_servers(&memory).await;
        let own = exposed.as_ref().ok().copied();
        let named = self.name(exposed.map(Exposed::encode), For::First).await;
        if let (Err(_), Some(own)) = (&named, own) {
            self.client.world().withdraw(own.region).await;
        }
        let (own, all) = named?;
        let at_servers = all.into_iter().map(Exposed::decode).collect();
        let region = Exposed::decode(own).region;
        Ok(SharedMemory { memory, region, at_servers, among: OnceCell::new() })
    }

    /// Lets all other members reach the memory too, which connects each to each. Collective; does
    /// nothing the second time. The first two-phase transfer does it if it was not done before.
    pub async fn share_among_members(&self, shared: &SharedMemory<W>) -> Result<(), Fault> {
        if shared.among.get().is_some() {
            return Ok(());
        }
        // Nobody's timeout begins before all are here.
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

    /// Tells the name of a memory that was exposed; returns that and the other members' names.
    async fn name(&self, exposed: Result<u64, Fault>, whom: For) -> Result<(u64, Vec<u64>), Fault> {
        let own = exposed.as_ref().copied().unwrap_or(u64::MAX);
        let names = self.exchange(whom, Some(own), exposed.err()).await?;
        Ok((own, names))
    }

    /// Ends what [`Group::share`] began, and returns the memory. Collective: a member answers the
    /// withdrawals of the others only while it is in a call, so none returns before all are done.
    pub async fn unshare(&self, shared: SharedMemory<W>) -> W::Memory {
        self.client.world().withdraw(shared.region).await;
        if shared.among.get().is_some() {
            self.client.world().withdraw(shared.region_of(self.rank)).await;
        }
        // The group may be broken; then there is nobody to wait for.
        let _ = self.barrier().await;
        shared.memory
    }

    /// Waits until all members are here.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.agree(Ok(())).await
    }

    /// Waits until all members are here; all learn the same fault if any brings one.
    pub async fn agree(&self, own: Result<(), Fault>) -> Result<(), Fault> {
        self.exchange(For::All, None, own.err()).await.map(|_| ())
    }

    /// Every member's value, by rank, at member 0; nothing at the others. Collective.
    pub async fn gather(&self, own: u64) -> Result<Vec<u64>, Fault> {
        self.exchange(For::First, Some(own), None).await
    }

    /// Tells those of some servers where the members are that do not know it, if they may have to
    /// call on them: member 0 does so.
    pub(crate) async fn send_roster(
        &self,
        servers: impl Iterator<Item = ServerId>,
        memory: &SharedMemory<W>,
    ) -> Result<(), Fault> {
        if !memory.needs_roster() {
            return Ok(());
        }
        let new: Vec<ServerId> = servers
            .filter(|server| self.roster_servers.borrow().get(server) != Some(&true))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let members = self.addresses.iter().zip(&memory.at_servers);
        let addresses = members.map(|(address, at)| if at.is_open { &address.0 } else { "" });
        let (members, addresses) = (self.keys.clone(), addresses.collect());
        let roster = Introduction { group: self.number, members, addresses };
        let request = Request::Introduce(Box::new(roster));
        self.roster_servers.borrow_mut().extend(new.iter().map(|server| (*server, false)));
        let request = PreparedRequest::new(&request);
        let calls = new.iter().map(|server| self.client.call_prepared(*server, &request));
        let answers = stream::iter(calls).buffer_unordered(ROSTER_SENDS_MAX);
        answers.try_for_each(|_| ready(Ok(()))).await?;
        self.roster_servers.borrow_mut().extend(new.iter().map(|server| (*server, true)));
        Ok(())
    }

    /// Tells the others that this member is done, so that its going is no failure.
    pub async fn leave(self) {
        // If it is one, they hear of the reason first.
        self.client.mailbox().until_notified(self.number).await;
        let peers: Vec<PeerId> = self.peers.borrow().values().copied().collect();
        for peer in peers {
            // A member that is gone already need not be told.
            let _ = self.send_to(peer, GroupMessage::Leave).await;
        }
    }

    /// One agreement by [`Dissemination`]: everyone's values by rank, at those whom they are for.
    /// Whoever cannot go on tells its partners why, and they theirs.
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

    /// The values for this member by rank, and the fault that all agree on; or why there is no
    /// agreement.
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
            let server_left = || self.client.0.calls.first_left();
            let awaited = (number, round, ways.last(round));
            let heard = mailbox.token(self.number, awaited, server_left).await?;
            known.extend(heard.values);
            fault = [fault, heard.fault].into_iter().flatten().min();
        }
        Ok((known.into_values().collect(), fault))
    }

    /// Tells the partners that there is no agreement any more, unless they know from this member;
    /// returns when all have been told. Otherwise they might learn that it went, not why.
    async fn break_off(&self, fault: &Fault) {
        let mailbox = self.client.mailbox();
        self.client.0.propagate_failure(mailbox.give_up(self.number, fault));
        mailbox.until_notified(self.number).await;
    }

    async fn send_to(&self, peer: PeerId, message: GroupMessage) -> Result<(), NetworkError> {
        let header = wire::encode(&Message::Group(message));
        self.client.world().send(peer, world::Message::new(header)).await
    }

    /// The fault of a connection that failed. A member that has gone may have said why just before,
    /// and that reason counts: it names who went first.
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

/// Goes on with what is to be done, also when there is nothing any more.
async fn all_of(acts: &mut FuturesUnordered<impl Future<Output = ()>>) -> Infallible {
    while acts.next().await.is_some() {}
    pending().await
}

fn client_left(client: ClientId, error: &NetworkError) -> Fault {
    Fault::ClientLeft { client, cause: error.to_string() }
}
