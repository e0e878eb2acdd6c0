//! Groups: clients that make collective calls together, each with its own part of an access.
//!
//! A member joins a call at each server of the file, with its part and the region of its memory;
//! the bytes of a small part go with the messages instead.
//! The servers begin when all members have joined, and answer each member. Members exchange no
//! messages with one another.
//!
//! Invariants:
//! - A member that exposes its memory does so before it joins, and withdraws it before the call
//!   ends.
//! - A call that fails at one server is cancelled at the others, and ends when all have answered.

use crate::client::faults::unexpected;
use crate::client::memory::WithdrawnOnDrop;
use crate::client::state::Client;
use crate::collective::disk_directed::carried::{bytes_of, carried_runs};
use crate::collective::{all_to_the_end, call_to_the_end};
use policy::{Access, Direction, OwnPart};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;
use std::rc::Rc;
use tracing::debug;
use units::{ClientId, Duration, RegionId, Run, ServerId};
use wire::{
    AllGatherRequest, CallId, CollectiveCall, CollectiveRequest, Fault, FileRecord, GroupRequest,
    JoinRequest, LeaveRequest, MemberRun, PreparedRequest, RegisterRequest, Reply, TransferName,
};
use world::{Memory, Payload, World};

/// Server for all-gathers, and for the counters and locks of groups.
pub(crate) const GROUP_SERVER: ServerId = ServerId(0);

/// Membership of one client in a group.
pub struct Group<W: World> {
    pub(crate) client: Client<W>,
    pub(crate) group: u64,
    pub(crate) rank: ClientId,
    size: u32,
    pub(crate) timeout: Duration,
    /// Number of the next collective call, equal at all members.
    next_call: Cell<u64>,
    /// Number of the next all-gather.
    next_gather: Cell<u64>,
    /// Number of the next lock of this member.
    pub(crate) next_lock: Cell<u64>,
    /// Number of times that each server had been lost when the group was formed. A server that was
    /// lost since then knows nothing of the group.
    losses: Vec<u64>,
    /// Servers of which other members have told that they were lost.
    lost: RefCell<BTreeSet<ServerId>>,
    /// True after this member has left the group.
    pub(crate) has_left: Rc<Cell<bool>>,
}

impl<W: World> Client<W> {
    /// Exchanges bytes with other clients that use the same name. Returns the bytes of each, by
    /// rank. Waits for them at most for `timeout`.
    ///
    /// # Errors
    /// [`Fault::MembersMissing`] names those that have brought nothing in time.
    pub async fn all_gather(
        &self,
        name: &str,
        (rank, size): (ClientId, u32),
        bytes: Vec<u8>,
        timeout: Duration,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let (name, timeout_ms) = (name.to_owned(), timeout.as_ms());
        self.gather(AllGatherRequest { name, group: None, rank, size, timeout_ms, bytes }).await
    }

    async fn gather(&self, request: AllGatherRequest) -> Result<Vec<Vec<u8>>, Fault> {
        let size = request.size as usize;
        match self.call(GROUP_SERVER, GroupRequest::AllGather(Box::new(request))).await? {
            Reply::Gathered(brought) if brought.len() == size => Ok(brought),
            other => Err(unexpected(&other)),
        }
    }
}

impl<W: World> Group<W> {
    /// Registers this client at all servers as member `rank` of `size` of the group of this number,
    /// which must be new and random. A call waits at most for `timeout` for other members.
    ///
    /// # Errors
    /// Faults of the servers.
    pub async fn register(
        client: Client<W>,
        group: u64,
        (rank, size): (ClientId, u32),
        timeout: Duration,
    ) -> Result<Self, Fault> {
        // A server that is lost from now on may know nothing of it.
        let losses = (0..client.servers()).map(|server| client.losses(once(ServerId(server))));
        let losses = losses.collect();
        let registered = (0..client.servers()).map(ServerId).map(|server| {
            let members = vec![(rank, client.key_at(server))];
            let register = RegisterRequest { group, size, members };
            client.call(server, GroupRequest::Register(Box::new(register)))
        });
        futures_util::future::try_join_all(registered).await?;
        Ok(Self {
            client,
            group,
            rank,
            size,
            timeout,
            next_call: Cell::new(0),
            next_gather: Cell::new(0),
            next_lock: Cell::new(0),
            losses,
            lost: RefCell::default(),
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
    /// As [`Client::all_gather`].
    pub async fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        self.all_gather_as(&self.begin_all_gather(), bytes).await
    }

    /// Takes the name of an all-gather. Members must take names in the same order.
    pub fn begin_all_gather(&self) -> String {
        let number = self.next_gather.replace(self.next_gather.get() + 1);
        format!("all-gather {number}")
    }

    /// [`Group::all_gather`] under a name of the members' own.
    ///
    /// # Errors
    /// As [`Client::all_gather`].
    pub async fn all_gather_as(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        let (name, group, timeout_ms) = (name.to_owned(), Some(self.group), self.timeout.as_ms());
        let (rank, size) = (self.rank, self.size);
        let request = AllGatherRequest { name, group, rank, size, timeout_ms, bytes };
        self.client.gather(request).await
    }

    /// True if a server of a file was lost since the group was formed. Collective calls on the file
    /// fail then at all members.
    pub fn has_lost_server_of(&self, file: &FileRecord) -> bool {
        let is_lost = |server: ServerId| {
            let losses = self.losses.get(server.0 as usize).copied().unwrap_or(0);
            self.lost.borrow().contains(&server) || self.client.losses(once(server)) != losses
        };
        file.servers().any(is_lost)
    }

    /// Notes the server that was lost for another member, if that is the fault of a call.
    fn note_lost(&self, fault: &Fault) {
        if let Fault::ServerLeft { server, .. } | Fault::ServerStalled { server, .. } = fault {
            self.lost.borrow_mut().insert(*server);
        }
    }

    /// Takes the number of a collective call. Members must take numbers in the same order; the
    /// calls themselves may be active at the same time.
    pub fn begin_call(&self) -> u64 {
        self.next_call.replace(self.next_call.get() + 1)
    }

    /// Transfers this member's part between the file and `memory`, together with all members, as
    /// the call `number` of [`Group::begin_call`]. The file must be open and, for a write, as
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
        let moved = self.transfer_in_order((number, false), file, call, part, memory).await?;
        Ok(moved.bytes)
    }

    /// As [`Group::transfer`], for a member that may make the next calls alone
    /// ([`CollectiveRequest::JoinInOrder`]).
    ///
    /// # Errors
    /// As for [`Group::transfer`].
    pub async fn transfer_in_order(
        &self,
        (number, may_go_alone): (u64, bool),
        file: &FileRecord,
        call: CollectiveCall,
        part: Result<OwnPart, Fault>,
        memory: &W::Memory,
    ) -> Result<Moved, Fault> {
        let settled = self.client.settle_for(call.direction, file.file).await;
        let part = settled.and(part).and_then(|part| {
            check(&part, self.rank, file, memory.length())?;
            Ok(part)
        });
        let carried = match &part {
            Ok(part) => carried_runs(part, &file.stripe),
            Err(_) => Some(BTreeMap::new()),
        };
        let request = JoinRequest {
            call: CallId { group: self.group, number },
            parameters: call,
            members: MemberRun::of([(self.rank, RegionId(0))]),
            access: part.map(|part| Access::Parts(vec![part])),
            timeout_ms: self.timeout.as_ms(),
        };
        let servers: Vec<ServerId> = file.servers().collect();
        let begun = self.client.world().now();
        let moved = match carried {
            Some(runs) => {
                self.join_with_data((request, may_go_alone), &servers, runs, memory).await
            }
            None => {
                let joined = self.join_with_memory(request, &servers, memory).await;
                joined.map(|bytes| Moved { bytes, calls_alone: 0 })
            }
        };
        let (rank, seconds) = (self.rank.0, self.client.world().now().since(begun).as_seconds());
        match &moved {
            Ok(Moved { bytes, .. }) => {
                debug!(file = file.name, number, rank, bytes, seconds, "a collective call is done")
            }
            Err(fault) => {
                self.note_lost(fault);
                debug!(file = file.name, number, rank, seconds, %fault, "a collective call failed")
            }
        }
        moved
    }

    /// Joins a call with a memory that the servers reach.
    async fn join_with_memory(
        &self,
        mut request: JoinRequest,
        servers: &[ServerId],
        memory: &W::Memory,
    ) -> Result<u64, Fault> {
        let region = self.client.expose_at_once(memory).await;
        let name = TransferName::Call(request.call);
        request.members = MemberRun::of([(self.rank, region)]);
        let request = CollectiveRequest::Join(Box::new(request));
        let withdrawn_if_dropped = WithdrawnOnDrop { world: self.client.world(), region };
        let moved = call_to_the_end(&self.client, servers, request, name).await;
        std::mem::forget(withdrawn_if_dropped);
        self.client.world().withdraw(region).await;
        moved
    }

    /// Joins a call with a small part, whose bytes go with the messages. `runs` are the pieces of
    /// the memory by the place of the server.
    async fn join_with_data(
        &self,
        (request, may_go_alone): (JoinRequest, bool),
        servers: &[ServerId],
        mut runs: BTreeMap<ServerId, Vec<Run>>,
        memory: &W::Memory,
    ) -> Result<Moved, Fault> {
        let boxed = Box::new(request.clone());
        let prepared = PreparedRequest::new(match may_go_alone {
            true => CollectiveRequest::JoinInOrder(boxed),
            false => CollectiveRequest::JoinWithData(boxed),
        });
        let (request, prepared) = (&request, &prepared);
        let calls_alone = &Cell::new(0);
        let calls = (0..).map(ServerId).zip(servers).map(|(place, server)| {
            let runs = runs.remove(&place).unwrap_or_default();
            async move {
                let direction = request.parameters.direction;
                let is_written = direction == Direction::Write && !runs.is_empty();
                let body = is_written.then(|| memory.gather(&runs));
                let call = self.client.call_prepared_with_data(*server, prepared, body);
                match call.await? {
                    (Reply::NoRoom, _) => {
                        let server = std::slice::from_ref(server);
                        let joined = self.join_with_memory(request.clone(), server, memory);
                        joined.await.map(|bytes| Reply::Moved { bytes })
                    }
                    (reply @ (Reply::Moved { .. } | Reply::MovedTogether { .. }), Some(data))
                        if direction == Direction::Read && data.length() == bytes_of(&runs) =>
                    {
                        memory.scatter(&runs, &data);
                        Ok(without_calls(reply, calls_alone))
                    }
                    (reply @ (Reply::Moved { .. } | Reply::MovedTogether { .. }), None)
                        if direction == Direction::Write || runs.is_empty() =>
                    {
                        Ok(without_calls(reply, calls_alone))
                    }
                    (other, _) => Err(unexpected(&other)),
                }
            }
        });
        let name = TransferName::Call(request.call);
        let bytes = all_to_the_end(&self.client, servers, calls, name).await?;
        Ok(Moved { bytes, calls_alone: calls_alone.get() })
    }

    /// Sends the servers that this member makes no further call. They release its locks.
    pub fn leave(&self) {
        self.has_left.set(true);
        let leave = LeaveRequest { group: self.group, first: self.rank, count: 1 };
        let servers = (0..self.client.servers()).map(ServerId);
        self.client.notify_servers(servers, GroupRequest::Leave(leave));
    }
}

/// Result of a collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Number of bytes that the servers have moved for all members.
    pub bytes: u64,
    /// Number of the next calls of the group on the file that each member makes alone; equal at all
    /// members.
    pub calls_alone: u32,
}

/// Notes the number of calls that members make alone, if a reply has one.
fn without_calls(reply: Reply, calls: &Cell<u32>) -> Reply {
    match reply {
        Reply::MovedTogether { bytes, calls_alone } => {
            calls.set(calls_alone);
            Reply::Moved { bytes }
        }
        other => other,
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
