//! Bytes that were read of a stream and not used yet.
//!
//! Invariant: on a protected connection data was checked before it is here; bytes of records that
//! are not opened are behind it.

use super::record::{LENGTH_BYTES, Opener, RecordError, SEALED_BYTES_MAX, TAG_BYTES};

/// Size of the buffer of a connection without records, in bytes: many small frames arrive with one
/// system call.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Buffer of one stream.
pub(super) struct ReceiveBuffer {
    /// The bytes. Data of frames is `start .. end`, records that are not opened are
    /// `sealed .. sealed_end` behind it.
    pub(super) bytes: Box<[u8]>,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) sealed: usize,
    pub(super) sealed_end: usize,
    /// Checks the records of a protected connection.
    pub(super) opener: Option<Opener>,
}

impl ReceiveBuffer {
    /// Returns the empty buffer of a connection whose records `opener` checks, if it has some.
    pub(super) fn new(opener: Option<Opener>) -> Self {
        // One record has room.
        let length = if opener.is_some() { SEALED_BYTES_MAX } else { BUFFER_BYTES };
        let bytes = vec![0; length].into();
        Self { bytes, start: 0, end: 0, sealed: 0, sealed_end: 0, opener }
    }

    /// Data of frames.
    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Records that are not opened.
    pub(super) fn sealed(&self) -> &[u8] {
        &self.bytes[self.sealed..self.sealed_end]
    }

    /// Moves data to the front of `bytes`; returns the number of bytes.
    pub(super) fn take(&mut self, bytes: &mut [u8]) -> usize {
        let count = self.data().len().min(bytes.len());
        bytes[..count].copy_from_slice(&self.data()[..count]);
        self.start += count;
        count
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        (self.start, self.end, self.sealed, self.sealed_end) = (0, 0, 0, 0);
    }

    /// Opens the next record if all of it was read. Call it when there is no data.
    pub(super) fn open_next(&mut self) -> Result<bool, RecordError> {
        let Some(opener) = &mut self.opener else { return Ok(false) };
        let sealed = &mut self.bytes[self.sealed..self.sealed_end];
        let Some(length) = opener.length(sealed)? else { return Ok(false) };
        let Some((data, behind)) = sealed[LENGTH_BYTES..].split_at_mut_checked(length) else {
            return Ok(false);
        };
        let Some(tag) = behind.get(..TAG_BYTES) else { return Ok(false) };
        opener.open(data, tag)?;
        self.start = self.sealed + LENGTH_BYTES;
        self.end = self.start + length;
        self.sealed = self.end + TAG_BYTES;
        Ok(true)
    }

    /// Returns room for more of a record that was begun. Call it when there is no data.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.sealed..self.sealed_end, 0);
        (self.start, self.end) = (0, 0);
        (self.sealed, self.sealed_end) = (0, self.sealed_end - self.sealed);
        &mut self.bytes[self.sealed_end..]
    }

    /// Returns the length of the next record, if that is known, some of its data is still to be
    /// read, and all of it belongs to the next `remaining` bytes.
    pub(super) fn begun_within(&self, remaining: usize) -> Result<Option<usize>, RecordError> {
        let Some(opener) = &self.opener else { return Ok(None) };
        let length = opener.length(self.sealed())?;
        Ok(length
            .filter(|length| *length <= remaining && self.sealed().len() < LENGTH_BYTES + length))
    }

    /// Error of a stream that ended within a record; `None` if it ended behind one.
    pub(super) fn cut(&self) -> Option<RecordError> {
        let number = self.opener.as_ref().map_or(0, Opener::number);
        (!self.sealed().is_empty()).then_some(RecordError::Cut(number))
    }
}
