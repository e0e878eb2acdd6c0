//! Collective transfers: one transfer made together by the clients of a group.
//!
//! Each strategy is one folder with both of its sides; read it next to Figure 2 of the paper
//! (TOCS 1997).

pub(crate) mod caching;
pub(crate) mod disk_directed;
pub(crate) mod two_phase;

use crate::client::{Group, SharedMemory};
use policy::{Access, Direction, DiskOrder};
use std::fmt;
use std::str::FromStr;
use units::ClientId;
use wire::{Fault, FileRecord};
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
}

impl Strategy {
    /// All of them, in the order in which the papers present them.
    pub const ALL: [Self; 3] = [Self::Caching, Self::TwoPhase, Self::DiskDirected];
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Caching => "caching",
            Self::TwoPhase => "two-phase",
            Self::DiskDirected => "disk-directed",
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
            _ => Err(format!(
                "{word:?} is no strategy; there are caching, two-phase and disk-directed"
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
        self.agree(self.check(transfer, memory)).await?;
        let moved = match transfer.strategy {
            Strategy::Caching => caching::client::transfer(self, transfer, memory).await,
            Strategy::TwoPhase => two_phase::client::transfer(self, transfer, memory).await,
            Strategy::DiskDirected => {
                disk_directed::client::transfer(self, transfer, memory, &expected).await
            }
        };
        self.client().world().compute(self.client().costs().collective).await;
        moved
    }

    /// Finds, before anything moves, what is wrong with a transfer or with this member's memory.
    fn check(&self, transfer: &Transfer, memory: &SharedMemory<W>) -> Result<(), Fault> {
        let bad = |cause: String| Err(Fault::BadAccess { cause });
        let access = &transfer.access;
        check_access(transfer.direction, access, &transfer.file)?;
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

/// Whether an access, which may come from anyone, can be carried out on a file.
pub(crate) fn check_access(
    direction: Direction,
    access: &Access,
    file: &FileRecord,
) -> Result<(), Fault> {
    let checked = match direction {
        Direction::Read => access.validate(file.bytes),
        Direction::Write => access.validate_write(file.bytes),
    };
    checked.map_err(|error| Fault::BadAccess { cause: error.to_string() })
}

/// Whether two clients may own the same byte of a write that was checked, so that the sum of what
/// they own does not tell whether everything is covered.
pub(crate) fn may_overlap(access: &Access) -> bool {
    matches!(access, Access::Nested(clients) if clients.len() > 1)
}

/// The fault of a one-sided transfer with the memory of `client`.
pub(crate) fn transfer_fault(client: ClientId, error: TransferError) -> Fault {
    match error {
        TransferError::Departed { cause, .. } => Fault::ClientLeft { client, cause },
        TransferError::OutOfRegion { .. } => Fault::TransferFailed { cause: error.to_string() },
    }
}
