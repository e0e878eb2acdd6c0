//! A disk device: a queue, a model of the mechanism, a share of a bus, and what it remembers.
//!
//! The steps of one request are those of the SCSI bus: the command goes over the bus, the disk
//! disconnects, works, reconnects, and the data goes over the bus. Where there is no bus, only the
//! work is left. Requests wait in the queue of the device, and as many are served at once as its
//! model takes; those for the same place are served in the order of their calls.

mod command_log;
#[cfg(test)]
mod tests;
mod trouble;

use crate::contents::Contents;
use crate::disk_queue::DiskQueue;
use crate::engine::{Engine, Sleep};
use crate::mechanism::Mechanism;
use crate::models::bus::Bus;
use crate::models::disk_model::{Command, DiskModel, Step};
use crate::models::layout::{DiskShape, Layout, LayoutError, Placement};
use crate::models::request_queue::QueueKind;
use command_log::CommandLog;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use trouble::Trouble;
use units::FileId;
use world::payload::Kind;
use world::{Disk, DiskError, Space};

/// What every disk of a machine is.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// What moves the data.
    pub mechanism: Mechanism,
    /// How the slots of an object lie on the disk.
    pub layout: LayoutKind,
    /// Bytes of one slot: the block size of the files.
    pub slot_bytes: u64,
    /// At which angle the disks start.
    pub start: StartAngle,
    /// Which of the requests that wait for a disk is next.
    pub queue: QueueKind,
    /// Commands of a read over its bus besides the first. Disk-directed reads of TOCS 1997 have
    /// one: the host has the disk fetch a block into its buffer, then asks for the data ("three bus
    /// transactions", footnote 3; caching has two).
    pub prefetch_commands: u32,
}

/// At which angle disks start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartAngle {
    /// All at the angle of their first sector.
    Zero,
    /// All at one random angle.
    Common,
    /// Each at a random angle of its own.
    Independent,
}

/// How the slots of an object lie on a disk; random ones differ from disk to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutKind {
    /// One after the other.
    Contiguous,
    /// Each at a place of its own.
    RandomBlocks,
    /// Consecutive within a track, the tracks anywhere.
    RandomTracks,
}

/// A handle to one disk; clones are handles to the same one.
pub struct SimulatedDisk<P: Kind>(Rc<Device<P>>);

struct Device<P: Kind> {
    engine: Engine,
    number: u32,
    slot_bytes: u64,
    layout: Layout,
    shape: DiskShape,
    sector_bytes: u64,
    /// Where requests wait for their turn; none where the disk takes all at once.
    queue: Option<DiskQueue>,
    queue_kind: QueueKind,
    prefetch_commands: u32,
    /// Shared with the other disks of the node.
    bus: Option<Rc<RefCell<Bus>>>,
    /// The number of its first disk, by which recorders know it.
    bus_number: u32,
    model: RefCell<Box<dyn DiskModel>>,
    objects: RefCell<BTreeMap<FileId, Object<P>>>,
    /// Only where faults are planned.
    trouble: OnceCell<Box<Trouble<P>>>,
}

struct Object<P> {
    placement: Placement,
    first_slot: u64,
    /// One past the highest slot in use, from the object's first.
    slots: u64,
    contents: Contents<P>,
}

impl<P: Kind> Clone for SimulatedDisk<P> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<P: Kind> SimulatedDisk<P> {
    /// `count` disks on one bus, numbered from `first` over the whole machine. `random` gives a
    /// number that differs from disk to disk.
    pub(crate) fn on_one_bus(
        engine: &Engine,
        config: &DeviceConfig,
        first: u32,
        count: u32,
        random: impl Fn(u32) -> u64,
    ) -> Result<Vec<Self>, LayoutError> {
        let bus = config.mechanism.bus().map(|spec| Rc::new(RefCell::new(Bus::new(spec))));
        let disk = |number| {
            let angle = match config.start {
                StartAngle::Zero => 0,
                // No disk has this number.
                StartAngle::Common => random(u32::MAX),
                StartAngle::Independent => random(number),
            };
            Device::new(engine, config, number, (random(number), angle), (bus.clone(), first))
        };
        (first..first + count).map(|number| Ok(Self(Rc::new(disk(number)?)))).collect()
    }
}

impl<P: Kind> SimulatedDisk<P> {
    /// Tells the recorder of what is still going on.
    pub(crate) fn stop_recording(&self) {
        let motions = self.0.model.borrow_mut().end_watch(self.0.engine.now());
        self.0.tell_motions(motions);
    }
}

impl<P: Kind> Device<P> {
    fn new(
        engine: &Engine,
        config: &DeviceConfig,
        number: u32,
        (random, angle): (u64, u64),
        (bus, bus_number): (Option<Rc<RefCell<Bus>>>, u32),
    ) -> Result<Self, LayoutError> {
        let mut model = config.mechanism.build(angle);
        if engine.timeline().is_recorded() {
            model.watch();
        }
        let layout = match config.layout {
            LayoutKind::Contiguous => Layout::Contiguous,
            LayoutKind::RandomBlocks => Layout::RandomBlocks { seed: random },
            LayoutKind::RandomTracks => Layout::RandomTracks { seed: random },
        };
        let device = Self {
            engine: engine.clone(),
            number,
            slot_bytes: config.slot_bytes,
            layout,
            shape: model.shape(),
            sector_bytes: model.sector_bytes(),
            queue: model.commands_max().map(|commands| DiskQueue::new(config.queue, commands)),
            queue_kind: config.queue,
            prefetch_commands: config.prefetch_commands,
            bus,
            bus_number,
            model: RefCell::new(model),
            objects: RefCell::default(),
            trouble: OnceCell::new(),
        };
        device.place(0)?;
        Ok(device)
    }

    fn place(&self, first_slot: u64) -> Result<Placement, LayoutError> {
        let block_sectors = self.slot_bytes.div_ceil(self.sector_bytes);
        Placement::new(self.layout, self.shape, block_sectors, first_slot)
    }

    fn name(&self) -> String {
        format!("simulated disk {}", self.number)
    }

    /// Does `act` with the object, which begins after all slots in use if it is new.
    fn with_object<R>(&self, file: FileId, act: impl FnOnce(&mut Object<P>) -> R) -> R {
        let objects = &mut *self.objects.borrow_mut();
        if let Some(object) = objects.get_mut(&file) {
            return act(object);
        }
        let first_slot = slots_in_use(objects);
        let placement = self.place(first_slot);
        let placement = placement.expect("a layout that was accepted places every object");
        let contents = Contents::new(self.number, file.0);
        let object = Object { placement, first_slot, slots: 0, contents };
        act(objects.entry(file).or_insert(object))
    }

    /// The sectors that the bytes touch, as few runs as they make, in the order of the bytes.
    fn sectors(
        &self,
        file: FileId,
        offset: u64,
        length: u64,
    ) -> Result<Vec<Range<u64>>, LayoutError> {
        let slots = offset / self.slot_bytes..(offset + length).div_ceil(self.slot_bytes);
        self.with_object(file, |object| {
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

    /// Where the bytes would be if all slots lay in the order of their numbers.
    fn sectors_of_file(&self, file: FileId, offset: u64, length: u64) -> Range<u64> {
        let first = self.with_object(file, |object| object.first_slot * self.slot_bytes) + offset;
        first / self.sector_bytes..(first + length).div_ceil(self.sector_bytes)
    }

    /// Carries out one command: sends it, and moves its data in the bursts that the disk asks for.
    async fn carry_out(&self, command: Command) -> Result<(), DiskError> {
        let engine = &self.engine;
        let mut log = CommandLog::begin(self, &command);
        self.over_bus(None, &mut log).await;
        let _command = Abandon { device: self };
        let begun = self.model.borrow_mut().begin(engine.now(), &command);
        let mut step = begun.map_err(|error| self.failed("begin", &error.to_string()))?;
        let mut commands_left = if command.reads { self.prefetch_commands } else { 0 };
        loop {
            log.step(&step);
            match step {
                Step::Burst { from, bytes } => {
                    engine.sleep_until(from).await;
                    while commands_left > 0 {
                        commands_left -= 1;
                        self.over_bus(None, &mut log).await;
                    }
                    self.over_bus(Some(bytes), &mut log).await;
                    step = self.model.borrow_mut().moved(engine.now());
                }
                Step::Complete(at) => {
                    engine.sleep_until(at).await;
                    log.complete();
                    return Ok(());
                }
            }
        }
    }

    /// Takes the bus for `bytes` of data, or for a command: until it is given back. No time passes
    /// where there is no bus.
    fn over_bus(&self, bytes: Option<u64>, log: &mut CommandLog<'_, P>) -> Sleep {
        let now = self.engine.now();
        let Some(bus) = &self.bus else { return self.engine.sleep_until(now) };
        let mut bus = bus.borrow_mut();
        let from = bus.free_at().max(now);
        let until = match bytes {
            Some(bytes) => bus.transfer(now, bytes),
            None => bus.command(now),
        };
        log.on_bus(from, until, bytes);
        self.engine.sleep_until(until)
    }

    fn failed(&self, operation: &str, cause: &str) -> DiskError {
        let (operation, cause) = (operation.to_owned(), cause.to_owned());
        DiskError::Failed { disk: self.name(), operation, cause }
    }

    /// One request from its place in the queue to its end.
    async fn serve(&self, file: FileId, range: (u64, u64), reads: bool) -> Result<(), DiskError> {
        let (offset, length) = range;
        let full = |_: LayoutError| DiskError::NoSpace { disk: self.name() };
        let runs = self.sectors(file, offset, length).map_err(full)?;
        let from = runs.iter().map(|run| run.start).min().unwrap_or_default();
        let to = runs.iter().map(|run| run.end).max().unwrap_or_default();
        let _turn = match &self.queue {
            Some(queue) => {
                let scanned = match self.queue_kind {
                    QueueKind::CscanOfFile => self.sectors_of_file(file, offset, length),
                    QueueKind::Fcfs | QueueKind::Cscan => from..to,
                };
                Some(queue.turn(from..to, scanned).await)
            }
            None => None,
        };
        let begun = self.engine.now();
        for sectors in runs {
            self.carry_out(Command { reads, sectors }).await?;
        }
        if let Some(trouble) = self.trouble.get() {
            let operation = if reads { "read" } else { "write" };
            Box::pin(self.suffer(trouble, begun, operation)).await?;
        }
        Ok(())
    }
}

/// One past the highest slot that any object has used.
fn slots_in_use<P>(objects: &BTreeMap<FileId, Object<P>>) -> u64 {
    objects.values().map(|object| object.first_slot + object.slots).max().unwrap_or(0)
}

/// Tells the disk, when dropped, that nobody waits for its command any more. A command that is
/// complete is not affected.
struct Abandon<'a, P: Kind> {
    device: &'a Device<P>,
}

impl<P: Kind> Drop for Abandon<'_, P> {
    fn drop(&mut self) {
        self.device.model.borrow_mut().abandon();
    }
}

impl<P: Kind> Disk for SimulatedDisk<P> {
    type Payload = P;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        let slot = offset / self.0.slot_bytes;
        let sector = self.0.with_object(object, |object| object.placement.first_sector(slot));
        sector.map_or(u64::MAX, |first| {
            first * self.0.sector_bytes + (offset - slot * self.0.slot_bytes)
        })
    }

    /// Takes no time, but for what a disk that has stopped keeps waiting.
    async fn locate(&self, _object: FileId) {
        if let Some(trouble) = self.0.trouble.get() {
            trouble.wait(&self.0).await;
        }
    }

    async fn length(&self, object: FileId) -> Result<u64, DiskError> {
        if let Some(trouble) = self.0.trouble.get() {
            trouble.check(&self.0, "tell a length")?;
        }
        let objects = self.0.objects.borrow();
        Ok(objects.get(&object).map_or(0, |object| object.contents.end()))
    }

    async fn read(&self, object: FileId, offset: u64, length: u64) -> Result<P, DiskError> {
        if length > 0 {
            self.0.serve(object, (offset, length), true).await?;
        }
        Ok(self.0.with_object(object, |object| object.contents.read(offset, length)))
    }

    async fn write(&self, object: FileId, offset: u64, payload: P) -> Result<(), DiskError> {
        if payload.length() > 0 {
            let range = (offset, payload.length());
            if let Some(trouble) = self.0.trouble.get() {
                return Box::pin(self.0.write_in_trouble(trouble, (object, offset), payload)).await;
            }
            self.0.serve(object, range, false).await?;
        }
        self.0.with_object(object, |object| object.contents.write(offset, payload));
        Ok(())
    }

    async fn sync(&self, object: FileId) -> Result<(), DiskError> {
        let trouble = self.0.trouble.get();
        let completed = trouble.map(|trouble| trouble.completed(object));
        let written_at = self.0.model.borrow().idle_at();
        self.0.engine.sleep_until(written_at).await;
        if let (Some(trouble), Some(completed)) = (trouble, completed) {
            trouble.check(&self.0, "sync")?;
            trouble.synced(completed);
        }
        Ok(())
    }

    async fn truncate(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        if let Some(trouble) = self.0.trouble.get() {
            trouble.check(&self.0, "truncate")?;
        }
        if let Some(object) = self.0.objects.borrow_mut().get_mut(&object) {
            object.slots = object.slots.min(length.div_ceil(self.0.slot_bytes));
            object.contents.truncate(length);
        }
        Ok(())
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        if let Some(trouble) = self.0.trouble.get() {
            trouble.check(&self.0, "remove")?;
            trouble.removed(object);
        }
        self.0.objects.borrow_mut().remove(&object);
        Ok(())
    }

    async fn space(&self) -> Result<Space, DiskError> {
        let capacity_bytes = self.0.shape.capacity_sectors * self.0.sector_bytes;
        let used_slots = slots_in_use(&self.0.objects.borrow());
        let used_bytes = used_slots.saturating_mul(self.0.slot_bytes);
        Ok(Space { capacity_bytes, free_bytes: capacity_bytes.saturating_sub(used_bytes) })
    }
}
