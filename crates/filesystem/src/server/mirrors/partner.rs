//! Server that has something of this one's part of a file: a copy, or parity.

use super::spans::{WHOLE, overlap, spanning};
use std::cell::Cell;
use units::{ByteRange, ServerId};

/// Server with the copy of a part, or with parity of it.
pub(crate) struct Partner {
    pub(super) server: ServerId,
    /// Range of this server's objects of which what it has may lack changes.
    behind: Cell<Option<ByteRange>>,
    /// Number of changes that it does not have.
    missed: Cell<u64>,
    /// Number of connections to it that had ended when what it has was equal and stored. When
    /// another one ends, it may lose what has changed since.
    ended: Cell<u64>,
    /// True after what it has could not be stored: that need not be what it returns.
    is_unstored: Cell<bool>,
    /// Number of connections to it that had ended when filling began, or began anew.
    filling_since: Cell<u64>,
}

impl Partner {
    pub(super) fn new(server: ServerId) -> Self {
        Self {
            server,
            behind: Cell::new(None),
            missed: Cell::new(0),
            ended: Cell::new(0),
            is_unstored: Cell::new(false),
            filling_since: Cell::new(0),
        }
    }

    /// Notes that what it has may lack changes of a range.
    pub(super) fn may_be_behind(&self, range: ByteRange) {
        self.behind.set(Some(spanning(self.behind.get(), range)));
    }

    /// Notes that there is nothing here that it could lack.
    pub(super) fn expect_nothing(&self) {
        self.behind.set(None);
    }

    /// Notes that it lacks a change of a range, or has one that failed here.
    pub(super) fn miss(&self, range: ByteRange) {
        self.missed.update(|missed| missed + 1);
        self.may_be_behind(range);
    }

    /// Notes that what it has is equal and stored, after `ended` connections to it had ended.
    pub(super) fn stored(&self, ended: u64) {
        self.ended.set(ended);
    }

    /// Notes that disks here are filled with what it has, from now on.
    pub(super) fn begin_filling(&self, ended: u64) {
        self.filling_since.set(ended);
    }

    /// True if a further connection to it has ended while disks here are filled.
    pub(super) fn has_ended_again(&self, ended: u64) -> bool {
        self.filling_since.replace(ended) != ended
    }

    /// Notes that disks here are filled.
    pub(super) fn end_filling(&self) {
        self.ended.set(self.filling_since.get());
    }

    /// True while what it has may lack changes.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.get().is_some()
    }

    /// True while it may lack changes of a range.
    pub(super) fn may_lack(&self, range: ByteRange) -> bool {
        self.behind.get().is_some_and(|behind| overlap(behind, range))
    }

    /// True while it may lack changes of each byte of a range.
    pub(super) fn may_lack_all_of(&self, range: ByteRange) -> bool {
        self.behind.get().is_some_and(|behind| behind.contains(range))
    }

    /// True while it may lack anything, and has missed changes.
    pub(super) fn has_missed_all(&self) -> bool {
        self.missed.get() > 0 && self.behind.get() == Some(WHOLE)
    }

    /// True if it must be written without a comparison, since it could not be stored.
    pub(super) fn is_unstored(&self) -> bool {
        self.is_unstored.get()
    }

    /// Notes whether what it has could be stored.
    pub(super) fn set_unstored(&self, is_unstored: bool) {
        self.is_unstored.set(is_unstored);
    }

    /// Number of changes that it has missed.
    pub(super) fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// True if no connection to it has ended since the file was marked or renewed.
    pub(super) fn is_connected_since(&self, ended: u64) -> bool {
        self.ended.get() == ended
    }

    /// Notes that it has everything, unless it has missed more than `missed` changes. `ended`
    /// connections to it had ended before, and none since.
    pub(super) fn caught_up(&self, missed: u64, ended: u64) -> bool {
        let is_equal = self.missed.get() == missed;
        if is_equal {
            self.behind.set(None);
            self.ended.set(ended);
        }
        is_equal
    }
}
