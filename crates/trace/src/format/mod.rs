//! The streams of events: their bytes, the writer and the reader.
//!
//! A stream is a [head](head) of 64 bytes and records behind it. The first byte of a record is its
//! [code](codes); the rest are varints. Writer and reader share [`State`](state::State), which
//! predicts what an event says from those before it.

mod codes;
mod head;
mod output;
mod parts;
mod reader;
mod recent;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub(crate) use stream::{Stream, read_start, read_stream};
pub use writer::{Placed, Writer};
