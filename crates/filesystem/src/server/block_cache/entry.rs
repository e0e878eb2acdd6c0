//! One block in the cache.

use super::block_locks::BlockKey;
use super::occupancy::Occupancy;
use super::use_counts::UseCounts;
use crate::server::files::open_file::OpenFile;
use crate::signal::Signal;
use policy::RangeSet;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use units::{ByteRange, DiskId, Run};
use world::{Memory, Payload, World};

/// A block that is cached or on its way.
pub(crate) struct Entry<W: World> {
    key: BlockKey,
    /// Place in the eviction order.
    place: usize,
    file: Rc<OpenFile>,
    disk: DiskId,
    length: Cell<u64>,
    /// True when it came in as the last block of a file, which may become longer.
    may_grow: bool,
    /// Bytes that it occupies in the cache: at least its length.
    room: Cell<u64>,
    users: Cell<u32>,
    /// True when it has left the cache. Its users occupy no room there then.
    has_left: Cell<bool>,
    /// True while a task reads it from or writes it to the disk.
    busy: Cell<bool>,
    rested: Signal,
    occupancy: Rc<Occupancy>,
    /// End of the bytes that are being written to the disk, relative to the block; 0 for none.
    leaving_end: Cell<u64>,
    /// Number of these bytes.
    leaving_bytes: Cell<u64>,
    /// Place in the list of dirty blocks, while it is dirty.
    dirty_place: Cell<Option<(DiskId, u64)>>,
    /// Number of times that it has forgotten what the disk had.
    forgotten: Cell<u64>,
    uses: UseCounts,
    state: RefCell<State<W>>,
}

struct State<W: World> {
    content: Content<W>,
    /// Known bytes, except those that were written since the disk last had them. (Writes are most
    /// frequent, and change one set only.)
    clean: RangeSet,
    /// Bytes that the disk does not have yet.
    dirty: RangeSet,
}

/// Bytes of a block. Frozen ones are shared with the disk or the network without a copy. Writing to
/// them copies them only if they are still shared.
enum Content<W: World> {
    Empty,
    Assembling(W::Memory),
    Frozen(W::Payload),
}

/// Maximum number of fragments of a dirty block that are written one by one. Above it the block is
/// completed from the disk and written as a whole.
const DIRTY_FRAGMENTS_MAX: usize = 4;

/// User of an entry. The entry stays in the cache while it lives.
pub(crate) struct User<W: World>(Rc<Entry<W>>);

/// Exclusive work between an entry and its disk. Over when dropped.
pub(crate) struct Busy<'a, W: World>(&'a Entry<W>);

impl<W: World> Deref for User<W> {
    type Target = Entry<W>;
    fn deref(&self) -> &Entry<W> {
        &self.0
    }
}

impl<W: World> User<W> {
    /// Tells if this user uses `entry`.
    pub(crate) fn is(&self, entry: &Rc<Entry<W>>) -> bool {
        Rc::ptr_eq(&self.0, entry)
    }
}

impl<W: World> Drop for User<W> {
    fn drop(&mut self) {
        self.0.users.set(self.0.users.get() - 1);
        if self.0.users.get() == 0 {
            let Entry { occupancy, disk, room, .. } = &*self.0;
            if !self.0.is_dirty() && !self.0.has_left.get() {
                occupancy.free(*disk, room.get());
            }
            occupancy.notify_freed(*disk);
            occupancy.notify_room();
        }
    }
}

impl<W: World> Drop for Busy<'_, W> {
    fn drop(&mut self) {
        self.0.busy.set(false);
        self.0.rested.notify();
    }
}

impl<W: World> Entry<W> {
    pub(super) fn new(
        file: &Rc<OpenFile>,
        (block, place): (u64, usize),
        (length, may_grow): (u64, bool),
        occupancy: Rc<Occupancy>,
    ) -> Self {
        let state =
            State { content: Content::Empty, clean: RangeSet::new(), dirty: RangeSet::new() };
        Self {
            key: (file.file, block),
            place,
            file: Rc::clone(file),
            disk: file.stripe.locate(block).disk,
            length: Cell::new(length),
            may_grow,
            room: Cell::new(length),
            users: Cell::new(0),
            has_left: Cell::new(false),
            busy: Cell::new(false),
            rested: Signal::default(),
            leaving_end: Cell::new(0),
            leaving_bytes: Cell::new(0),
            occupancy,
            dirty_place: Cell::default(),
            forgotten: Cell::new(0),
            uses: UseCounts::default(),
            state: RefCell::new(state),
        }
    }

    pub(crate) fn user(entry: &Rc<Self>) -> User<W> {
        if !entry.is_occupied() {
            entry.occupancy.occupy(entry.disk, entry.room());
        }
        entry.users.set(entry.users.get() + 1);
        User(Rc::clone(entry))
    }

    pub(crate) fn key(&self) -> BlockKey {
        self.key
    }

    pub(crate) fn file(&self) -> &OpenFile {
        &self.file
    }

    pub(crate) fn length(&self) -> u64 {
        self.length.get()
    }

    /// Bytes that it occupies in the cache.
    pub(super) fn room(&self) -> u64 {
        self.room.get()
    }

    pub(crate) fn disk(&self) -> DiskId {
        self.disk
    }

    /// Place in the eviction order, while it is cached.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Its uses.
    pub(super) fn uses(&self) -> &UseCounts {
        &self.uses
    }

    /// Occupancy of its cache.
    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    fn whole(&self) -> ByteRange {
        ByteRange::at(0, self.length())
    }

    /// Offset of the block in its object, in bytes.
    pub(crate) fn disk_offset(&self) -> u64 {
        self.file.disk_offset(self.key.1)
    }

    /// True when it cannot be evicted at once. (Work on it, and changes of its dirty bytes, always
    /// happen under a user.)
    pub(super) fn is_occupied(&self) -> bool {
        self.users.get() > 0 || self.is_dirty()
    }

    /// Notes that it leaves the cache.
    pub(super) fn leave(&self) {
        assert!(!self.is_dirty(), "what the disk does not have stays");
        if self.is_occupied() {
            self.occupancy.free(self.disk, self.room());
            self.occupancy.notify_freed(self.disk);
        }
        self.has_left.set(true);
        self.occupancy.notify_room();
    }

    /// True when it has no user and no task works on it.
    pub(crate) fn is_idle(&self) -> bool {
        self.users.get() == 0 && !self.busy.get()
    }

    /// True when a task works on it, or the disk lacks some of it.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.busy.get() || !self.state.borrow().dirty.is_empty()
    }

    /// End of the bytes that the disk lacks, relative to the block.
    pub(crate) fn unstored_end(&self) -> Option<u64> {
        let dirty = self.state.borrow().dirty.iter().map(|range| range.end).max();
        Some(dirty.unwrap_or(0).max(self.leaving_end.get())).filter(|end| *end > 0)
    }

    /// Number of bytes that the disk may lack, also those on their way there.
    pub(super) fn unstored_bytes(&self) -> u64 {
        let bytes = self.state.borrow().dirty.bytes() + self.leaving_bytes.get();
        bytes.min(self.length())
    }

    /// True when the disk lacks some of it, and no task is writing it back.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty_place.get().is_some()
    }

    /// Updates the list of dirty blocks after a change of the dirty bytes.
    fn list(&self) {
        let (dirty, is_dirty) = (self.occupancy.dirty(), !self.state.borrow().dirty.is_empty());
        match (self.dirty_place.get(), is_dirty) {
            (None, true) => {
                let place = dirty.add(self.disk, self.key, self.room());
                self.dirty_place.set(Some(place));
            }
            (Some(place), false) => {
                dirty.remove(place, self.room());
                self.dirty_place.set(None);
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// True when every byte has been written since the disk last had it, and no more can come.
    pub(crate) fn is_written_full(&self) -> bool {
        self.has_its_last_length() && self.state.borrow().dirty.is_full(self.length())
    }

    /// False when bytes will be missing after a write of `length` more.
    pub(super) fn may_be_full_with(&self, length: u64) -> bool {
        let dirty = self.state.borrow().dirty.bytes();
        self.has_its_last_length() && dirty.saturating_add(length) >= self.length()
    }

    fn has_its_last_length(&self) -> bool {
        !self.may_grow || self.length() == self.file.stripe.block_bytes
    }

    /// Returns the further room that it needs to become `length` bytes long, as its file has;
    /// `None` when others than the caller use it. It takes twice as much as needed, so that the
    /// bytes of a block that grows again and again are not copied each time.
    pub(super) fn room_to_grow(&self, file: &Rc<OpenFile>, length: u64) -> Option<u64> {
        let is_alone = self.users.get() == 1 && !self.busy.get() && !self.has_left.get();
        if !self.may_grow || !is_alone || length <= self.length() || !Rc::ptr_eq(&self.file, file) {
            return None;
        }
        let wanted = length.saturating_mul(2).min(file.stripe.block_bytes);
        Some(if length <= self.room() { 0 } else { wanted - self.room() })
    }

    /// Makes it `length` bytes long with so much more room, and keeps its bytes.
    pub(super) fn grow(&self, world: &W, length: u64, more: u64) {
        self.occupancy.occupy(self.disk, more);
        if self.is_dirty() {
            self.occupancy.dirty().grow(self.disk, more);
        }
        self.room.update(|room| room + more);
        self.state.borrow_mut().enlarge(world, length, self.room());
        self.length.set(length);
    }

    pub(crate) fn is_fragmented(&self) -> bool {
        let state = self.state.borrow();
        state.dirty.iter().nth(DIRTY_FRAGMENTS_MAX).is_some() && !state.knows(self.whole())
    }

    /// Waits while a task works on it. False when none did.
    pub(crate) async fn wait_while_busy(&self) -> bool {
        let was_busy = self.busy.get();
        self.rested.until(|| (!self.busy.get()).then_some(())).await;
        was_busy
    }

    /// Begins exclusive work, unless another task has.
    pub(crate) fn begin_work(&self) -> Option<Busy<'_, W>> {
        // Not `then_some`: it would make and drop a guard, which ends the work of the other task.
        (!self.busy.replace(true)).then(|| Busy(self))
    }

    /// Returns the bytes `range` for a request, if all of them are known.
    pub(super) fn read(&self, range: ByteRange) -> Option<W::Payload> {
        let payload = self.cut(range)?;
        self.uses.hit();
        Some(payload)
    }

    /// Returns the bytes `range`, if all of them are known.
    pub(crate) fn cut(&self, range: ByteRange) -> Option<W::Payload> {
        let state = self.state.borrow();
        if !state.knows(range) {
            return None;
        }
        match &state.content {
            Content::Empty => None,
            Content::Assembling(memory) => {
                Some(memory.gather(&[Run::contiguous(range.start, range.length())]))
            }
            Content::Frozen(payload) => Some(payload.slice(range.start, range.length())),
        }
    }

    /// Makes a block that is known in full shareable without a copy.
    pub(crate) fn freeze(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.knows(self.whole()) {
            state.freeze(self.length());
        }
    }

    /// Overwrites the pieces of `runs` with those of `payload`, in the same order.
    pub(crate) fn put(&self, world: &W, runs: &[Run], payload: &W::Payload) {
        self.overwrite(world, runs, payload);
        self.list();
    }

    fn overwrite(&self, world: &W, runs: &[Run], payload: &W::Payload) {
        let state = &mut *self.state.borrow_mut();
        if runs == [Run::contiguous(0, self.length())] {
            // A whole block is kept without a copy.
            state.content = Content::Frozen(payload.clone());
        } else {
            state.memory(world, self.length()).scatter(runs, payload);
        }
        let ranges = runs.iter().flat_map(|run| {
            let pieces = if run.is_contiguous() { contiguous(*run) } else { *run };
            pieces.offsets().map(move |offset| ByteRange::at(offset, pieces.length))
        });
        for range in ranges {
            state.dirty.insert(range);
        }
    }

    /// Takes the bytes of the disk, where no newer ones are known.
    pub(crate) fn fill(&self, world: &W, payload: W::Payload) {
        let state = &mut *self.state.borrow_mut();
        let missing: Vec<ByteRange> = state.missing_in(self.whole()).collect();
        if missing == [self.whole()] {
            state.content = Content::Frozen(payload);
        } else {
            let memory = state.memory(world, self.length());
            for gap in missing {
                let run = Run::contiguous(gap.start, gap.length());
                memory.scatter(&[run], &payload.slice(gap.start, gap.length()));
            }
        }
        state.clean.insert(self.whole());
    }

    /// Takes bytes at `offset` that the disk has, where no bytes are known.
    pub(crate) fn fill_part(&self, world: &W, offset: u64, payload: &W::Payload) {
        let range = ByteRange::at(offset, payload.length());
        if range == self.whole() {
            return self.fill(world, payload.clone());
        }
        let state = &mut *self.state.borrow_mut();
        let missing: Vec<ByteRange> = state.missing_in(range).collect();
        let memory = state.memory(world, self.length());
        for gap in missing {
            let run = Run::contiguous(gap.start, gap.length());
            memory.scatter(&[run], &payload.slice(gap.start - offset, gap.length()));
        }
        state.clean.insert(range);
    }

    /// Takes the dirty bytes to write them. They are dirty again if their writing is dropped.
    pub(crate) fn take_dirty(&self) -> Unwritten<'_, W> {
        let unwritten = Unwritten { entry: self, parts: self.cut_dirty().into() };
        let ends = unwritten.parts.iter().map(|(offset, payload)| offset + payload.length());
        self.leaving_end.set(ends.max().unwrap_or(0));
        let leaving = unwritten.parts.iter().map(|(_, payload)| payload.length());
        self.leaving_bytes.set(leaving.sum());
        self.list();
        unwritten
    }

    /// Returns the dirty bytes with their offsets, and marks them clean.
    fn cut_dirty(&self) -> Vec<(u64, W::Payload)> {
        let state = &mut *self.state.borrow_mut();
        let ranges: Vec<ByteRange> = if state.knows(self.whole()) && !state.dirty.is_empty() {
            vec![self.whole()]
        } else {
            state.dirty.iter().collect()
        };
        state.settle();
        if ranges.len() == 1 && ranges[0].length() == self.length() {
            return state.freeze(self.length()).into_iter().map(|payload| (0, payload)).collect();
        }
        let cut = |range: &ByteRange| {
            let run = Run::contiguous(range.start, range.length());
            match &state.content {
                Content::Empty => None,
                Content::Assembling(memory) => Some((range.start, memory.gather(&[run]))),
                Content::Frozen(all) => Some((range.start, all.slice(run.offset, run.length))),
            }
        };
        ranges.iter().filter_map(cut).collect()
    }

    /// Gives up the bytes that the disk lacks.
    pub(crate) fn forget_dirty(&self) {
        self.state.borrow_mut().dirty.clear();
        self.forget_clean();
        self.list();
    }

    /// Forgets the bytes that the disk has, or had: they are read from it again.
    pub(crate) fn forget_clean(&self) {
        self.forgotten.update(|count| count + 1);
        self.state.borrow_mut().clean.clear();
    }

    /// Number of times that it has forgotten what the disk had. What was read before is not what
    /// the disk has.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.get()
    }
}

/// Dirty parts of a block on their way to the disk. A task that writes them back may be dropped
/// together with a client that did not write them. Unwritten parts are dirty again then.
pub(crate) struct Unwritten<'a, W: World> {
    entry: &'a Entry<W>,
    parts: VecDeque<(u64, W::Payload)>,
}

impl<W: World> Unwritten<'_, W> {
    /// Returns the next part to write, as its offset in the block and its bytes.
    pub(crate) fn first(&self) -> Option<(u64, W::Payload)> {
        self.parts.front().cloned()
    }

    /// Notes that the next part is on the disk.
    pub(crate) fn first_is_written(&mut self) {
        self.parts.pop_front();
    }

    /// Gives all parts up after a failure, which is reported elsewhere. What is read from now on is
    /// what the disk has: never a value once, and an older one later.
    pub(crate) fn lose(mut self) {
        self.parts.clear();
        self.entry.forget_clean();
    }
}

impl<W: World> Drop for Unwritten<'_, W> {
    fn drop(&mut self) {
        for (offset, payload) in &self.parts {
            let range = ByteRange::at(*offset, payload.length());
            self.entry.state.borrow_mut().dirty.insert(range);
        }
        self.entry.leaving_end.set(0);
        self.entry.leaving_bytes.set(0);
        self.entry.list();
    }
}

/// Merges touching pieces into one.
fn contiguous(run: Run) -> Run {
    Run::contiguous(run.offset, run.bytes())
}

impl<W: World> State<W> {
    /// Returns the unknown bytes of `range`, ascending, as few ranges.
    fn missing_in(&self, range: ByteRange) -> impl Iterator<Item = ByteRange> + '_ {
        self.dirty.missing_in(range).flat_map(|gap| self.clean.missing_in(gap))
    }

    fn knows(&self, range: ByteRange) -> bool {
        self.clean.contains(range) || self.missing_in(range).next().is_none()
    }

    /// Marks dirty bytes clean. They stay known.
    fn settle(&mut self) {
        for range in std::mem::take(&mut self.dirty).iter() {
            self.clean.insert(range);
        }
    }

    /// Returns the bytes as writable memory.
    fn memory(&mut self, world: &W, length: u64) -> &W::Memory {
        self.content = match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Empty => Content::Assembling(world.memory(length)),
            Content::Frozen(payload) => Content::Assembling(world.thaw(payload)),
            assembling => assembling,
        };
        match &self.content {
            Content::Assembling(memory) => memory,
            Content::Empty | Content::Frozen(_) => unreachable!("it was made memory just now"),
        }
    }

    /// Has a memory of `room` bytes, if the present one is too small for `length` bytes. Keeps the
    /// known bytes.
    fn enlarge(&mut self, world: &W, length: u64, room: u64) {
        let known: Vec<ByteRange> = self.clean.iter().chain(self.dirty.iter()).collect();
        let run = |range: &ByteRange| Run::contiguous(range.start, range.length());
        let longer = || world.memory(room);
        self.content = match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Assembling(memory) if memory.length() < length => {
                let longer = longer();
                for run in known.iter().map(run) {
                    longer.scatter(&[run], &memory.gather(&[run]));
                }
                Content::Assembling(longer)
            }
            Content::Frozen(payload) => {
                let longer = longer();
                for run in known.iter().map(run) {
                    longer.scatter(&[run], &payload.slice(run.offset, run.length));
                }
                Content::Assembling(longer)
            }
            other => other,
        };
    }

    /// Returns the bytes as a shareable payload of `length` bytes.
    fn freeze(&mut self, length: u64) -> Option<W::Payload> {
        self.content = match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Assembling(memory) => Content::Frozen(memory.freeze().slice(0, length)),
            other => other,
        };
        match &self.content {
            Content::Frozen(payload) => Some(payload.clone()),
            Content::Empty | Content::Assembling(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a failed `begin_work` does not end the work of another task.
    use super::*;
    use policy::{Buffering, Pool, Protection, Stripe};
    use units::FileId;
    use wire::FileRecord;
    use world::payload::Bytes;
    use world_simulated::SimulatedWorld;

    #[test]
    fn failed_begin_work_keeps_the_running_work() {
        let (name, stripe) = (String::new(), Stripe::round_robin(64, 1, 1));
        let (pool, buffering) = (Pool::all(1), Buffering::default());
        let file = FileId(1);
        let (bytes, cuts, protection) = (64, 0, Protection::None);
        let file = FileRecord { file, name, bytes, cuts, stripe, pool, buffering, protection };
        let file = Rc::new(OpenFile::new(file));
        let occupancy = Rc::new(Occupancy::new(64, 1));
        let entry = Entry::<SimulatedWorld<Bytes>>::new(&file, (0, 0), (64, false), occupancy);
        let busy = entry.begin_work();
        assert!(busy.is_some() && entry.begin_work().is_none());
        assert!(entry.is_unsettled() && entry.begin_work().is_none());
        drop(busy);
        assert!(!entry.is_unsettled() && entry.begin_work().is_some());
    }
}
