//! What the node knows of where objects lie: the addresses by which a server sorts its blocks.
//!
//! Invariants: finding an address asks nobody; a known place is where the object lay when it was
//! last located, and unknown ones come after all known ones, by object and offset.

use super::extents::Extent;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::FileId;

/// The most objects whose places are known; when there are more all are forgotten, to be located
/// again.
const OBJECTS_MAX: usize = 1024;

/// Bits of an unknown address that hold the offset; objects up to 16 TiB sort without overlap.
const OFFSET_BITS: u32 = 44;

/// The mark of an unknown address: no device is that large.
const UNKNOWN: u64 = 1 << 63;

/// Where an object lay at some time.
pub(super) struct Place {
    /// What the thread of the disk calls that time.
    pub(super) version: u64,
    /// Ascending.
    pub(super) extents: Vec<Extent>,
}

/// The places of the objects that were located.
#[derive(Default)]
pub(super) struct Places(RefCell<BTreeMap<FileId, Place>>);

impl Places {
    /// The address of a byte.
    pub(super) fn address(&self, object: FileId, offset: u64) -> u64 {
        let places = self.0.borrow();
        places.get(&object).and_then(|place| place.address(offset)).unwrap_or_else(|| {
            let within = offset & ((1 << OFFSET_BITS) - 1);
            UNKNOWN | (object.0 << OFFSET_BITS) | within
        })
    }

    /// The time of what is known of an object.
    pub(super) fn version(&self, object: FileId) -> Option<u64> {
        self.0.borrow().get(&object).map(|place| place.version)
    }

    /// Learns where an object lies.
    pub(super) fn learn(&self, object: FileId, place: Place) {
        let mut places = self.0.borrow_mut();
        if places.len() >= OBJECTS_MAX && !places.contains_key(&object) {
            places.clear();
        }
        places.insert(object, place);
    }

    /// Forgets an object.
    pub(super) fn forget(&self, object: FileId) {
        self.0.borrow_mut().remove(&object);
    }
}

impl Place {
    fn address(&self, offset: u64) -> Option<u64> {
        let after = self.extents.partition_point(|extent| extent.bytes.start <= offset);
        let extent = self.extents.get(after.checked_sub(1)?)?;
        let address = extent.physical.checked_add(offset - extent.bytes.start)?;
        (offset < extent.bytes.end && address < UNKNOWN).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: known bytes sort as they lie, the others after them as they are in their object.
    use super::*;
    use units::ByteRange;

    #[test]
    fn known_places_come_first() {
        let places = Places::default();
        let extent = |start, physical| Extent { bytes: ByteRange::at(start, 10), physical };
        let extents = vec![extent(0, 500), extent(10, 100), extent(30, 300)];
        places.learn(FileId(1), Place { version: 1, extents });
        let mut offsets: Vec<u64> = (0..50).step_by(5).collect();
        offsets.sort_by_key(|offset| places.address(FileId(1), *offset));
        assert_eq!(offsets, [10, 15, 30, 35, 0, 5, 20, 25, 40, 45]);
        assert_eq!(places.address(FileId(1), 32), 302);
        let unknown = [(1, 20), (1, 21), (2, 0), (2, 1 << 40), (3, 5)];
        let addresses = unknown.map(|(object, offset)| places.address(FileId(object), offset));
        assert!(addresses.is_sorted() && addresses[0] > places.address(FileId(1), 0));
        places.forget(FileId(1));
        assert!(places.address(FileId(1), 0) < places.address(FileId(1), 10));
    }
}
