//! A file that clients have open at a server.
//!
//! Invariants: its size only ever gets greater, in the order of [`FileSize`]; nobody sees bytes
//! that were in a file before it was made shorter, however it is made longer later.

use crate::collective::access_checks::check_access;
use crate::signal::Signal;
use policy::{Access, BYTES_MAX, Buffering, Direction, Pool, Stripe};
use std::cell::{Cell, Ref, RefCell};
use units::{ByteRange, FileId, ServerId};
use wire::{Fault, FileRecord, FileSize};

/// What a server knows of an open file. Requests under way hold it, and all see the same size.
pub(crate) struct OpenFile {
    pub(crate) file: FileId,
    /// How its blocks map to its servers and their disks.
    pub(crate) stripe: Stripe,
    pool: Pool,
    /// As whoever opened it last knew it.
    name: RefCell<String>,
    buffering: Cell<Buffering>,
    size: Cell<FileSize>,
    /// Its size when no change was under way, nor one that had failed.
    settled_size: Cell<FileSize>,
    /// Clients that have it open.
    pub(crate) users: Cell<u32>,
    /// Whether it is to go when nobody has it open any more: another has its name.
    pub(crate) is_replaced: Cell<bool>,
    /// Whether it is known to reach as far as what this server has of it.
    pub(crate) is_measured: Cell<bool>,
    /// Whether nothing is left on the disks of what was once beyond its end.
    pub(crate) tail_is_clean: Cell<bool>,
    is_changing: Cell<bool>,
    changed: Signal,
}

/// The right to change the size of a file; over when dropped.
pub(crate) struct Changing<'a>(&'a OpenFile);

impl OpenFile {
    /// A file that nobody has opened yet.
    pub(crate) fn new(record: FileRecord) -> Self {
        let size = record.size();
        let FileRecord { file, name, stripe, pool, buffering, .. } = record;
        Self {
            file,
            stripe,
            pool,
            name: RefCell::new(name),
            buffering: Cell::new(buffering),
            size: Cell::new(size),
            settled_size: Cell::new(size),
            users: Cell::new(0),
            is_replaced: Cell::new(false),
            is_measured: Cell::new(false),
            tail_is_clean: Cell::new(true),
            is_changing: Cell::new(false),
            changed: Signal::default(),
        }
    }

    /// Whether a record is of this file, whatever it says of its name, size and buffering.
    pub(crate) fn is_same_file(&self, record: &FileRecord) -> bool {
        self.file == record.file && self.stripe == record.stripe && self.pool == record.pool
    }

    /// Whoever opens it last says what it is called and how it is buffered.
    pub(crate) fn opened_as(&self, record: &FileRecord) {
        self.name.borrow_mut().clone_from(&record.name);
        self.buffering.set(record.buffering);
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

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.size.get().bytes
    }

    /// The bytes of the file in a block; fewer in the last one, none beyond.
    pub(crate) fn block_range(&self, block: u64) -> ByteRange {
        self.stripe.block_range(block, self.bytes())
    }

    /// Bytes in a block.
    pub(crate) fn block_length(&self, block: u64) -> u64 {
        self.block_range(block).length()
    }

    /// Where a block begins in the object on its disk, in bytes.
    pub(crate) fn disk_offset(&self, block: u64) -> u64 {
        self.stripe.locate(block).slot * self.stripe.block_bytes
    }

    /// The server that holds a block.
    pub(crate) fn server_of(&self, block: u64) -> ServerId {
        self.pool.server(self.stripe.locate(block).server)
    }

    /// Which of the file's servers `server` is, as its stripe numbers them.
    pub(crate) fn place_of(&self, server: ServerId) -> Option<ServerId> {
        self.pool.place_of(server, self.stripe.servers)
    }

    /// The fault of bytes that it does not have.
    pub(crate) fn past_end(&self) -> Fault {
        Fault::PastEnd { file: self.name().clone(), bytes: self.bytes() }
    }

    /// Whether an access, which may come from anyone, can be carried out on it.
    pub(crate) fn check_access(&self, direction: Direction, access: &Access) -> Result<(), Fault> {
        match check_access(direction, access, self.bytes()) {
            Err(_) if check_access(direction, access, BYTES_MAX).is_ok() => Err(self.past_end()),
            checked => checked,
        }
    }

    /// Its size for those who only look: a cut counts when it is made.
    pub(crate) fn settled_size(&self) -> FileSize {
        self.settled_size.get()
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.is_changing.get()
    }

    /// Waits until nobody else changes its size.
    pub(crate) async fn begin_change(&self) -> Changing<'_> {
        self.changed.until(|| (!self.is_changing.replace(true)).then_some(())).await;
        Changing(self)
    }
}

impl Changing<'_> {
    /// From now on it is this long.
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
