//! Collective transfers: one transfer made together by the clients of a group.
//!
//! Each strategy is one folder with both of its sides; read it next to Figure 2 of the paper
//! (TOCS 1997).

pub(crate) mod caching;
pub(crate) mod disk_directed;
pub(crate) mod noncollective;
pub(crate) mod two_phase;

pub use noncollective::Part;

use crate::client::{Client, Group, SharedMemory};
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use policy::{Access, Direction, DiskOrder, ListEntry};
use std::fmt;
use std::str::FromStr;
use units::{ClientId, ServerId};
use wire::{Fault, FileRecord, PreparedRequest, Request};
use world::{Memory, TransferError, World};

/// How a collective transfer is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Each client asks for each of its contiguous chunks (simple parallel file system).
    Caching,
    /// Clients read or write in a conforming distribution and permute among themselves.
    TwoPhase,
    /// Servers direct the transfer.
    DiskDirected,
    /// Servers direct the part of each client by itself.
    Noncollective,
}

impl Strategy {
    /// Those that the papers compare, in their order: what is used when nothing else is said.
    pub const ALL: [Self; 3] = [Self::Caching, Self::TwoPhase, Self::DiskDirected];
    /// Every one that can be named.
    pub const NAMED: [Self; 4] =
        [Self::Caching, Self::TwoPhase, Self::DiskDirected, Self::Noncollective];
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Caching => "caching",
            Self::TwoPhase => "two-phase",
            Self::DiskDirected => "disk-directed",
            Self::Noncollective => "noncollective",
        })
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "caching" | "independent" => Ok(Self::Caching),
            "two-phase" | "2pio" => Ok(Self::TwoPhase),
            "disk-directed" | "ddio" => Ok(Self::DiskDirected),
            "noncollective" => Ok(Self::Noncollective),
            _ => Err(format!(
                "{word:?} is no strategy; there are caching, two-phase, disk-directed and \
                 noncollective"
            )),
        }
    }
}

/// One collective transfer, the same at every member of the group.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Whether the clients read or write.
    pub direction: Direction,
    /// An open file.
    pub file: FileRecord,
    /// Which bytes belong to whom.
    pub access: Access,
    /// How it is carried out.
    pub strategy: Strategy,
    /// In which order disks are used, where the servers decide it.
    pub order: DiskOrder,
    /// The most requests that one client has under way at one disk (caching and two-phase).
    pub outstanding_per_disk: u32,
    /// Whether written data must be on stable storage at the end.
    pub sync: bool,
}

impl<W: World> Group<W> {
    /// Makes a transfer between the file and every member's shared memory. Collective: returns
    /// when all of it is done, or the same fault to all members.
    pub async fn transfer(
        &self,
        transfer: &Transfer,
        memory: &SharedMemory<W>,
    ) -> Result<(), Fault> {
        let collective = self.next_collective();
        let expected = self.client().mailbox().expect_collective(collective);
        // The barrier of every strategy: from here on all memory is ready. It carries what each
        // member finds wrong with its own part, so that none begins without the others.
        let mut checked = self.check(transfer, memory);
        if checked.is_ok() {
            checked = self.reach(transfer, memory).await;
        }
        if checked.is_ok() && transfer.sync && transfer.direction == Direction::Write {
            checked = self.client().keep_owed_size(&transfer.file).await;
        }
        self.agree(checked).await?;
        let moved = match transfer.strategy {
            Strategy::Caching => caching::client::transfer(self, transfer, memory).await,
            Strategy::TwoPhase => two_phase::client::transfer(self, transfer, memory).await,
            Strategy::DiskDirected => {
                disk_directed::client::transfer(self, transfer, memory, &expected).await
            }
            Strategy::Noncollective => {
                noncollective::client::transfer(self, transfer, memory, collective).await
            }
        };
        self.client().world().compute(self.client().costs().collective).await;
        moved
    }

    /// Connects this member to the servers that have to do with its part of a transfer, if it was
    /// not connected to all of them at its beginning; of servers that direct a transfer, member 0
    /// tells them where the others are. A transfer does that itself; whoever takes its time may
    /// want it done before.
    ///
    /// # Errors
    /// [`Fault::ServerLeft`] when one cannot be reached, [`Fault::BadAccess`] for an access that
    /// cannot be. The other members are not told.
    pub async fn reach(&self, transfer: &Transfer, memory: &SharedMemory<W>) -> Result<(), Fault> {
        check_access(transfer.direction, &transfer.access, transfer.file.bytes)?;
        check_client(self.rank(), &transfer.access)?;
        self.client().reach(|| self.servers_for(transfer)).await?;
        match transfer.strategy {
            Strategy::DiskDirected => self.send_roster(transfer.file.servers(), memory).await,
            _ => Ok(()),
        }
    }

    /// The servers that have something for this member, or from it.
    fn servers_for(&self, transfer: &Transfer) -> Vec<ServerId> {
        let Transfer { file, access, .. } = transfer;
        let places = match transfer.strategy {
            Strategy::TwoPhase => {
                let own = two_phase::client::segment_of(self, transfer);
                let (file_offset, memory_offset, length) = (own.start, 0, own.length());
                let own = ListEntry { file_offset, memory_offset, length };
                let all = Some(own).filter(|own| own.length > 0).into_iter().collect();
                Access::List(vec![all]).servers_of(ClientId(0), &file.stripe)
            }
            // Those that direct a transfer come to the members.
            Strategy::DiskDirected => match self.rank() {
                ClientId(0) => return file.servers().collect(),
                _ => return Vec::new(),
            },
            Strategy::Caching | Strategy::Noncollective => {
                access.servers_of(self.rank(), &file.stripe)
            }
        };
        places.into_iter().map(|place| file.pool.server(place)).collect()
    }

    /// Finds, before anything moves, what is wrong with a transfer or with this member's memory.
    fn check(&self, transfer: &Transfer, memory: &SharedMemory<W>) -> Result<(), Fault> {
        let bad = |cause: String| Err(Fault::BadAccess { cause });
        let access = &transfer.access;
        check_access(transfer.direction, access, transfer.file.bytes)?;
        if access.clients() != self.size() {
            return bad(format!(
                "it is for {} clients, the group has {}",
                access.clients(),
                self.size()
            ));
        }
        let (needed, given) = (access.memory_bytes(self.rank()), memory.memory.length());
        if given < needed {
            return bad(format!("{} needs {needed} bytes and has {given}", self.rank()));
        }
        Ok(())
    }
}

/// Whether an access, which may come from anyone, can be carried out on a file of so many bytes.
pub(crate) fn check_access(
    direction: Direction,
    access: &Access,
    file_bytes: u64,
) -> Result<(), Fault> {
    let checked = match direction {
        Direction::Read => access.validate(file_bytes),
        Direction::Write => access.validate_write(file_bytes),
    };
    checked.map_err(|error| Fault::BadAccess { cause: error.to_string() })
}

/// Whether an access, which may come from anyone, has this client.
pub(crate) fn check_client(client: ClientId, access: &Access) -> Result<(), Fault> {
    let clients = access.clients();
    if client.0 >= clients {
        let cause = format!("{client} has no part in an access of {clients} clients");
        return Err(Fault::BadAccess { cause });
    }
    Ok(())
}

/// Asks servers and waits until all have ended, so that nothing lands in anyone's memory later.
/// When one fails, the others are told to give up the transfer of this number. Returns the first
/// fault.
async fn call_to_the_end<W: World>(
    client: &Client<W>,
    servers: &[ServerId],
    request: &Request,
    number: u64,
) -> Result<(), Fault> {
    let request = PreparedRequest::new(request);
    let calls = servers.iter().map(|server| client.call_prepared(*server, &request));
    let mut calls: FuturesUnordered<_> = calls.collect();
    let mut outcome = Ok(());
    while let Some(ended) = calls.next().await {
        if let Err(fault) = ended
            && outcome.is_ok()
        {
            outcome = Err(fault);
            let cancel = Request::Cancel { collective: number };
            let cancels = servers.iter().map(|server| client.call(*server, cancel.clone()));
            // A server that cannot be told has left, and its call ends for that reason.
            join_all(cancels).await;
        }
    }
    outcome
}

/// Whether two clients may own the same byte of a write that was checked, so that the sum of what
/// they own does not tell whether everything is covered.
pub(crate) fn may_overlap(access: &Access) -> bool {
    match access {
        Access::Nested(clients) => clients.len() > 1,
        // One part may be a union of nests that overlap one another.
        Access::Parts(_) => true,
        Access::All { .. } | Access::Distribution(_) | Access::List(_) => false,
    }
}

/// The fault of a one-sided transfer with the memory of `client`.
pub(crate) fn transfer_fault(client: ClientId, error: TransferError) -> Fault {
    match error {
        TransferError::Departed { cause, .. } => Fault::ClientLeft { client, cause },
        TransferError::OutOfRegion { .. } => Fault::TransferFailed { cause: error.to_string() },
    }
}
