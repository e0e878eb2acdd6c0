//! Faults of a disk: it is slow or fails for a while, loses power before writes are durable, or
//! finds bytes damaged.
//!
//! Invariants:
//!
//! - A power failure does not touch writes that a sync has covered.
//! - For any other write, the seed alone decides what a power failure leaves.
//! - A disk without planned faults stores none of this.

use super::objects::Objects;
use crate::engine::Engine;
use crate::random::next_random;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use units::{Duration, FileId, Instant};
use world::payload::Kind;
use world::{Damage, DiskError};

/// State of a disk for which faults are planned.
pub(super) struct DiskFaults<P> {
    random: Cell<u64>,
    /// Factor by which every request takes longer.
    times: Cell<u32>,
    fails: Cell<bool>,
    /// End of the last request that took longer: no later request ends before it.
    busy_until: Cell<Instant>,
    /// Writes that no sync covers, in the order in which they began.
    unsynced: RefCell<BTreeMap<u64, Unsynced<P>>>,
    begun: Cell<u64>,
    /// Ranges of objects that have lost what they had.
    damaged: RefCell<Vec<(FileId, Range<u64>)>>,
}

/// A write that may not be durable yet.
struct Unsynced<P> {
    object: FileId,
    offset: u64,
    payload: P,
    /// Overwritten data, and the previous end of the object; `None` while the write is under way.
    before: Option<(P, u64)>,
}

impl<P: Kind> DiskFaults<P> {
    /// Creates the state of a disk without faults yet; `seed` decides what a power failure leaves.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Cell::new(seed),
            times: Cell::new(1),
            fails: Cell::new(false),
            busy_until: Cell::new(Instant::START),
            unsynced: RefCell::default(),
            begun: Cell::new(0),
            damaged: RefCell::default(),
        }
    }

    pub(super) fn set_slow(&self, times: u32) {
        self.times.set(times.max(1));
    }

    pub(super) fn set_failing(&self, fails: bool) {
        self.fails.set(fails);
    }

    /// Damages bytes of an object until they are written again.
    pub(super) fn damage(&self, object: FileId, range: Range<u64>) {
        self.damaged.borrow_mut().push((object, range));
    }

    /// Fails if some bytes of a range of an object are damaged.
    pub(super) fn check_damage(
        &self,
        objects: &Objects<P>,
        object: FileId,
        range: Range<u64>,
    ) -> Result<(), DiskError> {
        let damaged = self.damaged.borrow();
        let mut damaged = damaged
            .iter()
            .filter(|(of, one)| *of == object && one.start < range.end && range.start < one.end);
        match damaged.next() {
            None => Ok(()),
            Some((_, found)) => {
                let (start, end) = (found.start.max(range.start), found.end.min(range.end));
                let (disk, offset, length) = (objects.disk_name(), start, end - start);
                let damage = Damage::Mismatch;
                Err(DiskError::Corrupt { disk, object, offset, length, damage })
            }
        }
    }

    /// Notes that a range of an object was written or freed.
    pub(super) fn renewed(&self, object: FileId, range: Range<u64>) {
        let mut damaged = self.damaged.borrow_mut();
        let (of_object, mut left): (Vec<_>, Vec<_>) =
            damaged.drain(..).partition(|(of, _)| *of == object);
        for (_, one) in of_object {
            let before = one.start..one.end.min(range.start);
            let behind = one.start.max(range.end)..one.end;
            let kept = [before, behind].into_iter().filter(|part| !part.is_empty());
            left.extend(kept.map(|part| (object, part)));
        }
        *damaged = left;
    }

    /// Forgets all that was written or damaged.
    pub(super) fn replace(&self) {
        self.unsynced.borrow_mut().clear();
        self.damaged.borrow_mut().clear();
    }

    /// Makes each write that no sync covers complete, absent or torn, as the seed decides.
    pub(super) fn lose_power(&self, objects: &Objects<P>) {
        let unsynced = std::mem::take(&mut *self.unsynced.borrow_mut());
        for write in unsynced.values().rev() {
            if let Some((before, end)) = &write.before {
                objects.with(write.object, |object| {
                    object.contents.write(write.offset, before.clone());
                    object.contents.truncate(*end);
                });
            }
        }
        for write in unsynced.into_values() {
            let kept = self.draw_kept(write.offset, write.payload.length(), objects.sector_bytes);
            write.put_part(objects, kept);
        }
    }
}

impl<P: Kind> DiskFaults<P> {
    fn below(&self, limit: u64) -> u64 {
        next_random(&self.random) % limit
    }

    /// Draws the part of an interrupted write that is on the medium, relative to its start: all,
    /// nothing, or one side of a sector boundary.
    fn draw_kept(&self, offset: u64, length: u64, sector_bytes: u64) -> Range<u64> {
        let boundaries = (offset + length).div_ceil(sector_bytes) - (offset / sector_bytes + 1);
        match self.below(4) {
            0 => 0..0,
            1 => 0..length,
            _ if boundaries == 0 => 0..self.below(2) * length,
            side => {
                let sector = offset / sector_bytes + 1 + self.below(boundaries);
                let tear = sector * sector_bytes - offset;
                if side == 2 { 0..tear } else { tear..length }
            }
        }
    }

    /// Returns the completed writes of an object that may not be durable yet.
    pub(super) fn completed(&self, object: FileId) -> Vec<u64> {
        let unsynced = self.unsynced.borrow();
        let of_object = unsynced.iter().filter(|(_, write)| write.object == object);
        of_object.filter(|(_, write)| write.before.is_some()).map(|(number, _)| *number).collect()
    }

    /// Marks writes as durable.
    pub(super) fn synced(&self, completed: Vec<u64>) {
        let mut unsynced = self.unsynced.borrow_mut();
        for number in completed {
            unsynced.remove(&number);
        }
    }

    /// Forgets the writes to a removed object.
    pub(super) fn removed(&self, object: FileId) {
        self.unsynced.borrow_mut().retain(|_, write| write.object != object);
    }
}

/// A write under way. If it is dropped, the seed decides its effect, as with a device that already
/// has the command.
pub(super) struct BegunWrite<'a, P: Kind> {
    objects: &'a Objects<P>,
    faults: &'a DiskFaults<P>,
    number: u64,
}

impl<P: Kind> DiskFaults<P> {
    /// Begins a write, which takes effect when it [ends](BegunWrite::end).
    pub(super) fn begin_write<'a>(
        &'a self,
        objects: &'a Objects<P>,
        (object, offset): (FileId, u64),
        payload: P,
    ) -> BegunWrite<'a, P> {
        let number = self.begun.get();
        self.begun.set(number + 1);
        let write = Unsynced { object, offset, payload, before: None };
        self.unsynced.borrow_mut().insert(number, write);
        BegunWrite { objects, faults: self, number }
    }
}

impl<P: Kind> BegunWrite<'_, P> {
    /// Ends the write. A failed write leaves any part of its data.
    pub(super) fn end(self, is_done: bool) {
        self.complete(|faults, write, sector_bytes| match is_done {
            true => 0..write.payload.length(),
            false => faults.draw_kept(write.offset, write.payload.length(), sector_bytes),
        });
    }

    /// Puts the part of the payload that `kept` names into the object, unless power was lost
    /// meanwhile.
    fn complete(&self, kept: impl FnOnce(&DiskFaults<P>, &Unsynced<P>, u64) -> Range<u64>) {
        let begun = self.faults.unsynced.borrow_mut().remove(&self.number);
        let Some(mut write) = begun.filter(|write| write.before.is_none()) else { return };
        let kept = kept(self.faults, &write, self.objects.sector_bytes);
        if kept.is_empty() {
            return;
        }
        write.payload = write.payload.slice(kept.start, kept.end - kept.start);
        write.offset += kept.start;
        let length = write.payload.length();
        let before = self.objects.with(write.object, |object| {
            let before = object.contents.read(write.offset, length);
            let end = object.contents.end();
            object.contents.write(write.offset, write.payload.clone());
            (before, end)
        });
        write.before = Some(before);
        self.faults.unsynced.borrow_mut().insert(self.number, write);
    }
}

impl<P: Kind> Drop for BegunWrite<'_, P> {
    fn drop(&mut self) {
        let is_under_way = {
            let unsynced = self.faults.unsynced.borrow();
            unsynced.get(&self.number).is_some_and(|write| write.before.is_none())
        };
        if is_under_way {
            self.complete(|faults, write, _| 0..faults.below(2) * write.payload.length());
        }
    }
}

impl<P> Unsynced<P> {
    fn put_part(&self, objects: &Objects<P>, kept: Range<u64>)
    where
        P: Kind,
    {
        if !kept.is_empty() {
            let part = self.payload.slice(kept.start, kept.end - kept.start);
            objects.with(self.object, |object| {
                object.contents.write(self.offset + kept.start, part);
            });
        }
    }
}

impl<P: Kind> DiskFaults<P> {
    /// Ends a request that began at `begun` and has been served: later where the disk is slow, with
    /// an error where it fails.
    pub(super) async fn delay_and_check(
        &self,
        engine: &Engine,
        objects: &Objects<P>,
        begun: Instant,
        operation: &str,
    ) -> Result<(), DiskError> {
        let now = engine.now();
        let longer = now.since(begun).as_ns().saturating_mul(u64::from(self.times.get() - 1));
        let until = (now + Duration::from_ns(longer)).max(self.busy_until.get());
        if until > now {
            self.busy_until.set(until);
            engine.sleep_until(until).await;
        }
        self.check(objects, operation)
    }

    /// Waits as long as a slow disk is busy.
    pub(super) async fn wait(&self, engine: &Engine) {
        if self.busy_until.get() > engine.now() {
            engine.sleep_until(self.busy_until.get()).await;
        }
    }

    /// Returns an error if the disk is failing.
    pub(super) fn check(&self, objects: &Objects<P>, operation: &str) -> Result<(), DiskError> {
        match self.fails.get() {
            true => Err(objects.failed(operation, "the device reports an error")),
            false => Ok(()),
        }
    }
}
