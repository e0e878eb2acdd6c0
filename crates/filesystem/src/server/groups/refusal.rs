//! Refusals of requests that no correct client sends.

use wire::Fault;

pub(super) fn bad<T>(cause: String) -> Result<T, Fault> {
    Err(Fault::BadRequest { cause })
}
