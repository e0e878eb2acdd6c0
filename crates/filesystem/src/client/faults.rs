//! Faults that a client finds itself.

use units::ServerId;
use wire::{Fault, Reply};
use world::NetworkError;

/// The fault of a request that did not go out.
pub(super) fn not_sent(server: ServerId, error: &NetworkError) -> Fault {
    match error {
        NetworkError::TooLarge { .. } => {
            Fault::BadRequest { cause: format!("it does not fit a message: {error}") }
        }
        NetworkError::Departed { .. } | NetworkError::Unreachable { .. } => {
            server_left(server, error)
        }
    }
}

/// The fault of a connection to a server that failed.
pub(crate) fn server_left(server: ServerId, error: &NetworkError) -> Fault {
    Fault::ServerLeft { server, cause: error.to_string() }
}

/// The fault of an answer that does not belong to the question.
pub(crate) fn unexpected(reply: &Reply) -> Fault {
    let cause = format!("the server answered something else than was asked: {reply:?}");
    Fault::BadRequest { cause }
}
