//! Faults that a client detects itself.

use units::ServerId;
use wire::{Fault, Reply};
use world::NetworkError;

/// Returns the fault of a request that was not sent.
pub(super) fn not_sent(server: ServerId, error: &NetworkError) -> Fault {
    match error {
        NetworkError::TooLarge { .. } => {
            Fault::BadRequest { cause: format!("it does not fit a message: {error}") }
        }
        NetworkError::Departed { .. }
        | NetworkError::Unreachable { .. }
        | NetworkError::WrongVersion { .. } => server_left(server, error),
    }
}

/// Returns the fault of a connection to a server that is broken, or could not be made.
pub(crate) fn server_left(server: ServerId, error: &NetworkError) -> Fault {
    match *error {
        NetworkError::WrongVersion { own, peer, .. } => {
            Fault::WrongVersion { client: own, server: peer }
        }
        NetworkError::Departed { .. }
        | NetworkError::Unreachable { .. }
        | NetworkError::TooLarge { .. } => Fault::ServerLeft { server, cause: error.to_string() },
    }
}

/// Returns the fault of a reply that does not match its request.
pub(crate) fn unexpected(reply: &Reply) -> Fault {
    let cause = format!("the server sent the wrong kind of answer: {reply:?}");
    Fault::BadRequest { cause }
}
