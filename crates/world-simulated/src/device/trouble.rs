//! What can go wrong with a disk: it is slow or fails for a while, or it loses power before what
//! was written is on the medium.
//!
//! Invariants: what a sync has returned for is not touched again; of any other write, the seed
//! alone decides what a power failure leaves. A disk for which nothing is planned keeps none of
//! this.

use super::{Device, SimulatedDisk};
use crate::machine::next_random;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use units::{Duration, FileId, Instant};
use world::DiskError;
use world::payload::Kind;

/// The state of a disk for which faults are planned.
pub(super) struct Trouble<P> {
    random: Cell<u64>,
    /// Every request takes so many times as long.
    times: Cell<u32>,
    fails: Cell<bool>,
    /// When the last of the requests that took longer ends: none that came later ends before.
    busy_until: Cell<Instant>,
    /// Writes that no sync covers, by the order in which they began.
    unsynced: RefCell<BTreeMap<u64, Unsynced<P>>>,
    begun: Cell<u64>,
}

/// A write that is not on the medium for certain.
struct Unsynced<P> {
    object: FileId,
    offset: u64,
    payload: P,
    /// What it has overwritten, and where the object ended; none while it is under way.
    before: Option<(P, u64)>,
}

impl<P: Kind> SimulatedDisk<P> {
    /// From now on keeps what a power failure needs; the seed decides what one leaves.
    pub(crate) fn expect_trouble(&self, seed: u64) {
        self.0.trouble.get_or_init(|| {
            Box::new(Trouble {
                random: Cell::new(seed),
                times: Cell::new(1),
                fails: Cell::new(false),
                busy_until: Cell::new(Instant::START),
                unsynced: RefCell::default(),
                begun: Cell::new(0),
            })
        });
    }

    /// Every request from now on takes `times` as long; 1 is as ever.
    pub(crate) fn set_slow(&self, times: u32) {
        if let Some(trouble) = self.0.trouble.get() {
            trouble.times.set(times.max(1));
        }
    }

    /// Whether requests that end from now on fail.
    pub(crate) fn set_failing(&self, fails: bool) {
        if let Some(trouble) = self.0.trouble.get() {
            trouble.fails.set(fails);
        }
    }

    /// Each write that no sync covers is now there, or not, or a part of it is.
    pub(crate) fn lose_power(&self) {
        let device = &*self.0;
        let Some(trouble) = device.trouble.get() else { return };
        let unsynced = std::mem::take(&mut *trouble.unsynced.borrow_mut());
        for write in unsynced.values().rev() {
            if let Some((before, end)) = &write.before {
                device.with_object(write.object, |object| {
                    object.contents.write(write.offset, before.clone());
                    object.contents.truncate(*end);
                });
            }
        }
        for write in unsynced.into_values() {
            let kept = trouble.draw_kept(write.offset, write.payload.length(), device.sector_bytes);
            device.put_part(&write, kept);
        }
    }
}

impl<P: Kind> Trouble<P> {
    fn below(&self, limit: u64) -> u64 {
        next_random(&self.random) % limit
    }

    /// Which part of an interrupted write is on the medium, relative to its start: all, none, or
    /// what lies on one side of the beginning of a sector.
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

    /// What has been written to an object and is not on the medium for certain.
    pub(super) fn completed(&self, object: FileId) -> Vec<u64> {
        let unsynced = self.unsynced.borrow();
        let of_object = unsynced.iter().filter(|(_, write)| write.object == object);
        of_object.filter(|(_, write)| write.before.is_some()).map(|(number, _)| *number).collect()
    }

    /// These writes are on the medium.
    pub(super) fn synced(&self, completed: Vec<u64>) {
        let mut unsynced = self.unsynced.borrow_mut();
        for number in completed {
            unsynced.remove(&number);
        }
    }

    /// The object is gone, and what was written to it.
    pub(super) fn removed(&self, object: FileId) {
        self.unsynced.borrow_mut().retain(|_, write| write.object != object);
    }
}

/// A write under way. Given up, it may be done or not, as a device that has the command decides.
struct Writing<'a, P: Kind> {
    device: &'a Device<P>,
    trouble: &'a Trouble<P>,
    number: u64,
}

impl<'a, P: Kind> Writing<'a, P> {
    fn begin(
        device: &'a Device<P>,
        trouble: &'a Trouble<P>,
        (object, offset): (FileId, u64),
        payload: P,
    ) -> Self {
        let number = trouble.begun.get();
        trouble.begun.set(number + 1);
        let write = Unsynced { object, offset, payload, before: None };
        trouble.unsynced.borrow_mut().insert(number, write);
        Self { device, trouble, number }
    }

    /// The write has been served; of one that failed, there may be any part.
    fn end(self, is_done: bool) {
        self.complete(|trouble, write, sector_bytes| match is_done {
            true => 0..write.payload.length(),
            false => trouble.draw_kept(write.offset, write.payload.length(), sector_bytes),
        });
    }

    /// Puts into the object what `kept` says of the payload, unless power was lost meanwhile.
    fn complete(&self, kept: impl FnOnce(&Trouble<P>, &Unsynced<P>, u64) -> Range<u64>) {
        let begun = self.trouble.unsynced.borrow_mut().remove(&self.number);
        let Some(mut write) = begun.filter(|write| write.before.is_none()) else { return };
        let kept = kept(self.trouble, &write, self.device.sector_bytes);
        if kept.is_empty() {
            return;
        }
        write.payload = write.payload.slice(kept.start, kept.end - kept.start);
        write.offset += kept.start;
        let length = write.payload.length();
        let before = self.device.with_object(write.object, |object| {
            let before = object.contents.read(write.offset, length);
            let end = object.contents.end();
            object.contents.write(write.offset, write.payload.clone());
            (before, end)
        });
        write.before = Some(before);
        self.trouble.unsynced.borrow_mut().insert(self.number, write);
    }
}

impl<P: Kind> Drop for Writing<'_, P> {
    fn drop(&mut self) {
        let is_under_way = {
            let unsynced = self.trouble.unsynced.borrow();
            unsynced.get(&self.number).is_some_and(|write| write.before.is_none())
        };
        if is_under_way {
            self.complete(|trouble, write, _| 0..trouble.below(2) * write.payload.length());
        }
    }
}

impl<P: Kind> Device<P> {
    /// A request that began at `begun` has been served; it ends later where the disk is slow, and
    /// with an error where it fails.
    pub(super) async fn suffer(
        &self,
        trouble: &Trouble<P>,
        begun: Instant,
        operation: &str,
    ) -> Result<(), DiskError> {
        let now = self.engine.now();
        let longer = now.since(begun).as_ns().saturating_mul(u64::from(trouble.times.get() - 1));
        let until = (now + Duration::from_ns(longer)).max(trouble.busy_until.get());
        if until > now {
            trouble.busy_until.set(until);
            self.engine.sleep_until(until).await;
        }
        trouble.check(self, operation)
    }

    pub(super) async fn write_in_trouble(
        &self,
        trouble: &Trouble<P>,
        (object, offset): (FileId, u64),
        payload: P,
    ) -> Result<(), DiskError> {
        let range = (offset, payload.length());
        let writing = Writing::begin(self, trouble, (object, offset), payload);
        let served = self.serve(object, range, false).await;
        writing.end(served.is_ok());
        served
    }

    fn put_part(&self, write: &Unsynced<P>, kept: Range<u64>) {
        if !kept.is_empty() {
            let part = write.payload.slice(kept.start, kept.end - kept.start);
            self.with_object(write.object, |object| {
                object.contents.write(write.offset + kept.start, part);
            });
        }
    }
}

impl<P: Kind> Trouble<P> {
    /// Waits as long as a slow disk is busy.
    pub(super) async fn wait(&self, device: &Device<P>) {
        if self.busy_until.get() > device.engine.now() {
            device.engine.sleep_until(self.busy_until.get()).await;
        }
    }

    /// Fails where the disk does.
    pub(super) fn check(&self, device: &Device<P>, operation: &str) -> Result<(), DiskError> {
        match self.fails.get() {
            true => Err(device.failed(operation, "the device reports an error")),
            false => Ok(()),
        }
    }
}
