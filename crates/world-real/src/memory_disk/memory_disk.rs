//! The disk: its objects, by number.
#![allow(unsafe_code)]

use super::chunk::{Chunk, Times};
use super::memory::{DiskMemory, memory};
use super::object::Object;
use super::part;
use crate::disk::{Failure, WriteBackState};
use crate::memory::{RealMemory, RealPayload};
use crate::timers::timestamp;
use rustix::io::Errno;
use std::collections::BTreeMap;
use units::{ByteRange, FileId, Timestamp};
use world::{Memory, ObjectMetadata, Payload, Space};

/// Largest object, so that no offset overflows.
const OBJECT_BYTES_MAX: u64 = 1 << 62;

/// Maximum bytes of one read; a larger read is refused as invalid.
const READ_BYTES_MAX: u64 = 1 << 30;

/// Maximum number of objects without bytes whose time is kept.
const TIMES_MAX: usize = 1 << 16;

/// Disk in the memory of this process.
pub(crate) struct MemoryDisk {
    memory: &'static DiskMemory,
    number: u32,
    objects: BTreeMap<FileId, Object>,
    /// Times that were set of objects that have no bytes yet.
    times: BTreeMap<FileId, Timestamp>,
    /// Objects whose last writes failed.
    failed: BTreeMap<FileId, WriteBackState>,
}

impl MemoryDisk {
    /// Opens disk `number` of the memory of this process, with the objects that an earlier process
    /// left. `None` if there is no memory for disks.
    pub(crate) fn open(number: u32) -> Option<Self> {
        let memory = memory()?;
        let mut left = memory.take_left(number);
        left.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.sequence));
        let mut objects = BTreeMap::new();
        for (unit, entry) in left {
            // SAFETY: an entry is of a whole part, and each is left to one disk, once.
            let part = unsafe { part::at(memory, unit, entry.order) };
            let (id, written) = (FileId(entry.object), Timestamp::from_ns(entry.written_ns));
            let set = Some(Timestamp::from_ns(entry.set_ns)).filter(|_| entry.set_ns > 0);
            let times = Times { written, set };
            let object = objects.entry(id);
            let object = object.or_insert_with(|| Object::new(memory, number, id, times));
            object.restore(Chunk::left(memory, unit, &entry, part), times);
        }
        let (times, failed) = (BTreeMap::new(), BTreeMap::new());
        Some(Self { memory, number, objects, times, failed })
    }

    pub(crate) fn metadata(&self, object: FileId) -> Option<ObjectMetadata> {
        let found = self.objects.get(&object)?;
        Some(ObjectMetadata { length: found.length(), modified: found.modified() })
    }

    pub(crate) fn set_modified(&mut self, object: FileId, modified: Timestamp) {
        if let Some(found) = self.objects.get_mut(&object) {
            return found.set_modified(modified);
        }
        self.times.insert(object, modified);
        if self.times.len() > TIMES_MAX {
            self.times.pop_first();
        }
    }

    pub(crate) fn read(
        &self,
        object: FileId,
        offset: u64,
        length: u64,
    ) -> Result<RealPayload, Failure> {
        let range = range_of(offset, length)?;
        if length > READ_BYTES_MAX {
            return Err(Errno::INVAL.into());
        }
        match self.objects.get(&object).filter(|_| length > 0) {
            Some(object) => object.read(range),
            None => {
                let memory = RealMemory::new(length as usize);
                memory.bytes_mut().fill(0);
                Ok(memory.freeze())
            }
        }
    }

    pub(crate) fn write(
        &mut self,
        object: FileId,
        offset: u64,
        payload: &RealPayload,
    ) -> Result<(), Failure> {
        let range = range_of(offset, payload.length())?;
        if range.is_empty() {
            return Ok(());
        }
        let (now, memory, number) = (timestamp(), self.memory, self.number);
        let set = self.times.remove(&object);
        let times = Times { written: now, set };
        let found = self.objects.entry(object);
        let found = found.or_insert_with(|| Object::new(memory, number, object, times));
        let written = found.write(range, payload, now);
        if written.is_err() && found.is_empty() {
            self.objects.remove(&object);
        }
        match &written {
            Ok(()) => {
                if let Some(failed) = self.failed.get_mut(&object) {
                    failed.wrote(range);
                }
            }
            // What is damaged stays so, and each read tells it.
            Err(Failure::Corrupt(..)) => {}
            Err(failure) => {
                self.failed.entry(object).or_default().write_failed(range, failure.clone());
            }
        }
        written
    }

    /// Succeeds if no write has failed: what was written is where it stays.
    pub(crate) fn sync(&mut self, object: FileId) -> Result<(), Failure> {
        let Some(failed) = self.failed.get_mut(&object) else { return Ok(()) };
        let synced = failed.synced();
        if failed.is_settled() {
            self.failed.remove(&object);
        }
        synced
    }

    pub(crate) fn truncate(&mut self, object: FileId, length: u64) -> Result<(), Failure> {
        let now = timestamp();
        if let Some(object) = self.objects.get_mut(&object) {
            object.truncate(length.min(OBJECT_BYTES_MAX), now)?;
        }
        if let Some(failed) = self.failed.get_mut(&object) {
            failed.truncated(length);
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, object: FileId) {
        self.objects.remove(&object);
        self.times.remove(&object);
        self.failed.remove(&object);
    }

    pub(crate) fn space(&self) -> Space {
        let capacity_bytes = self.memory.capacity();
        let free_bytes = capacity_bytes.saturating_sub(self.memory.used());
        Space { capacity_bytes, free_bytes }
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        // Objects that are dropped are removed. The next process finds these.
        std::mem::forget(std::mem::take(&mut self.objects));
    }
}

/// Returns the range of a request, if an object can have it.
fn range_of(offset: u64, length: u64) -> Result<ByteRange, Failure> {
    let range = ByteRange::checked_at(offset, length).filter(|range| range.end <= OBJECT_BYTES_MAX);
    range.ok_or(Errno::INVAL.into())
}
