//! Groups whose members meet at the servers, each with its own part of an access.
//!
//! A member sends each server of the file its part and the region of its memory; that is its
//! arrival. The servers begin when all members have arrived, and answer each member. Members
//! exchange no messages with one another.
//!
//! Invariants:
//! - A member exposes its memory before its arrival, and withdraws it before the call ends.
//! - A call that fails at one server is cancelled at the others, and ends when all have answered.

use super::faults::unexpected;
use super::servers::WithdrawnOnDrop;
use super::state::Client;
use futures_util::stream::{FuturesUnordered, StreamExt};
use policy::OwnPart;
use std::cell::Cell;
use std::rc::Rc;
use units::{ClientId, Duration, ServerId};
use wire::{
    CollectiveCall, EnrolRequest, Fault, FileRecord, JoinRequest, MeetRequest, Reply, Request,
    collective_number,
};
use world::{Memory, World};

/// Server at which members meet that do not know one another. It keeps the counters and locks of
/// groups.
pub(super) const MEETING_PLACE: ServerId = ServerId(0);

/// Membership of one client in a group whose members meet at the servers.
pub struct Membership<W: World> {
    pub(super) client: Client<W>,
    pub(super) group: u64,
    pub(super) rank: ClientId,
    size: u32,
    pub(super) timeout: Duration,
    /// Number of the next collective call, equal at all members.
    next_call: Cell<u64>,
    /// Number of the next meeting of the members.
    next_meeting: Cell<u64>,
    /// Number of the next lock of this member.
    pub(super) next_lock: Cell<u64>,
    /// True after this member has left the group.
    pub(super) has_left: Rc<Cell<bool>>,
}

impl<W: World> Client<W> {
    /// Exchanges bytes with the other members of a meeting (an all-gather). Returns the bytes of
    /// each member, by rank. Waits for the members at most for `timeout`.
    ///
    /// # Errors
    /// [`Fault::MembersMissing`] names the members that have not come in time.
    pub async fn meet(
        &self,
        name: &str,
        (rank, size): (ClientId, u32),
        bytes: Vec<u8>,
        timeout: Duration,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let (name, timeout_ms) = (name.to_owned(), timeout.as_ms());
        let group = None;
        self.attend(MeetRequest { name, group, rank, size, timeout_ms, bytes }).await
    }

    async fn attend(&self, request: MeetRequest) -> Result<Vec<Vec<u8>>, Fault> {
        let size = request.size as usize;
        match self.call(MEETING_PLACE, Request::Meet(Box::new(request))).await? {
            Reply::Met(brought) if brought.len() == size => Ok(brought),
            other => Err(unexpected(&other)),
        }
    }
}

impl<W: World> Membership<W> {
    /// Registers this client at all servers as member `rank` of `size` of the group of this number,
    /// which must be new and random. A call waits at most for `timeout` for other members.
    ///
    /// # Errors
    /// Faults of the servers.
    pub async fn enrol(
        client: Client<W>,
        group: u64,
        (rank, size): (ClientId, u32),
        timeout: Duration,
    ) -> Result<Self, Fault> {
        let enrol = Request::Enrol(EnrolRequest { group, rank, size });
        client.call_servers((0..client.servers()).map(ServerId), &enrol).await?;
        Ok(Self {
            client,
            group,
            rank,
            size,
            timeout,
            next_call: Cell::new(0),
            next_meeting: Cell::new(0),
            next_lock: Cell::new(0),
            has_left: Rc::default(),
        })
    }

    /// Rank of this member.
    pub fn rank(&self) -> ClientId {
        self.rank
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the client itself.
    pub fn client(&self) -> &Client<W> {
        &self.client
    }

    /// Maximum time that a call waits for other members.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Exchanges bytes with the other members (an all-gather). Collective.
    ///
    /// # Errors
    /// As [`Client::meet`].
    pub async fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        self.gather(&self.begin_meeting(), bytes).await
    }

    /// Takes the name of an all-gather. Members must take names in the same order.
    pub fn begin_meeting(&self) -> String {
        let meeting = self.next_meeting.replace(self.next_meeting.get() + 1);
        format!("meeting {meeting}")
    }

    /// [`Membership::all_gather`] under a name of the members' own.
    ///
    /// # Errors
    /// As [`Client::meet`].
    pub async fn gather(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        let (name, group, timeout_ms) = (name.to_owned(), Some(self.group), self.timeout.as_ms());
        let (rank, size) = (self.rank, self.size);
        self.client.attend(MeetRequest { name, group, rank, size, timeout_ms, bytes }).await
    }

    /// Takes the number of a collective call. Members must take numbers in the same order; the
    /// calls themselves may be active at the same time.
    pub fn begin_call(&self) -> u64 {
        self.next_call.replace(self.next_call.get() + 1)
    }

    /// Transfers this member's part between the file and `memory`, together with all members, as
    /// the call `number` of [`Membership::begin_call`]. The file must be open and, for a write, as
    /// long as the part. A member that cannot take part passes the fault, so that no other waits
    /// for it. Returns the number of bytes that the servers have moved for all members.
    ///
    /// # Errors
    /// Faults of the servers; every member's call ends with the same one. Among them is
    /// [`Fault::BadAccess`] for a part that does not fit the file or the memory.
    pub async fn transfer(
        &self,
        number: u64,
        file: &FileRecord,
        call: CollectiveCall,
        part: Result<OwnPart, Fault>,
        memory: &W::Memory,
    ) -> Result<u64, Fault> {
        let part = part.and_then(|part| {
            check(&part, self.rank, file, memory.length())?;
            Ok(part)
        });
        let exposed = self.client.expose_at_once(memory).await;
        let request = Request::Join(Box::new(JoinRequest {
            group: self.group,
            number,
            rank: self.rank,
            call,
            part,
            region: exposed.region,
            timeout_ms: self.timeout.as_ms(),
        }));
        let servers: Vec<ServerId> = file.servers().collect();
        let withdrawn_if_dropped = WithdrawnOnDrop { world: self.client.world(), exposed };
        let moved = self.join(&servers, &request, number).await;
        std::mem::forget(withdrawn_if_dropped);
        self.client.world().withdraw(exposed.region).await;
        moved
    }

    /// Joins a call at each server, and waits for all of them.
    async fn join(
        &self,
        servers: &[ServerId],
        request: &Request,
        number: u64,
    ) -> Result<u64, Fault> {
        let request = wire::PreparedRequest::new(request);
        let joined = servers.iter().map(|server| self.client.call_prepared(*server, &request));
        let mut joined: FuturesUnordered<_> = joined.collect();
        let (mut bytes, mut failure) = (0, None);
        while let Some(answer) = joined.next().await {
            let fault = match answer {
                Ok(Reply::Moved { bytes: moved }) => {
                    bytes += moved;
                    continue;
                }
                Ok(other) => unexpected(&other),
                Err(fault) => fault,
            };
            if failure.is_none() {
                let collective = collective_number(self.group, number);
                self.client
                    .notify_servers(servers.iter().copied(), &Request::Cancel { collective });
            }
            // Servers that were asked to cancel have a less exact fault than the one that failed.
            failure = Some(failure.map_or(fault.clone(), |first: Fault| first.min(fault)));
        }
        failure.map_or(Ok(bytes), Err)
    }

    /// Sends the servers that this member makes no further call. They release its locks.
    pub fn leave(&self) {
        self.has_left.set(true);
        let enrol = EnrolRequest { group: self.group, rank: self.rank, size: 0 };
        let servers = (0..self.client.servers()).map(ServerId);
        self.client.notify_servers(servers, &Request::Enrol(enrol));
    }
}

/// Checks a part and the memory for it, before anything moves.
fn check(
    part: &OwnPart,
    rank: ClientId,
    file: &FileRecord,
    memory_bytes: u64,
) -> Result<(), Fault> {
    let checked = part.validate(rank, file.bytes);
    checked.map_err(|error| Fault::BadAccess { cause: error.to_string() })?;
    let needed = part.memory_bytes();
    if memory_bytes < needed {
        let cause = format!("it needs {needed} bytes of memory and has {memory_bytes}");
        return Err(Fault::BadAccess { cause });
    }
    Ok(())
}
