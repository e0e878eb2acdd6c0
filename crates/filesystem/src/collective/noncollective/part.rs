//! The part of an access that one client transfers by itself.

use super::super::transfer::Transfer;
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
    pub(super) fn of(transfer: &Transfer, client: ClientId) -> Self {
        let (access, client) = transfer.access.part_of(client);
        let Transfer { direction, ref file, order, sync, .. } = *transfer;
        Self { direction, file: file.clone(), access, client, order, sync }
    }

    /// The same without what is said of other clients.
    pub(super) fn alone(&self) -> Self {
        let (access, client) = self.access.part_of(self.client);
        Self { access, client, file: self.file.clone(), ..*self }
    }
}
