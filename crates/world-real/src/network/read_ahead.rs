//! Stream of one connection, read ahead of its frames.
//!
//! Invariants:
//!
//! - A body goes directly to its destination, but for what was read together with its header.
//! - On a protected connection nothing is given out of a record that is not checked. The data of a
//!   large body is checked and decrypted where it belongs, so its memory has other bytes meanwhile;
//!   if the check fails, the connection ends and with it what waits for the body.

use super::connection::Connection;
use super::receive_buffer::ReceiveBuffer;
use super::record::{LENGTH_BYTES, Opener, RecordError, TAG_BYTES};
use crate::memory::{Filling, RealMemory};
use std::rc::Rc;

/// Number of bytes for a revoked memory that are discarded at a time.
const SKIPPED_BYTES_MAX: usize = 4 << 10;

/// Reason for which reading ends.
pub(super) struct End {
    /// Cause, for the user.
    pub(super) text: String,
    /// True if nothing more can come.
    pub(super) stream_ended: bool,
}

impl From<String> for End {
    fn from(text: String) -> Self {
        Self { text, stream_ended: false }
    }
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self { text: format!("reading failed: {error}"), stream_ended: true }
    }
}

impl From<RecordError> for End {
    fn from(error: RecordError) -> Self {
        Self { text: error.to_string(), stream_ended: matches!(error, RecordError::Cut(_)) }
    }
}

/// Stream of one connection, with what was read ahead.
pub(super) struct ReadAhead {
    connection: Rc<Connection>,
    ahead: ReceiveBuffer,
}

impl ReadAhead {
    /// Returns the stream of `connection`, whose records `opener` checks, if it has some.
    pub(super) fn new(connection: Rc<Connection>, opener: Option<Opener>) -> Self {
        Self { connection, ahead: ReceiveBuffer::new(opener) }
    }

    /// Fills `bytes` from the stream.
    pub(super) async fn fill(&mut self, bytes: &mut [u8]) -> Result<(), End> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.ahead.data().is_empty() {
                self.read_more().await?;
            }
            filled += self.ahead.take(&mut bytes[filled..]);
        }
        Ok(())
    }

    /// Reads the next `length` bytes to `offset` of `memory`, which has room for them.
    pub(super) async fn fill_memory(
        &mut self,
        memory: &RealMemory,
        offset: usize,
        length: usize,
    ) -> Result<(), End> {
        let mut place = memory.place(offset, length);
        self.ahead.start += place.copy_from(self.ahead.data());
        if self.ahead.opener.is_some() {
            return self.fill_from_records(&mut place).await;
        }
        while place.remaining() > 0 {
            // The read-ahead data is used up, so the buffer is free for data behind the body.
            self.ahead.clear();
            let socket = &self.connection.socket;
            match socket.read_into(&mut place, &mut self.ahead.bytes).await? {
                Some((0, 0)) => return Err(stream_ended()),
                Some((placed, over)) => {
                    self.ahead.end = over;
                    self.note_received(placed + over);
                }
                None => return self.skip(place.remaining()).await,
            }
        }
        Ok(())
    }

    /// Reads and discards the next `length` bytes, whose memory was revoked meanwhile.
    async fn skip(&mut self, mut length: usize) -> Result<(), End> {
        let mut dropped = [0; SKIPPED_BYTES_MAX];
        while length > 0 {
            let count = length.min(SKIPPED_BYTES_MAX);
            self.fill(&mut dropped[..count]).await?;
            length -= count;
        }
        Ok(())
    }

    /// Reads data into the buffer, which has none.
    async fn read_more(&mut self) -> Result<(), End> {
        if self.ahead.opener.is_some() {
            return self.read_record().await;
        }
        self.ahead.clear();
        let count = self.connection.socket.read_some(&mut self.ahead.bytes).await?;
        if count == 0 {
            return Err(stream_ended());
        }
        self.ahead.end = count;
        self.note_received(count);
        Ok(())
    }

    /// Opens the next record in the buffer, which has no data.
    async fn read_record(&mut self) -> Result<(), End> {
        while !self.ahead.open_next()? {
            let count = self.connection.socket.read_some(self.ahead.room()).await?;
            if count == 0 {
                return Err(self.ahead.cut().map_or_else(stream_ended, End::from));
            }
            self.ahead.sealed_end += count;
            self.note_received(count);
        }
        Ok(())
    }

    /// Fills `place` from records. The buffer has no data, unless nothing remains to be filled.
    async fn fill_from_records(&mut self, place: &mut Filling) -> Result<(), End> {
        while place.remaining() > 0 {
            if let Some(length) = self.ahead.begun_within(place.remaining())? {
                if !self.open_in_place(place, length).await? {
                    return self.skip(place.remaining() - length).await;
                }
                continue;
            }
            self.read_record().await?;
            if place.is_revoked() {
                return self.skip(place.remaining()).await;
            }
            self.ahead.start += place.copy_from(self.ahead.data());
        }
        Ok(())
    }

    /// Reads the rest of the next record, with `length` bytes of data, and opens it in `place`.
    /// Returns false when the memory of `place` was revoked meanwhile; then the record is dropped.
    async fn open_in_place(&mut self, place: &mut Filling, length: usize) -> Result<bool, End> {
        let cut = self.ahead.cut().map_or_else(stream_ended, End::from);
        let begun = &self.ahead.sealed()[LENGTH_BYTES..];
        let mut count = begun.len();
        place.fill(|bytes| {
            bytes[..count].copy_from_slice(begun);
            Ok::<_, End>(0)
        })?;
        self.ahead.clear();
        // Behind the data comes its tag, and the length of the next record. More is read ahead only
        // when it does not belong to this place.
        let is_last = length == place.remaining();
        let ahead = if is_last { self.ahead.bytes.len() } else { TAG_BYTES + LENGTH_BYTES };
        while self.ahead.sealed_end < TAG_BYTES {
            let rest = &mut self.ahead.bytes[self.ahead.sealed_end..ahead];
            let socket = &self.connection.socket;
            match socket.read_unchecked(place, count..length, rest).await? {
                Some((0, 0)) => return Err(cut),
                Some((placed, over)) => {
                    count += placed;
                    self.ahead.sealed_end += over;
                    self.note_received(placed + over);
                }
                None => {
                    let left = length - count + TAG_BYTES - self.ahead.sealed_end;
                    return self.drop_record(left, cut).await.map(|()| false);
                }
            }
        }
        if let Some(opener) = &mut self.ahead.opener {
            let tag = &self.ahead.bytes[..TAG_BYTES];
            place.fill(|bytes| opener.open(&mut bytes[..length], tag).map(|()| length))?;
        }
        self.ahead.sealed = TAG_BYTES;
        Ok(true)
    }

    /// Reads and discards the last `left` bytes of a record whose data nobody wants. It cannot be
    /// checked any more, and nothing of it is used; the record behind it is checked. Fails with
    /// `cut` when the stream ends.
    async fn drop_record(&mut self, mut left: usize, cut: End) -> Result<(), End> {
        self.ahead.clear();
        while left > 0 {
            let room = self.ahead.bytes.len().min(left);
            let read = self.connection.socket.read_some(&mut self.ahead.bytes[..room]).await?;
            if read == 0 {
                return Err(cut);
            }
            self.note_received(read);
            left -= read;
        }
        if let Some(opener) = &mut self.ahead.opener {
            opener.pass_over();
        }
        Ok(())
    }

    fn note_received(&self, bytes: usize) {
        self.connection.received_bytes.update(|sum| sum + bytes as u64);
    }
}

fn stream_ended() -> End {
    End { text: "the peer closed the connection".into(), stream_ended: true }
}
