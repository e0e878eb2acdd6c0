//! Non-collective disk-directed I/O: each client makes its own request, the servers direct it; the
//! requests meet in the block cache and at the disks, as in the Galley file system (Nieuwejaar and
//! Kotz 1997; TOCS 1997, sections 3 and 10).
//!
//! ```text
//! each client:                                   each server, for each request:
//!   one request to each server that has            send (or fetch) what the cache holds
//!   blocks of its part                             sort the other blocks as they lie on each disk
//!   wait for all of them                           with two buffers for each disk:
//!                                                    take a block from the cache, which reads it
//!                                                    once for all who want it, and memput the
//!                                                    client's pieces (or memget them into it)
//!                                                  answer the client
//! ```
//!
//! It needs no barrier and no group. What is written stays in the cache until a flush, so that the
//! pieces of several clients make one block before the disk has it.

pub(crate) mod client;
pub(crate) mod server;

use super::Transfer;
use policy::{Access, Direction, DiskOrder};
use units::ClientId;
use wire::FileRecord;

/// What one client transfers by itself: its part of an access.
#[derive(Clone, Debug)]
pub struct Part {
    /// Whether the client reads or writes.
    pub direction: Direction,
    /// An open file.
    pub file: FileRecord,
    /// Which bytes belong to whom.
    pub access: Access,
    /// Which client of the access this one is.
    pub client: ClientId,
    /// In which order disks are used.
    pub order: DiskOrder,
    /// Whether written data must be on stable storage at the end.
    pub sync: bool,
}

impl Part {
    /// The part of `client` in a collective transfer, and nobody else's.
    fn of(transfer: &Transfer, client: ClientId) -> Self {
        let (access, client) = transfer.access.part_of(client);
        let Transfer { direction, ref file, order, sync, .. } = *transfer;
        Self { direction, file: file.clone(), access, client, order, sync }
    }

    /// The same without what is said of other clients.
    fn alone(&self) -> Self {
        let (access, client) = self.access.part_of(self.client);
        Self { access, client, file: self.file.clone(), ..*self }
    }
}
