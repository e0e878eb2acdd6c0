//! Codes of records: the first byte of each.
//!
//! A byte with [`TRANSFER`] is a transfer, with seven flags. Of the others the lowest five bits are
//! the code and the next two its flags.

/// Bits of a code.
pub(crate) const CODE: u8 = 0x1f;
/// First flag of a code.
pub(crate) const FIRST: u8 = 0x20;
/// Second flag of a code.
pub(crate) const SECOND: u8 = 0x40;

/// Begin of the stream: rank, ranks, host, MPI version.
pub(crate) const START: u8 = 1;
/// Communicator: count and members.
pub(crate) const COMMUNICATOR: u8 = 2;
/// File: name.
pub(crate) const FILE: u8 = 3;
/// Part: number of bytes, then the part as postcard encodes it.
pub(crate) const PART: u8 = 4;
/// Said of the next event: it depends on timing (first flag), it was blocked before (second flag).
pub(crate) const ABOUT_NEXT: u8 = 5;
/// Message of a receive that had begun. First flag: a recent message.
pub(crate) const RECEIVED: u8 = 6;

/// MPI_Init.
pub(crate) const BEGIN: u8 = 8;
/// MPI_Finalize.
pub(crate) const END: u8 = 9;
/// Send. First flag: a recent message; second flag: a request.
pub(crate) const SEND: u8 = 10;
/// Synchronous send, with the flags of [`SEND`].
pub(crate) const SEND_SYNCHRONOUS: u8 = 11;
/// Receive, with the flags of [`SEND`].
pub(crate) const RECEIVE: u8 = 12;
/// Receive with a request whose message [`RECEIVED`] tells: communicator.
pub(crate) const RECEIVE_UNKNOWN: u8 = 13;
/// Wait. First flag: for one request.
pub(crate) const WAIT: u8 = 14;
/// Collective operation. First flag: a recent one; second flag: a request.
pub(crate) const COLLECTIVE: u8 = 15;
/// Open. First flag: may make the file; second flag: the file is fresh.
pub(crate) const OPEN: u8 = 16;
/// Close.
pub(crate) const CLOSE: u8 = 17;
/// Delete.
pub(crate) const DELETE: u8 = 18;
/// Sync.
pub(crate) const SYNC: u8 = 19;
/// Set the size. First flag: it only grows.
pub(crate) const SET_SIZE: u8 = 20;
/// Get the size.
pub(crate) const GET_SIZE: u8 = 21;

/// Flag of the byte: a transfer.
pub(crate) const TRANSFER: u8 = 0x80;
/// Transfer: writes.
pub(crate) const WRITES: u8 = 0x01;
/// Transfer: collective.
pub(crate) const IS_COLLECTIVE: u8 = 0x02;
/// Transfer: has a request.
pub(crate) const HAS_REQUEST: u8 = 0x04;
/// Transfer: the file of the transfer before.
pub(crate) const SAME_FILE: u8 = 0x08;
/// Transfer: the part of the last transfer of this file and direction.
pub(crate) const SAME_PART: u8 = 0x10;
/// Transfer: bits of the place.
pub(crate) const PLACE: u8 = 0x60;
/// Place: where the last transfer of this file and direction ended.
pub(crate) const AT_END: u8 = 0x00;
/// Place: as far from the last transfer as that was from the one before it.
pub(crate) const AT_STRIDE: u8 = 0x20;
/// Place: a distance from the end of the last transfer.
pub(crate) const AT_DISTANCE: u8 = 0x40;
/// Place: none, since the rank moves nothing.
pub(crate) const NOWHERE: u8 = 0x60;

/// Flags that a code may have; `None` for an unknown code.
pub(crate) fn flags_of(code: u8) -> Option<u8> {
    match code {
        START | COMMUNICATOR | FILE | PART | BEGIN | END | RECEIVE_UNKNOWN | CLOSE | DELETE
        | SYNC | GET_SIZE => Some(0),
        RECEIVED | WAIT | SET_SIZE => Some(FIRST),
        ABOUT_NEXT | SEND | SEND_SYNCHRONOUS | RECEIVE | COLLECTIVE | OPEN => Some(FIRST | SECOND),
        _ => None,
    }
}
