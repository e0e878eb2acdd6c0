//! Headers of the messages that are sent most.

use wire::{FREQUENT_BYTES_MAX, Frequent};
use world::Header;

/// The bytes of a message of which there are many.
pub(crate) fn frequent_header(message: &Frequent) -> Header {
    let mut room = [0; FREQUENT_BYTES_MAX];
    let length = message.encode(&mut room).len();
    // Most are short: so many bytes, whatever they mean, are copied as two words of a processor.
    match room.first_chunk() {
        Some(short) if length <= short.len() => Header::from_buf_and_len(*short, length),
        _ => Header::from_slice(&room[..length]),
    }
}
