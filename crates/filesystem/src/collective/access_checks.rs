//! Checks of accesses, which may come from anyone.

use policy::{Access, Direction};
use units::ClientId;
use wire::Fault;
use world::TransferError;

/// Checks that an access can be carried out on a file of `file_bytes` bytes.
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

/// Checks that an access has this client.
pub(crate) fn check_client(client: ClientId, access: &Access) -> Result<(), Fault> {
    let clients = access.clients();
    if client.0 >= clients {
        let cause = format!("{client} has no part in an access of {clients} clients");
        return Err(Fault::BadAccess { cause });
    }
    Ok(())
}

/// Returns the fault of a one-sided transfer with the memory of `client`.
pub(crate) fn transfer_fault(client: ClientId, error: TransferError) -> Fault {
    match error {
        TransferError::Departed { cause, .. } => Fault::ClientLeft { client, cause },
        TransferError::OutOfRegion { .. } => Fault::TransferFailed { cause: error.to_string() },
    }
}
