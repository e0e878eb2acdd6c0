//! Headers of the messages that are sent most.

use wire::{FREQUENT_BYTES_MAX, Frequent};
use world::Header;

/// Encodes a frequent message.
pub(crate) fn frequent_header(message: &Frequent) -> Header {
    let mut room = [0; FREQUENT_BYTES_MAX];
    let length = message.encode(&mut room).len();
    // Most messages are short. Copying a fixed number of bytes takes two processor words.
    match room.first_chunk() {
        Some(short) if length <= short.len() => Header::from_buf_and_len(*short, length),
        _ => Header::from_slice(&room[..length]),
    }
}
