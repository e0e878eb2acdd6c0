//! A disk device: it carries out the requests of one disk over its bus.
//!
//! The steps of a request are those of the SCSI bus: the command goes over the bus, the disk
//! disconnects, works, reconnects, and the data goes over the bus. Without a bus only the work
//! remains.
//!
//! Invariants:
//!
//! - As many requests are served at once as the model takes; the others wait in the queue.
//! - Requests for the same place are served in the order of their calls.

use super::command_log::{CommandLog, DiskTracks};
use super::config::{DiskConfig, StartAngle};
use super::faults::DiskFaults;
use super::objects::Objects;
use super::queue::DiskQueue;
use crate::engine::{Engine, Sleep};
use crate::host_member::HostMember;
use crate::models::bus::Bus;
use crate::models::disk_model::{Command, DiskModel, Step};
use crate::models::layout::{Layout, LayoutError};
use crate::models::request_queue::QueueKind;
use crate::models::shared_medium::SharedMedium;
use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use units::{Duration, FileId, Instant, Timestamp};
use world::payload::Kind;
use world::{Disk, DiskError, ObjectMetadata, Space};

/// Handle to one disk; clones are handles to the same disk.
pub struct SimulatedDisk<P: Kind>(Rc<Device<P>>);

struct Device<P: Kind> {
    engine: Engine,
    objects: Objects<P>,
    /// Requests that wait for their turn; `None` where the disk takes all at once.
    queue: Option<DiskQueue>,
    queue_kind: QueueKind,
    prefetch_commands: u32,
    /// Shared with the other disks of the node.
    bus: Option<Rc<RefCell<Bus>>>,
    /// Number of the first disk on the bus, which identifies the bus to recorders.
    bus_number: u32,
    model: RefCell<Box<dyn DiskModel>>,
    /// Place of the disk's thread on the host of its node.
    host_member: OnceCell<HostMember>,
    /// Set only where faults are planned.
    faults: OnceCell<Box<DiskFaults<P>>>,
}

impl<P: Kind> Clone for SimulatedDisk<P> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<P: Kind> SimulatedDisk<P> {
    /// Creates `count` disks on one bus, numbered from `first` over the whole machine. `random`
    /// maps a disk number to a number that differs from disk to disk.
    pub(crate) fn on_one_bus(
        engine: &Engine,
        config: &DiskConfig,
        first: u32,
        count: u32,
        random: impl Fn(u32) -> u64,
    ) -> Result<Vec<Self>, LayoutError> {
        let bus = config.kind.bus().map(|spec| Rc::new(RefCell::new(Bus::new(spec))));
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
    /// Lets the disk's thread share the cores of a host, and the disk perhaps its medium.
    pub(crate) fn join_host(&self, member: HostMember, medium: &SharedMedium) {
        self.0.model.borrow_mut().join_medium(medium);
        assert!(self.0.host_member.set(member).is_ok(), "a disk's thread is on one host only");
    }

    /// Reports motions that are still going on to the recorder.
    pub(crate) fn stop_recording(&self) {
        let motions = self.0.model.borrow_mut().end_watch(self.0.engine.now());
        self.0.tracks().record_motions(motions);
    }
}

impl<P: Kind> Device<P> {
    fn new(
        engine: &Engine,
        config: &DiskConfig,
        number: u32,
        (random, angle): (u64, u64),
        (bus, bus_number): (Option<Rc<RefCell<Bus>>>, u32),
    ) -> Result<Self, LayoutError> {
        let mut model = config.kind.build(angle);
        if engine.timeline().is_recorded() {
            model.watch();
        }
        let layout = Layout { kind: config.layout, seed: random };
        let objects =
            Objects::new(number, config.slot_bytes, model.sector_bytes(), layout, model.shape())?;
        Ok(Self {
            engine: engine.clone(),
            objects,
            queue: model.commands_max().map(|commands| DiskQueue::new(config.queue, commands)),
            queue_kind: config.queue,
            prefetch_commands: config.prefetch_commands,
            bus,
            bus_number,
            model: RefCell::new(model),
            host_member: OnceCell::new(),
            faults: OnceCell::new(),
        })
    }

    /// The tracks on which the recorder shows this disk.
    fn tracks(&self) -> DiskTracks<'_> {
        DiskTracks {
            engine: &self.engine,
            disk: self.objects.disk,
            bus: self.bus_number,
            model: &self.model,
        }
    }

    /// Carries out one command: sends it, then moves its data in the bursts that the disk asks for.
    async fn carry_out(&self, command: Command) -> Result<(), DiskError> {
        let engine = &self.engine;
        let mut log = CommandLog::begin(self.tracks(), &command);
        self.over_bus(None, &mut log).await;
        let _command = Abandon { device: self };
        let begun = self.model.borrow_mut().begin(engine.now(), &command);
        let mut step = begun.map_err(|error| self.objects.failed("begin", &error.to_string()))?;
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
                Step::Processor { length } => {
                    engine.sleep_until(self.work(length)).await;
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

    /// Accepts work of the disk's thread. Returns its end, with the present load of the host.
    fn work(&self, length: Duration) -> Instant {
        let now = self.engine.now();
        let Some(member) = self.host_member.get() else { return now + length };
        let until = now + member.stretch(now, length);
        member.note_urgent(until);
        until
    }

    /// Occupies the bus for `bytes` of data, or for a command. Returns a wait until the bus is free
    /// again; no time passes without a bus.
    fn over_bus(&self, bytes: Option<u64>, log: &mut CommandLog<'_>) -> Sleep {
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

    /// Carries out one request, from its place in the queue to its end.
    async fn serve(&self, file: FileId, range: (u64, u64), reads: bool) -> Result<(), DiskError> {
        let (offset, length) = range;
        let full = |_: LayoutError| DiskError::NoSpace { disk: self.objects.disk_name() };
        let runs = self.objects.sectors(file, offset, length).map_err(full)?;
        let from = runs.iter().map(|run| run.start).min().unwrap_or_default();
        let to = runs.iter().map(|run| run.end).max().unwrap_or_default();
        let _turn = match &self.queue {
            Some(queue) => {
                let scanned = match self.queue_kind {
                    QueueKind::CscanOfFile => self.objects.sectors_of_file(file, offset, length),
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
        if let Some(faults) = self.faults.get() {
            let operation = if reads { "read" } else { "write" };
            Box::pin(faults.delay_and_check(&self.engine, &self.objects, begun, operation)).await?;
        }
        Ok(())
    }
}

/// Cancels the command of a disk when dropped. It does not affect a command that is complete.
struct Abandon<'a, P: Kind> {
    device: &'a Device<P>,
}

impl<P: Kind> Drop for Abandon<'_, P> {
    fn drop(&mut self) {
        self.device.model.borrow_mut().abandon();
    }
}

impl<P: Kind> Device<P> {
    /// Writes to a disk for which faults are planned.
    async fn write_with_faults(
        &self,
        faults: &DiskFaults<P>,
        (object, offset): (FileId, u64),
        payload: P,
    ) -> Result<(), DiskError> {
        let range = (offset, payload.length());
        let write = faults.begin_write(&self.objects, (object, offset), payload);
        let served = self.serve(object, range, false).await;
        write.end(served.is_ok());
        if served.is_ok() {
            faults.renewed(object, offset..offset + range.1);
        }
        served
    }
}

impl<P: Kind> SimulatedDisk<P> {
    /// Keeps from now on what a power failure needs; `seed` decides what one leaves.
    pub(crate) fn expect_faults(&self, seed: u64) {
        self.0.faults.get_or_init(|| Box::new(DiskFaults::new(seed)));
    }

    /// Makes every request from now on take `times` as long; 1 is the usual time.
    pub(crate) fn set_slow(&self, times: u32) {
        if let Some(faults) = self.0.faults.get() {
            faults.set_slow(times);
        }
    }

    /// Makes requests that end from now on fail, or succeed again.
    pub(crate) fn set_failing(&self, fails: bool) {
        if let Some(faults) = self.0.faults.get() {
            faults.set_failing(fails);
        }
    }

    /// Damages bytes of an object until they are written again.
    pub(crate) fn damage(&self, object: FileId, range: Range<u64>) {
        if let Some(faults) = self.0.faults.get() {
            faults.damage(object, range);
        }
    }

    /// Becomes an empty disk.
    pub(crate) fn replace(&self) {
        self.0.objects.remove_all();
        if let Some(faults) = self.0.faults.get() {
            faults.replace();
        }
    }

    /// Loses power: each write that no sync covers is complete, absent or torn from now on.
    pub(crate) fn lose_power(&self) {
        self.0.objects.lose_times();
        if let Some(faults) = self.0.faults.get() {
            faults.lose_power(&self.0.objects);
        }
    }
}

impl<P: Kind> Disk for SimulatedDisk<P> {
    type Payload = P;

    fn address(&self, object: FileId, offset: u64) -> u64 {
        let objects = &self.0.objects;
        let slot = offset / objects.slot_bytes;
        let sector = objects.with(object, |object| object.placement.first_sector(slot));
        sector.map_or(u64::MAX, |first| {
            first * objects.sector_bytes + (offset - slot * objects.slot_bytes)
        })
    }

    /// Takes no time, unless the disk has stopped.
    async fn locate(&self, _object: FileId) {
        if let Some(faults) = self.0.faults.get() {
            faults.wait(&self.0.engine).await;
        }
    }

    async fn metadata(&self, object: FileId) -> Result<Option<ObjectMetadata>, DiskError> {
        if let Some(faults) = self.0.faults.get() {
            faults.check(&self.0.objects, "read metadata")?;
        }
        Ok(self.0.objects.metadata(object))
    }

    fn set_modified(
        &self,
        object: FileId,
        modified: Timestamp,
    ) -> impl Future<Output = ()> + 'static {
        self.0.objects.set_modified(object, modified, self.0.engine.timestamp());
        std::future::ready(())
    }

    async fn read(&self, object: FileId, offset: u64, length: u64) -> Result<P, DiskError> {
        if length > 0 {
            self.0.serve(object, (offset, length), true).await?;
            if let Some(faults) = self.0.faults.get() {
                faults.check_damage(&self.0.objects, object, offset..offset + length)?;
            }
        }
        Ok(self.0.objects.with(object, |object| object.contents.read(offset, length)))
    }

    async fn write(&self, object: FileId, offset: u64, payload: P) -> Result<(), DiskError> {
        if payload.length() > 0 {
            let range = (offset, payload.length());
            if let Some(faults) = self.0.faults.get() {
                self.0.objects.with(object, |object| object.written = self.0.engine.timestamp());
                return Box::pin(self.0.write_with_faults(faults, (object, offset), payload)).await;
            }
            self.0.serve(object, range, false).await?;
        }
        self.0.objects.with(object, |object| {
            object.written = self.0.engine.timestamp();
            object.contents.write(offset, payload);
        });
        Ok(())
    }

    async fn sync(&self, object: FileId) -> Result<(), DiskError> {
        let faults = self.0.faults.get();
        let completed = faults.map(|faults| faults.completed(object));
        let written_at = self.0.model.borrow_mut().sync(self.0.engine.now());
        self.0.engine.sleep_until(written_at).await;
        if let (Some(faults), Some(completed)) = (faults, completed) {
            faults.check(&self.0.objects, "sync")?;
            faults.synced(completed);
        }
        Ok(())
    }

    async fn truncate(&self, object: FileId, length: u64) -> Result<(), DiskError> {
        if let Some(faults) = self.0.faults.get() {
            faults.check(&self.0.objects, "truncate")?;
            faults.renewed(object, length..u64::MAX);
        }
        self.0.objects.truncate(object, length);
        Ok(())
    }

    async fn remove(&self, object: FileId) -> Result<(), DiskError> {
        if let Some(faults) = self.0.faults.get() {
            faults.check(&self.0.objects, "remove")?;
            faults.removed(object);
            faults.renewed(object, 0..u64::MAX);
        }
        self.0.objects.remove(object);
        Ok(())
    }

    async fn space(&self) -> Result<Space, DiskError> {
        Ok(self.0.objects.space())
    }
}
