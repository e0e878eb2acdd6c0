//! Changes of parity that the disks do not have yet: the changes of all pieces of a row come to the
//! server with its parity, which is read and written once for all of them.
//!
//! Invariants:
//! - They are lost with the server, as what a disk has not stored. The servers that sent them count
//!   on what they have sent after a sync only.
//! - Those of one object have no byte in common, and change while its turn is held.

use super::spans::overlap;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::{ByteRange, DiskId, FileId};
use world::Payload;

/// First byte of a change: file, disk, and offset in the object.
pub(super) type PendingKey = (FileId, DiskId, u64);

/// Change of a range of parity.
#[derive(Clone)]
pub(super) struct Pending<P> {
    /// Difference to what the disk has, or what it is to have.
    pub(super) bytes: P,
    /// True if the disk may have any of it, because a write has failed: then it is what the disk is
    /// to have.
    pub(super) is_whole: bool,
}

/// Change that is being written. If it is dropped before its [end](Writing::end), it is pending.
pub(super) struct Writing<'a, P: Payload> {
    pending: &'a PendingParity<P>,
    key: PendingKey,
    change: Option<Pending<P>>,
}

impl<P: Payload> Writing<'_, P> {
    /// The change.
    pub(super) fn change(&mut self) -> &mut Pending<P> {
        self.change.as_mut().expect("it has not ended")
    }

    /// Ends it: the disk has the change.
    pub(super) fn end(mut self) {
        self.change = None;
    }
}

impl<P: Payload> Drop for Writing<'_, P> {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            self.pending.put(self.key, change);
        }
    }
}

/// Changes of parity at one server.
pub(super) struct PendingParity<P> {
    /// Changes, with their numbers in the order.
    changes: RefCell<BTreeMap<PendingKey, (u64, Pending<P>)>>,
    /// Keys in the order in which they are to be written.
    order: RefCell<BTreeMap<u64, PendingKey>>,
    next: Cell<u64>,
    bytes: Cell<u64>,
    /// Number of bytes with which the oldest are written before others are added.
    bytes_max: u64,
}

impl<P: Payload> PendingParity<P> {
    pub(super) fn new(bytes_max: u64) -> Self {
        let (changes, order) = (RefCell::default(), RefCell::default());
        let (next, bytes) = (Cell::new(0), Cell::new(0));
        Self { changes, order, next, bytes, bytes_max }
    }

    /// True if so many more bytes are too many.
    pub(super) fn is_full(&self, bytes: u64) -> bool {
        let held = self.bytes.get();
        held > 0 && held + bytes > self.bytes_max
    }

    /// Number of bytes of all changes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Adds a difference to the change of the same range, if there is one.
    pub(super) fn add(&self, key: PendingKey, difference: P) {
        let known = self.take(key);
        debug_assert!(
            known.as_ref().is_none_or(|known| known.bytes.length() == difference.length()),
            "ranges that overlap are written before"
        );
        let (bytes, is_whole) = match known {
            Some(known) => (known.bytes.xor(&difference), known.is_whole),
            None => (difference, false),
        };
        self.put(key, Pending { bytes, is_whole });
    }

    /// Begins to write a change, if there is one.
    pub(super) fn begin(&self, key: PendingKey) -> Option<Writing<'_, P>> {
        self.take(key).map(|change| Writing { pending: self, key, change: Some(change) })
    }

    /// Begins to write what a range is to have, of which no change is pending.
    pub(super) fn begin_whole(&self, key: PendingKey, bytes: P) -> Writing<'_, P> {
        Writing { pending: self, key, change: Some(Pending { bytes, is_whole: true }) }
    }

    /// Puts a change where none is.
    fn put(&self, key: PendingKey, change: Pending<P>) {
        let number = self.next.replace(self.next.get() + 1);
        self.bytes.update(|bytes| bytes + change.bytes.length());
        self.changes.borrow_mut().insert(key, (number, change));
        self.order.borrow_mut().insert(number, key);
    }

    /// Takes a change out.
    pub(super) fn take(&self, key: PendingKey) -> Option<Pending<P>> {
        let (number, taken) = self.changes.borrow_mut().remove(&key)?;
        self.order.borrow_mut().remove(&number);
        self.bytes.update(|bytes| bytes - taken.bytes.length());
        Some(taken)
    }

    /// Changes of an object that have a byte in common with a range, with their ranges.
    pub(super) fn overlapping(
        &self,
        (file, disk): (FileId, DiskId),
        range: ByteRange,
    ) -> Vec<(PendingKey, ByteRange)> {
        let changes = self.changes.borrow();
        let before = changes.range((file, disk, 0)..(file, disk, range.end));
        let ranges =
            before.map(|(key, (_, change))| (*key, ByteRange::at(key.2, change.bytes.length())));
        ranges.filter(|(_, found)| overlap(*found, range)).collect()
    }

    /// Key of the oldest change.
    pub(super) fn oldest(&self) -> Option<PendingKey> {
        self.order.borrow().first_key_value().map(|(_, key)| *key)
    }

    /// Number of changes.
    pub(super) fn count(&self) -> usize {
        self.changes.borrow().len()
    }

    /// Forgets the changes of a file.
    pub(super) fn forget(&self, file: FileId) {
        let all = (file, DiskId(0), 0)..=(file, DiskId(u32::MAX), u64::MAX);
        let keys: Vec<_> = self.changes.borrow().range(all).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| _ = self.take(key));
    }
}

#[cfg(test)]
mod tests {
    //! Proves: changes of one range become one; the oldest are told first; what is taken is gone.
    use super::*;
    use world::payload::Bytes;

    #[test]
    fn changes_of_one_range_become_one() {
        let pending = PendingParity::<Bytes>::new(100);
        let key = |file, offset| (FileId(file), DiskId(0), offset);
        let bytes = |value: u8| Bytes::from(vec![value; 4]);
        pending.add(key(1, 8), bytes(1));
        pending.add(key(2, 0), bytes(7));
        pending.add(key(1, 8), bytes(6));
        assert_eq!((pending.count(), pending.bytes.get()), (2, 8));
        let found = pending.overlapping((FileId(1), DiskId(0)), ByteRange::new(11, 90));
        assert_eq!(found, [(key(1, 8), ByteRange::new(8, 12))]);
        assert!(pending.overlapping((FileId(1), DiskId(0)), ByteRange::new(12, 90)).is_empty());
        assert!(pending.overlapping((FileId(1), DiskId(1)), ByteRange::new(0, 90)).is_empty());
        assert_eq!(pending.oldest(), Some(key(2, 0)), "the other one has changed since");
        drop(pending.begin(key(2, 0)));
        assert_eq!(pending.oldest(), Some(key(1, 8)), "that was tried");
        assert_eq!(pending.take(key(1, 8)).map(|it| it.bytes.to_vec()), Some(vec![7; 4]));
        assert!(pending.take(key(1, 8)).is_none());
        assert_eq!(pending.oldest(), Some(key(2, 0)));
        assert!(!pending.is_full(96) && pending.is_full(97));
        pending.forget(FileId(2));
        assert!(pending.count() == 0 && pending.oldest().is_none());
        assert!(!pending.is_full(1_000), "one always has room");
    }
}
