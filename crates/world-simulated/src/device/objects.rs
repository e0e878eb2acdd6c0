//! The objects of a disk: their places on the medium, and their contents.

use super::contents::Contents;
use crate::models::layout::{DiskShape, Layout, LayoutError, Placement};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use units::{FileId, Timestamp};
use world::payload::Kind;
use world::{DiskError, ObjectMetadata, Space};

/// The objects of one disk.
pub(super) struct Objects<P: Kind> {
    /// Number of the disk, counted over the machine.
    pub(super) disk: u32,
    pub(super) slot_bytes: u64,
    pub(super) sector_bytes: u64,
    pub(super) layout: Layout,
    pub(super) shape: DiskShape,
    objects: RefCell<BTreeMap<FileId, Object<P>>>,
    /// Times of the last change that were set, and when.
    modified: RefCell<BTreeMap<FileId, (Timestamp, Timestamp)>>,
}

/// One object.
pub(super) struct Object<P> {
    pub(super) placement: Placement,
    first_slot: u64,
    /// One past the highest slot in use, counted from the object's first.
    slots: u64,
    pub(super) contents: Contents<P>,
    /// Time of the last write.
    pub(super) written: Timestamp,
}

impl<P: Kind> Objects<P> {
    /// Creates an empty disk.
    ///
    /// # Errors
    /// Fails when the layout cannot place slots of this size on a disk of this shape.
    pub(super) fn new(
        disk: u32,
        slot_bytes: u64,
        sector_bytes: u64,
        layout: Layout,
        shape: DiskShape,
    ) -> Result<Self, LayoutError> {
        let (objects, modified) = (RefCell::default(), RefCell::default());
        let new = Self { disk, slot_bytes, sector_bytes, layout, shape, objects, modified };
        new.place(0)?;
        Ok(new)
    }

    fn place(&self, first_slot: u64) -> Result<Placement, LayoutError> {
        let block_sectors = self.slot_bytes.div_ceil(self.sector_bytes);
        Placement::new(self.layout, self.shape, block_sectors, first_slot)
    }

    /// Name of the disk in errors.
    pub(super) fn disk_name(&self) -> String {
        format!("simulated disk {}", self.disk)
    }

    /// Returns the error of an operation that failed.
    pub(super) fn failed(&self, operation: &str, cause: &str) -> DiskError {
        let (operation, cause) = (operation.to_owned(), cause.to_owned());
        DiskError::Failed { disk: self.disk_name(), operation, cause }
    }

    /// Calls `act` with the object. A new object begins after all slots in use.
    pub(super) fn with<R>(&self, file: FileId, act: impl FnOnce(&mut Object<P>) -> R) -> R {
        let objects = &mut *self.objects.borrow_mut();
        if let Some(object) = objects.get_mut(&file) {
            return act(object);
        }
        let first_slot = slots_in_use(objects);
        let placement = self.place(first_slot);
        let placement = placement.expect("a layout that was accepted places every object");
        let contents = Contents::new(self.disk, file.0);
        let written = Timestamp::default();
        let object = Object { placement, first_slot, slots: 0, contents, written };
        act(objects.entry(file).or_insert(object))
    }

    /// Cuts an object, if it exists, to `length` bytes.
    pub(super) fn truncate(&self, file: FileId, length: u64) {
        if let Some(object) = self.objects.borrow_mut().get_mut(&file) {
            object.slots = object.slots.min(length.div_ceil(self.slot_bytes));
            object.contents.truncate(length);
        }
    }

    /// Removes an object, if it exists.
    pub(super) fn remove(&self, file: FileId) {
        self.objects.borrow_mut().remove(&file);
        self.modified.borrow_mut().remove(&file);
    }

    /// Removes all objects.
    pub(super) fn remove_all(&self) {
        self.objects.borrow_mut().clear();
        self.modified.borrow_mut().clear();
    }

    /// Returns the metadata of an object, if it exists.
    pub(super) fn metadata(&self, file: FileId) -> Option<ObjectMetadata> {
        let objects = self.objects.borrow();
        let object = objects.get(&file)?;
        let modified = self.modified.borrow().get(&file).map(|(modified, _)| *modified);
        let modified = modified.unwrap_or(object.written);
        Some(ObjectMetadata { length: object.contents.end(), modified })
    }

    /// Sets the time of the last change of an object.
    pub(super) fn set_modified(&self, file: FileId, modified: Timestamp, now: Timestamp) {
        self.modified.borrow_mut().insert(file, (modified, now));
    }

    /// Loses the times of objects that were written after a time was set: that of the last write
    /// counts.
    pub(super) fn lose_times(&self) {
        let objects = self.objects.borrow();
        self.modified
            .borrow_mut()
            .retain(|file, (_, set_at)| objects.get(file).is_some_and(|it| it.written <= *set_at));
    }

    /// Capacity and free space of the disk.
    pub(super) fn space(&self) -> Space {
        let capacity_bytes = self.shape.capacity_sectors * self.sector_bytes;
        let used_slots = slots_in_use(&self.objects.borrow());
        let used_bytes = used_slots.saturating_mul(self.slot_bytes);
        Space { capacity_bytes, free_bytes: capacity_bytes.saturating_sub(used_bytes) }
    }

    /// Returns the sectors that a range of bytes touches, as the fewest runs, in the order of the
    /// bytes.
    pub(super) fn sectors(
        &self,
        file: FileId,
        offset: u64,
        length: u64,
    ) -> Result<Vec<Range<u64>>, LayoutError> {
        let slots = offset / self.slot_bytes..(offset + length).div_ceil(self.slot_bytes);
        self.with(file, |object| {
            let mut runs: Vec<Range<u64>> = Vec::new();
            for slot in slots.clone() {
                let first = object.placement.first_sector(slot)?;
                let from = offset.max(slot * self.slot_bytes) % self.slot_bytes;
                let to = (offset + length).min((slot + 1) * self.slot_bytes);
                let to = to - slot * self.slot_bytes;
                let start = first + from / self.sector_bytes;
                let end = first + to.div_ceil(self.sector_bytes);
                match runs.last_mut() {
                    Some(run) if run.end == start => run.end = end,
                    _ => runs.push(start..end),
                }
            }
            object.slots = object.slots.max(slots.end);
            Ok(runs)
        })
    }

    /// Sectors of a range of bytes in a layout that keeps all slots in the order of their numbers.
    pub(super) fn sectors_of_file(&self, file: FileId, offset: u64, length: u64) -> Range<u64> {
        let first = self.with(file, |object| object.first_slot * self.slot_bytes) + offset;
        first / self.sector_bytes..(first + length).div_ceil(self.sector_bytes)
    }
}

/// One past the highest slot that any object has used.
fn slots_in_use<P>(objects: &BTreeMap<FileId, Object<P>>) -> u64 {
    objects.values().map(|object| object.first_slot + object.slots).max().unwrap_or(0)
}
