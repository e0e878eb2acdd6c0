//! Groups: clients that make collective transfers together.

use crate::client::{Client, server_left};
use std::cell::Cell;
use std::collections::BTreeMap;
use units::{ClientId, Duration, Instant, PeerId, RegionId, ServerId};
use wire::{ClientKey, Fault, GroupMessage, Message};
use world::{Address, NetworkError, World};

/// One client's membership in a group. All members make the same calls in the same order.
pub struct Group<W: World> {
    client: Client<W>,
    number: u64,
    rank: ClientId,
    /// Each member's connection and name, by rank; this client's own entry has no connection.
    members: Vec<(Option<PeerId>, ClientKey)>,
    agreements: Cell<u64>,
    /// The number of the next collective, the same at all members.
    collectives: Cell<u64>,
}

impl<W: World> Drop for Group<W> {
    /// Ends the connections to the members, so that none waits for this one in vain.
    fn drop(&mut self) {
        for peer in self.client.mailbox().close(self.number) {
            self.client.world().disconnect(peer);
        }
    }
}

/// A memory of this client that all servers and members can reach, and where theirs is.
pub struct SharedMemory<W: World> {
    pub(crate) memory: W::Memory,
    /// Each member's region, by rank.
    pub(crate) regions: Vec<RegionId>,
}

impl<W: World> SharedMemory<W> {
    /// This client's own memory.
    pub fn memory(&self) -> &W::Memory {
        &self.memory
    }
}

/// How long a member waits for another to listen before it tries again.
const CONNECT_PAUSE: Duration = Duration::from_ms(5);

impl<W: World> Group<W> {
    /// Joins the group number `group` as its member `rank`; `addresses` are all members', by rank.
    /// The number must be new to all of them. Fails when the others have not come after
    /// `patience`.
    pub async fn join(
        client: Client<W>,
        group: u64,
        rank: ClientId,
        addresses: &[Address],
        patience: Duration,
    ) -> Result<Self, Fault> {
        client.mailbox().open(group)?;
        let deadline = client.world().now() + patience;
        let own = (None, client.key());
        let joined = Self {
            members: vec![own; addresses.len()],
            client,
            number: group,
            rank,
            agreements: Cell::new(0),
            collectives: Cell::new(0),
        };
        joined.with_members(addresses, deadline).await
    }

    async fn with_members(
        mut self,
        addresses: &[Address],
        deadline: Instant,
    ) -> Result<Self, Fault> {
        let met = self.meet(addresses, deadline).await;
        if let Err(fault) = &met {
            self.tell_broken(fault).await;
        }
        met?;
        let key = self.client.key().0;
        let keys = self.exchange(Some(key), None, Some(deadline)).await?;
        for (member, key) in self.members.iter_mut().zip(keys) {
            member.1 = ClientKey(key);
        }
        // Collectives have numbers that no other group's have, so that late news are not mistaken.
        let random = self.client.world().random();
        let numbers = self.exchange(Some(random), None, Some(deadline)).await?;
        self.collectives.set(numbers.first().copied().unwrap_or(random));
        Ok(self)
    }

    /// Connects to the members of lower rank and waits for those of higher rank.
    async fn meet(&mut self, addresses: &[Address], deadline: Instant) -> Result<(), Fault> {
        let client = self.client.clone();
        let group = self.number;
        let join = GroupMessage::Join { group, client: self.rank, key: client.key() };
        for (rank, address) in addresses.iter().enumerate().take(self.rank.0 as usize) {
            let member = ClientId(rank as u32);
            let peer = self.connect_by(member, address, deadline).await?;
            client.mailbox().add_member(group, member, peer);
            self.members[rank].0 = Some(peer);
            let told = self.tell(member, join.clone()).await;
            told.map_err(|error| client_left(member, &error))?;
        }
        for rank in self.rank.0 + 1..self.size() {
            let member = ClientId(rank);
            let why_broken = || self.why_broken();
            let joined = client.mailbox().joined(group, member, why_broken);
            let (peer, key) = by_deadline(client.world(), joined, member, deadline).await??;
            self.members[rank as usize] = (Some(peer), key);
        }
        Ok(())
    }

    async fn connect_by(
        &self,
        member: ClientId,
        address: &Address,
        deadline: Instant,
    ) -> Result<PeerId, Fault> {
        let world = self.client.world();
        loop {
            match world.connect(address).await {
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

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// This client's number in the group.
    pub fn rank(&self) -> ClientId {
        self.rank
    }

    /// The client itself.
    pub fn client(&self) -> &Client<W> {
        &self.client
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = ClientKey> {
        self.members.iter().map(|(_, key)| *key)
    }

    /// The connection to another member. Panics for this client itself.
    pub(crate) fn peer(&self, member: ClientId) -> PeerId {
        let peer = self.members[member.0 as usize].0;
        peer.expect("a client has no connection to itself")
    }

    /// The number of the collective that begins now, the same at all members.
    pub(crate) fn next_collective(&self) -> u64 {
        let number = self.collectives.get();
        self.collectives.set(number.wrapping_add(1));
        number
    }

    /// Lets all servers and members reach `memory`. Collective; costly, so done once for a memory
    /// that is used often.
    pub async fn share(&self, memory: W::Memory) -> Result<SharedMemory<W>, Fault> {
        let members = self.members.iter().filter_map(|(peer, _)| *peer);
        let peers: Vec<PeerId> =
            self.client.server_peers().iter().copied().chain(members).collect();
        let exposed = self.client.world().expose(&memory, &peers).await;
        let region = match exposed {
            Ok(region) => Ok(region),
            Err(error) => Err(self.fault_of(&error).await),
        };
        let own = region.as_ref().map_or(u64::MAX, |region| region.0);
        let fault = region.err();
        match self.exchange(Some(own), fault, None).await {
            Ok(regions) => {
                let regions = regions.into_iter().map(RegionId).collect();
                Ok(SharedMemory { memory, regions })
            }
            Err(fault) => {
                self.client.world().withdraw(RegionId(own)).await;
                Err(fault)
            }
        }
    }

    /// Ends what [`Group::share`] began, and returns the memory. Collective: a member answers the
    /// withdrawals of the others only while it is in a call, so none returns before all are done.
    pub async fn unshare(&self, shared: SharedMemory<W>) -> W::Memory {
        self.client.world().withdraw(shared.regions[self.rank.0 as usize]).await;
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
        self.exchange(None, own.err(), None).await.map(|_| ())
    }

    /// Every member's value, by rank.
    pub async fn gather(&self, own: u64) -> Result<Vec<u64>, Fault> {
        self.exchange(Some(own), None, None).await
    }

    /// Tells the others that this member is done, so that its going is no failure.
    pub async fn leave(self) {
        for rank in 0..self.size() {
            if rank != self.rank.0 {
                // A member that is gone already need not be told.
                let _ = self.tell(ClientId(rank), GroupMessage::Leave).await;
            }
        }
    }

    /// One agreement by dissemination: in round r each member tells the member 2^r further on all
    /// it knows, so that all know everything after log2(members) rounds (Hensgen, Finkel and
    /// Manber, IJPP 17(1), 1988). Whoever cannot go on tells all others why.
    async fn exchange(
        &self,
        own: Option<u64>,
        fault: Option<Fault>,
        deadline: Option<Instant>,
    ) -> Result<Vec<u64>, Fault> {
        match self.disseminate(own, fault, deadline).await {
            Ok((_, Some(fault))) => Err(fault),
            Ok((values, None)) => Ok(values),
            Err(broken) => {
                self.tell_broken(&broken).await;
                Err(broken)
            }
        }
    }

    /// Everyone's values by rank and the fault that all agree on; or why there is no agreement.
    async fn disseminate(
        &self,
        own: Option<u64>,
        mut fault: Option<Fault>,
        deadline: Option<Instant>,
    ) -> Result<(Vec<u64>, Option<Fault>), Fault> {
        let mailbox = self.client.mailbox();
        if let Some(broken) = self.why_broken() {
            return Err(broken);
        }
        let number = self.agreements.get();
        self.agreements.set(number + 1);
        let mut known = BTreeMap::from_iter(own.map(|value| (self.rank, value)));
        let size = u64::from(self.size());
        let mut round = 0;
        while 1 << round < size {
            let distance = 1 << round;
            let next = ClientId(((u64::from(self.rank.0) + distance) % size) as u32);
            let last = ClientId(((u64::from(self.rank.0) + size - distance) % size) as u32);
            let values = known.iter().map(|(&client, &value)| (client, value)).collect();
            let token = GroupMessage::Agree { number, round, values, fault: fault.clone() };
            if let Err(error) = self.tell(next, token).await {
                return Err(self.fault_of(&error).await);
            }
            let server_left = || self.client.0.calls.first_left();
            let token = mailbox.token(self.number, (number, round, last), server_left);
            let heard = match deadline {
                Some(deadline) => by_deadline(self.client.world(), token, last, deadline).await??,
                None => token.await?,
            };
            known.extend(heard.values);
            fault = [fault, heard.fault].into_iter().flatten().min();
            round += 1;
        }
        Ok((known.into_values().collect(), fault))
    }

    /// Tells every member that this one takes part in no further agreement. Without it, those who
    /// wait for this one would learn that it went, not why.
    async fn tell_broken(&self, fault: &Fault) {
        let members = self.members.iter().enumerate().filter(|(_, member)| member.0.is_some());
        let told = members.map(|(rank, _)| {
            self.tell(ClientId(rank as u32), GroupMessage::Broken { fault: fault.clone() })
        });
        // One that is gone already need not be told.
        futures_util::future::join_all(told).await;
    }

    async fn tell(&self, member: ClientId, message: GroupMessage) -> Result<(), NetworkError> {
        let header = wire::encode(&Message::Group(message));
        self.client.world().send(self.peer(member), world::Message::new(header)).await
    }

    /// The fault of a connection that failed. A member that has gone may have said why just before,
    /// and that reason counts: it names who went first.
    async fn fault_of(&self, error: &NetworkError) -> Fault {
        let NetworkError::Departed { peer, .. } = error else {
            return Fault::TransferFailed { cause: error.to_string() };
        };
        let servers = self.client.server_peers();
        match servers.iter().position(|server| server == peer) {
            Some(number) => server_left(ServerId(number as u32), error),
            None => self.client.mailbox().until_broken(self.number).await,
        }
    }
}

fn client_left(client: ClientId, error: &NetworkError) -> Fault {
    Fault::ClientLeft { client, cause: error.to_string() }
}

impl<W: World> Client<W> {
    /// Lets the servers reach `memory` (and nobody else), for transfers of this client alone.
    pub(crate) async fn expose_to_servers(&self, memory: &W::Memory) -> Result<RegionId, Fault> {
        let exposed = self.world().expose(memory, self.server_peers()).await;
        exposed.map_err(|error| {
            let of_peer = |peer| self.server_peers().iter().position(|server| *server == peer);
            let server = match &error {
                NetworkError::Departed { peer, .. } => of_peer(*peer),
                NetworkError::Unreachable { .. } | NetworkError::TooLarge { .. } => None,
            };
            match server {
                Some(number) => server_left(ServerId(number as u32), &error),
                None => Fault::TransferFailed { cause: error.to_string() },
            }
        })
    }
}

async fn by_deadline<W: World, T>(
    world: &W,
    waited_for: impl Future<Output = T>,
    member: ClientId,
    deadline: Instant,
) -> Result<T, Fault> {
    let (waited_for, patience) =
        (std::pin::pin!(waited_for), std::pin::pin!(world.sleep_until(deadline)));
    match futures_util::future::select(waited_for, patience).await {
        futures_util::future::Either::Left((value, _)) => Ok(value),
        futures_util::future::Either::Right(_) => {
            let cause = "it did not join in time".to_owned();
            Err(Fault::ClientLeft { client: member, cause })
        }
    }
}
