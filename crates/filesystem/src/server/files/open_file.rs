//! A file that clients have open at a server.
//!
//! Invariants:
//! - The size only grows, in the order of [`FileSize`].
//! - No read returns bytes that were in the file before a cut, however the file grows later.

use crate::collective::access_checks::check_access;
use crate::signal::Signal;
use policy::{Access, BYTES_MAX, Buffering, Direction, Pool, Protection, Stripe};
use std::cell::{Cell, Ref, RefCell};
use units::{ByteRange, FileId, ServerId, Timestamp};
use wire::{Fault, FileRecord, FileSize};

/// State of an open file. Active requests hold it, and all see the same size.
pub(crate) struct OpenFile {
    pub(crate) file: FileId,
    /// Map of its blocks to servers and disks.
    pub(crate) stripe: Stripe,
    pool: Pool,
    /// Protection against the loss of a server.
    protection: Cell<Protection>,
    /// Name that the last client to open it gave.
    name: RefCell<String>,
    buffering: Cell<Buffering>,
    size: Cell<FileSize>,
    /// Size when last no change was active and none had failed.
    settled_size: Cell<FileSize>,
    /// Number of clients that have it open.
    pub(crate) users: Cell<u32>,
    /// True when it has no name any more: its data goes with the last close.
    pub(crate) is_nameless: Cell<bool>,
    /// Time of the last change at this server, known when its size is.
    modified: Cell<Timestamp>,
    /// True when it was changed since the first of its clients opened it.
    is_modified: Cell<bool>,
    /// Number of times that it was changed, or its time was set.
    version: Cell<u64>,
    /// True when its size is known to cover all data of it on this server.
    pub(crate) is_measured: Cell<bool>,
    /// True when the disks hold nothing that was once beyond its end.
    pub(crate) tail_is_clean: Cell<bool>,
    is_changing: Cell<bool>,
    /// Number of changes that are being made.
    pub(crate) changes: Cell<u32>,
    changed: Signal,
}

/// Right to change the size of a file. Released when dropped.
pub(crate) struct Changing<'a>(&'a OpenFile);

impl OpenFile {
    /// Makes a file that no client has opened yet.
    pub(crate) fn new(record: FileRecord) -> Self {
        let size = record.size();
        let FileRecord { file, name, stripe, pool, buffering, protection, .. } = record;
        Self {
            file,
            stripe,
            pool,
            protection: Cell::new(protection),
            name: RefCell::new(name),
            buffering: Cell::new(buffering),
            size: Cell::new(size),
            settled_size: Cell::new(size),
            users: Cell::new(0),
            is_nameless: Cell::new(false),
            modified: Cell::default(),
            is_modified: Cell::new(false),
            version: Cell::new(0),
            is_measured: Cell::new(false),
            tail_is_clean: Cell::new(true),
            is_changing: Cell::new(false),
            changes: Cell::new(0),
            changed: Signal::default(),
        }
    }

    /// Tells if a record is of this file, whatever its name, size and buffering.
    pub(crate) fn is_same_file(&self, record: &FileRecord) -> bool {
        let FileRecord { file, stripe, pool, protection, .. } = record;
        let is_placed_alike = self.stripe == *stripe && self.pool == *pool;
        self.file == *file && is_placed_alike && self.protection() == *protection
    }

    /// Returns its record.
    pub(crate) fn record(&self) -> FileRecord {
        let FileSize { cuts, bytes } = self.size();
        FileRecord {
            file: self.file,
            name: self.name().clone(),
            bytes,
            cuts,
            stripe: self.stripe.clone(),
            pool: self.pool.clone(),
            buffering: self.buffering(),
            protection: self.protection(),
        }
    }

    /// Takes the name and buffering of the client that opened it last.
    pub(crate) fn opened_as(&self, record: &FileRecord) {
        self.name.borrow_mut().clone_from(&record.name);
        self.buffering.set(record.buffering);
    }

    pub(crate) fn protection(&self) -> Protection {
        self.protection.get()
    }

    /// Protects the file from now on, or ceases to.
    pub(crate) fn protect(&self, protection: Protection) {
        self.protection.set(protection);
    }

    pub(crate) fn name(&self) -> Ref<'_, String> {
        self.name.borrow()
    }

    pub(crate) fn buffering(&self) -> Buffering {
        self.buffering.get()
    }

    pub(crate) fn size(&self) -> FileSize {
        self.size.get()
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.size.get().bytes
    }

    /// Returns the bytes of the file in a block: fewer in the last one, none beyond.
    pub(crate) fn block_range(&self, block: u64) -> ByteRange {
        self.stripe.block_range(block, self.bytes())
    }

    /// Number of bytes in a block.
    pub(crate) fn block_length(&self, block: u64) -> u64 {
        self.block_range(block).length()
    }

    /// Offset of a block in the object on its disk, in bytes.
    pub(crate) fn disk_offset(&self, block: u64) -> u64 {
        self.stripe.locate(block).slot * self.stripe.block_bytes
    }

    /// Returns the server that holds a block.
    pub(crate) fn server_of(&self, block: u64) -> ServerId {
        self.pool.server(self.stripe.locate(block).server)
    }

    /// Returns the number of `server` among the file's servers, as its stripe numbers them.
    pub(crate) fn place_of(&self, server: ServerId) -> Option<ServerId> {
        self.pool.place_of(server, self.stripe.servers)
    }

    /// Returns the fault of bytes beyond the end.
    pub(crate) fn past_end(&self) -> Fault {
        Fault::PastEnd { file: self.name().clone(), bytes: self.bytes() }
    }

    /// Checks that an access, which may come from anyone, can be carried out on it.
    pub(crate) fn check_access(&self, direction: Direction, access: &Access) -> Result<(), Fault> {
        match check_access(direction, access, self.bytes()) {
            Err(_) if check_access(direction, access, BYTES_MAX).is_ok() => Err(self.past_end()),
            checked => checked,
        }
    }

    /// Time of the last change at this server.
    pub(crate) fn modified(&self) -> Timestamp {
        self.modified.get()
    }

    /// Returns the time of the last change if there was one since the first client opened it.
    pub(crate) fn modified_since_open(&self) -> Option<Timestamp> {
        self.is_modified.get().then(|| self.modified.get())
    }

    /// Notes a change. No two changes of a file have the same time.
    pub(crate) fn changed_at(&self, now: Timestamp) {
        self.set_modified(self.modified.get().advanced_to(now));
    }

    /// Sets the time of the last change.
    pub(crate) fn set_modified(&self, modified: Timestamp) {
        self.modified.set(modified);
        self.is_modified.set(true);
        self.note_change();
    }

    /// Number of times that it was changed, or its time was set.
    pub(crate) fn version(&self) -> u64 {
        self.version.get()
    }

    /// Counts a change.
    pub(crate) fn note_change(&self) {
        self.version.update(|version| version + 1);
    }

    /// Learns the time of the data on a disk.
    pub(crate) fn learn_modified(&self, modified: Timestamp) {
        self.modified.set(self.modified.get().max(modified));
    }

    /// Returns the size for inspection: a cut counts when it is complete.
    pub(crate) fn settled_size(&self) -> FileSize {
        self.settled_size.get()
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.is_changing.get()
    }

    /// Waits until no other task changes the size.
    pub(crate) async fn begin_change(&self) -> Changing<'_> {
        self.changed.until(|| (!self.is_changing.replace(true)).then_some(())).await;
        Changing(self)
    }
}

impl Changing<'_> {
    /// Sets the size.
    pub(crate) fn set_size(&self, size: FileSize) {
        self.0.size.set(size);
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.is_changing.set(false);
        if self.0.tail_is_clean.get() {
            self.0.settled_size.set(self.0.size());
        }
        self.0.changed.notify();
    }
}
