//! The part of an access that one client transfers by itself.

use super::super::transfer::Transfer;
use policy::{Access, Direction, DiskOrder};
use units::ClientId;
use wire::FileRecord;

/// The part of an access that one client transfers by itself.
#[derive(Clone, Debug)]
pub struct Part {
    /// Read or write, as the client sees it.
    pub direction: Direction,
    /// An open file.
    pub file: FileRecord,
    /// Assignment of bytes of the file to clients.
    pub access: Access,
    /// Number of this client in the access.
    pub client: ClientId,
    /// Order in which disks are used.
    pub order: DiskOrder,
    /// True when written data must be on stable storage at the end.
    pub sync: bool,
}

impl Part {
    /// Returns the part of `client` in a collective transfer, without the other clients.
    pub(super) fn of(transfer: &Transfer, client: ClientId) -> Self {
        let (access, client) = transfer.access.part_of(client);
        let Transfer { direction, ref file, order, sync, .. } = *transfer;
        Self { direction, file: file.clone(), access, client, order, sync }
    }

    /// Returns the part with an access of this client alone.
    pub(super) fn alone(&self) -> Self {
        let (access, client) = self.access.part_of(self.client);
        Self { access, client, file: self.file.clone(), ..*self }
    }
}
