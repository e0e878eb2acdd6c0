//! Extent cache: physical addresses of objects, by which a server sorts its blocks.
//!
//! Invariants:
//!
//! - A lookup does no I/O.
//! - A known address is that of the last query. Unknown addresses sort after all known ones, by
//!   object and offset.

use super::extents::Extent;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::FileId;

/// Maximum number of cached objects; one more clears the cache, which fills again on demand.
const OBJECTS_MAX: usize = 1024;

/// Bits of an unknown address that hold the offset; objects up to 16 TiB sort without overlap.
const OFFSET_BITS: u32 = 44;

/// Mark of an unknown address: no device is that large.
const UNKNOWN: u64 = 1 << 63;

/// Extents of an object at some time.
pub(super) struct ObjectExtents {
    /// Version of the extents, from the disk's thread.
    pub(super) version: u64,
    /// Extents, ascending.
    pub(super) extents: Vec<Extent>,
}

/// Extents of the objects that were queried.
#[derive(Default)]
pub(super) struct ExtentCache(RefCell<BTreeMap<FileId, ObjectExtents>>);

impl ExtentCache {
    /// Returns the address of a byte.
    pub(super) fn address(&self, object: FileId, offset: u64) -> u64 {
        let places = self.0.borrow();
        places.get(&object).and_then(|place| place.address(offset)).unwrap_or_else(|| {
            let within = offset & ((1 << OFFSET_BITS) - 1);
            UNKNOWN | (object.0 << OFFSET_BITS) | within
        })
    }

    /// Returns the version of the cached extents of an object.
    pub(super) fn version(&self, object: FileId) -> Option<u64> {
        self.0.borrow().get(&object).map(|place| place.version)
    }

    /// Caches the extents of an object.
    pub(super) fn learn(&self, object: FileId, place: ObjectExtents) {
        let mut places = self.0.borrow_mut();
        if places.len() >= OBJECTS_MAX && !places.contains_key(&object) {
            places.clear();
        }
        places.insert(object, place);
    }

    /// Removes an object from the cache.
    pub(super) fn forget(&self, object: FileId) {
        self.0.borrow_mut().remove(&object);
    }
}

impl ObjectExtents {
    fn address(&self, offset: u64) -> Option<u64> {
        let after = self.extents.partition_point(|extent| extent.bytes.start <= offset);
        let extent = self.extents.get(after.checked_sub(1)?)?;
        let address = extent.physical.checked_add(offset - extent.bytes.start)?;
        (offset < extent.bytes.end && address < UNKNOWN).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: known bytes sort by physical address, the others after them by object and offset.
    use super::*;
    use units::ByteRange;

    #[test]
    fn known_places_come_first() {
        let places = ExtentCache::default();
        let extent = |start, physical| Extent { bytes: ByteRange::at(start, 10), physical };
        let extents = vec![extent(0, 500), extent(10, 100), extent(30, 300)];
        places.learn(FileId(1), ObjectExtents { version: 1, extents });
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
