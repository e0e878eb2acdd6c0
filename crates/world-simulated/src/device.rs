//! A disk device: a queue, a model of the mechanism, a share of a bus, and what it remembers.
//!
//! The steps of one request are those of the SCSI bus: the command goes over the bus, the disk
//! disconnects, works, reconnects, and the data goes over the bus. Requests to one device are
//! served one at a time in the order of their calls.

use crate::contents::Contents;
use crate::engine::Engine;
use crate::models::hp97560::{AfterBurst, Hp97560};
use crate::models::ideal::IdealDisk;
use crate::models::layout::{DiskShape, Layout, LayoutError, Placement};
use crate::models::scsi_bus::ScsiBus;
use crate::turnstile::Turnstile;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use units::{Duration, FileId, Instant};
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
    /// Whether each disk starts at its own random angle, or all in phase.
    pub random_angle: bool,
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

/// What moves the data of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The HP 97560 of the papers, on a SCSI bus.
    Hp97560,
    /// A disk that knows only a latency and a rate, on no bus, of any capacity.
    Ideal {
        /// Time before the first byte.
        latency: Duration,
        /// Rate from then on.
        bytes_per_second: u64,
    },
}

/// A handle to one disk; clones are handles to the same one.
pub struct SimulatedDisk<P: Kind>(Rc<Device<P>>);

struct Device<P: Kind> {
    engine: Engine,
    number: u32,
    slot_bytes: u64,
    layout: Layout,
    shape: DiskShape,
    queue: Turnstile,
    bus: Rc<RefCell<ScsiBus>>,
    state: RefCell<State<P>>,
}

struct State<P> {
    mechanism: MechanismState,
    objects: BTreeMap<FileId, Object<P>>,
}

enum MechanismState {
    Hp97560(Box<Hp97560>),
    Ideal(IdealDisk),
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

/// Sectors of a disk that has no end.
const ENDLESS_SECTORS: u64 = u64::MAX >> 16;

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
        let bus = Rc::new(RefCell::new(ScsiBus::new()));
        let disk = |number| Device::new(engine, config, number, random(number), Rc::clone(&bus));
        (first..first + count).map(|number| Ok(Self(Rc::new(disk(number)?)))).collect()
    }
}

impl<P: Kind> Device<P> {
    fn new(
        engine: &Engine,
        config: &DeviceConfig,
        number: u32,
        random: u64,
        bus: Rc<RefCell<ScsiBus>>,
    ) -> Result<Self, LayoutError> {
        let (mechanism, capacity_sectors) = match config.mechanism {
            Mechanism::Hp97560 => {
                let angle = if config.random_angle { random } else { 0 };
                let angle = Duration::from_ns(angle % Hp97560::REVOLUTION.as_ns());
                let state = MechanismState::Hp97560(Box::new(Hp97560::new(angle)));
                (state, Hp97560::CAPACITY_SECTORS)
            }
            Mechanism::Ideal { latency, bytes_per_second } => {
                let state = MechanismState::Ideal(IdealDisk::new(latency, bytes_per_second));
                (state, ENDLESS_SECTORS)
            }
        };
        let layout = match config.layout {
            LayoutKind::Contiguous => Layout::Contiguous,
            LayoutKind::RandomBlocks => Layout::RandomBlocks { seed: random },
            LayoutKind::RandomTracks => Layout::RandomTracks { seed: random },
        };
        let shape = DiskShape { track_sectors: Hp97560::TRACK_SECTORS, capacity_sectors };
        let device = Self {
            engine: engine.clone(),
            number,
            slot_bytes: config.slot_bytes,
            layout,
            shape,
            queue: Turnstile::default(),
            bus,
            state: RefCell::new(State { mechanism, objects: BTreeMap::new() }),
        };
        device.place(0)?;
        Ok(device)
    }

    fn place(&self, first_slot: u64) -> Result<Placement, LayoutError> {
        let block_sectors = self.slot_bytes.div_ceil(Hp97560::SECTOR_BYTES);
        Placement::new(self.layout, self.shape, block_sectors, first_slot)
    }

    fn name(&self) -> String {
        format!("simulated disk {}", self.number)
    }

    /// Does `act` with the object, which begins after all slots in use if it is new.
    fn with_object<R>(&self, file: FileId, act: impl FnOnce(&mut Object<P>) -> R) -> R {
        let objects = &mut self.state.borrow_mut().objects;
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

    /// The sectors of each slot that the bytes touch, in order.
    fn sectors(
        &self,
        file: FileId,
        offset: u64,
        length: u64,
    ) -> Result<Vec<Range<u64>>, LayoutError> {
        let slots = offset / self.slot_bytes..(offset + length).div_ceil(self.slot_bytes);
        self.with_object(file, |object| {
            let ranges = slots.clone().map(|slot| {
                let first = object.placement.first_sector(slot)?;
                let from = offset.max(slot * self.slot_bytes) % self.slot_bytes;
                let to = (offset + length).min((slot + 1) * self.slot_bytes);
                let to = to - slot * self.slot_bytes;
                let start = from / Hp97560::SECTOR_BYTES;
                Ok(first + start..first + to.div_ceil(Hp97560::SECTOR_BYTES))
            });
            let ranges = ranges.collect::<Result<Vec<_>, LayoutError>>()?;
            object.slots = object.slots.max(slots.end);
            Ok(ranges)
        })
    }

    /// Moves the data of one request over the bus in the bursts that the disk asks for.
    async fn serve_hp97560(&self, sectors: Range<u64>, reads: bool) -> Result<(), DiskError> {
        let engine = &self.engine;
        let arrived = self.bus.borrow_mut().command(engine.now());
        engine.sleep_until(arrived).await;
        let _command = Abandon { device: self };
        let mut burst_from = self.with_hp97560(|disk| {
            let begun = match reads {
                true => disk.read(engine.now(), sectors),
                false => disk.write(engine.now(), sectors),
            };
            begun.map_err(|error| self.failed("begin", &error.to_string()))
        })?;
        loop {
            engine.sleep_until(burst_from).await;
            let bytes = self.with_hp97560(|disk| disk.burst_bytes());
            let moved = self.bus.borrow_mut().transfer(engine.now(), bytes);
            engine.sleep_until(moved).await;
            let after = self.with_hp97560(|disk| match reads {
                true => disk.read_transferred(engine.now()),
                false => disk.write_buffered(engine.now()),
            });
            match after {
                AfterBurst::Burst(at) => burst_from = at,
                AfterBurst::Complete(at) => {
                    engine.sleep_until(at).await;
                    return Ok(());
                }
            }
        }
    }

    fn with_hp97560<R>(&self, act: impl FnOnce(&mut Hp97560) -> R) -> R {
        match &mut self.state.borrow_mut().mechanism {
            MechanismState::Hp97560(disk) => act(disk),
            MechanismState::Ideal(_) => unreachable!("a device keeps its mechanism"),
        }
    }

    fn failed(&self, operation: &str, cause: &str) -> DiskError {
        let (operation, cause) = (operation.to_owned(), cause.to_owned());
        DiskError::Failed { disk: self.name(), operation, cause }
    }

    /// One request from its place in the queue to its end.
    async fn serve(&self, file: FileId, range: (u64, u64), reads: bool) -> Result<(), DiskError> {
        let (offset, length) = range;
        let full = |_: LayoutError| DiskError::NoSpace { disk: self.name() };
        let request = async {
            let sectors = self.sectors(file, offset, length).map_err(full)?;
            let ideal_end = match &mut self.state.borrow_mut().mechanism {
                MechanismState::Ideal(disk) if reads => Some(disk.read(self.engine.now(), length)),
                MechanismState::Ideal(disk) => Some(disk.write(self.engine.now(), length)),
                MechanismState::Hp97560(_) => None,
            };
            match ideal_end {
                Some(end) => self.engine.sleep_until(end).await,
                None => {
                    for sectors in sectors {
                        self.serve_hp97560(sectors, reads).await?;
                    }
                }
            }
            Ok(())
        };
        // An ideal disk overlaps the latencies of its requests, so they need no turn.
        let turn = match &self.state.borrow().mechanism {
            MechanismState::Ideal(_) => None,
            MechanismState::Hp97560(_) => Some(self.queue.turn()),
        };
        let _turn = match turn {
            Some(turn) => Some(turn.await),
            None => None,
        };
        request.await
    }

    fn written_at(&self) -> Instant {
        match &self.state.borrow().mechanism {
            MechanismState::Hp97560(disk) => disk.idle_at(),
            MechanismState::Ideal(disk) => disk.idle_at(),
        }
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
        self.device.with_hp97560(Hp97560::abandon);
    }
}

impl<P: Kind> Disk for SimulatedDisk<P> {
    type Payload = P;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        let slot = offset / self.0.slot_bytes;
        let sector = self.0.with_object(object, |object| object.placement.first_sector(slot));
        sector.map_or(u64::MAX, |first| {
            first * Hp97560::SECTOR_BYTES + (offset - slot * self.0.slot_bytes)
        })
    }

    async fn read(&self, object: FileId, offset: u64, length: u64) -> Result<P, DiskError> {
        if length > 0 {
            self.0.serve(object, (offset, length), true).await?;
        }
        Ok(self.0.with_object(object, |object| object.contents.read(offset, length)))
    }

    async fn write(&self, object: FileId, offset: u64, payload: P) -> Result<(), DiskError> {
        if payload.length() > 0 {
            self.0.serve(object, (offset, payload.length()), false).await?;
        }
        self.0.with_object(object, |object| object.contents.write(offset, payload));
        Ok(())
    }

    async fn sync(&self, _object: FileId) -> Result<(), DiskError> {
        let written_at = self.0.written_at();
        self.0.engine.sleep_until(written_at).await;
        Ok(())
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        self.0.state.borrow_mut().objects.remove(&object);
        Ok(())
    }

    async fn space(&self) -> Result<Space, DiskError> {
        let capacity_bytes = self.0.shape.capacity_sectors * Hp97560::SECTOR_BYTES;
        let used_slots = slots_in_use(&self.0.state.borrow().objects);
        let used_bytes = used_slots.saturating_mul(self.0.slot_bytes);
        Ok(Space { capacity_bytes, free_bytes: capacity_bytes.saturating_sub(used_bytes) })
    }
}
