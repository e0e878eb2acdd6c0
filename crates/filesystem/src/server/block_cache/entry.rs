//! One block in the cache.

use super::block_locks::BlockKey;
use super::dirty::DirtyBlocks;
use super::shares::Shares;
use crate::server::files::open_file::OpenFile;
use crate::signal::Signal;
use policy::RangeSet;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use units::{ByteRange, DiskId, Run};
use wire::BufferStatistics;
use world::{Memory, Payload, World};

/// A block in the cache, or on its way there.
pub(crate) struct Entry<W: World> {
    key: BlockKey,
    /// Its place among those that are in the cache.
    place: usize,
    file: Rc<OpenFile>,
    disk: DiskId,
    length: u64,
    users: Cell<u32>,
    /// Whether it has left the cache; who still uses it takes no room there.
    has_left: Cell<bool>,
    /// Whether a task reads it from or writes it to the disk.
    busy: Cell<bool>,
    rested: Signal,
    common: Rc<Common>,
    /// Where what is on its way to the disk ends, relative to the block; 0 for nothing.
    leaving_end: Cell<u64>,
    /// Its place among the dirty blocks, while it is one.
    dirty_place: Cell<Option<(DiskId, u64)>>,
    pub(crate) counted: Counted,
    state: RefCell<State<W>>,
}

/// What the blocks of a cache have in common.
pub(crate) struct Common {
    /// Rung when an entry may have become free to leave.
    pub(crate) room: Signal,
    pub(crate) dirty: DirtyBlocks,
    pub(crate) shares: Shares,
}

impl Common {
    /// What blocks have in common in a cache of `capacity` bytes for `disks` disks.
    pub(super) fn new(capacity: u64, disks: usize) -> Self {
        let shares = Shares::new(capacity, disks);
        Self { room: Signal::default(), dirty: DirtyBlocks::default(), shares }
    }
}

/// What happened to a block since it came in.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) hits: Cell<u64>,
    pub(crate) misses: Cell<u64>,
    /// It was read before anyone asked for it.
    pub(crate) prefetched: Cell<bool>,
}

impl Counted {
    /// Adds it all up.
    pub(crate) fn add_to(&self, sum: &mut BufferStatistics) {
        sum.hits += self.hits.get();
        sum.misses += self.misses.get();
        sum.prefetched += u64::from(self.prefetched.get());
    }

    /// Whether it came in for nothing.
    pub(crate) fn is_unused(&self) -> bool {
        self.prefetched.get() && self.hits.get() + self.misses.get() == 0
    }
}

struct State<W: World> {
    content: Content<W>,
    /// Bytes that are known, without those that were written since the disk last had them. (To
    /// write is most frequent, and changes one set.)
    clean: RangeSet,
    /// Bytes that the disk does not have yet.
    dirty: RangeSet,
}

/// The bytes of a block. Frozen ones are shared with the disk or the network at no cost; writing
/// to them copies them only if they are still shared then.
enum Content<W: World> {
    Empty,
    Assembling(W::Memory),
    Frozen(W::Payload),
}

/// Fragments of a dirty block above which it is completed from the disk and written as a whole.
const DIRTY_FRAGMENTS_MAX: usize = 4;

/// Someone who uses an entry; the entry stays in the cache as long.
pub(crate) struct User<W: World>(Rc<Entry<W>>);

/// Exclusive work between an entry and its disk; over when dropped.
pub(crate) struct Busy<'a, W: World>(&'a Entry<W>);

impl<W: World> Deref for User<W> {
    type Target = Entry<W>;
    fn deref(&self) -> &Entry<W> {
        &self.0
    }
}

impl<W: World> User<W> {
    /// Whether this is the entry that is used.
    pub(crate) fn is(&self, entry: &Rc<Entry<W>>) -> bool {
        Rc::ptr_eq(&self.0, entry)
    }
}

impl<W: World> Drop for User<W> {
    fn drop(&mut self) {
        self.0.users.set(self.0.users.get() - 1);
        if self.0.users.get() == 0 {
            let Entry { common, disk, length, .. } = &*self.0;
            if !self.0.is_dirty() && !self.0.has_left.get() {
                common.shares.free(*disk, *length);
            }
            common.shares.freed(*disk).notify();
            common.room.notify();
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
    pub(crate) fn new(
        file: &Rc<OpenFile>,
        (block, place): (u64, usize),
        length: u64,
        common: Rc<Common>,
    ) -> Self {
        let state =
            State { content: Content::Empty, clean: RangeSet::new(), dirty: RangeSet::new() };
        Self {
            key: (file.file, block),
            place,
            file: Rc::clone(file),
            disk: file.stripe.locate(block).disk,
            length,
            users: Cell::new(0),
            has_left: Cell::new(false),
            busy: Cell::new(false),
            rested: Signal::default(),
            leaving_end: Cell::new(0),
            common,
            dirty_place: Cell::default(),
            counted: Counted::default(),
            state: RefCell::new(state),
        }
    }

    pub(crate) fn user(entry: &Rc<Self>) -> User<W> {
        if !entry.is_occupied() {
            entry.common.shares.occupy(entry.disk, entry.length);
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
        self.length
    }

    pub(crate) fn disk(&self) -> DiskId {
        self.disk
    }

    /// Its place among those that are in the cache, as long as it is there.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    fn whole(&self) -> ByteRange {
        ByteRange::at(0, self.length)
    }

    /// Where the block begins in its object, in bytes.
    pub(crate) fn disk_offset(&self) -> u64 {
        self.file.disk_offset(self.key.1)
    }

    /// True when it cannot leave at once. (What is under way for it is so for somebody who uses it,
    /// and so is all that makes it dirty or clean.)
    pub(super) fn is_occupied(&self) -> bool {
        self.users.get() > 0 || self.is_dirty()
    }

    /// It leaves the cache.
    pub(super) fn leave(&self) {
        assert!(!self.is_dirty(), "what the disk does not have stays");
        if self.is_occupied() {
            self.common.shares.free(self.disk, self.length);
            self.common.shares.freed(self.disk).notify();
        }
        self.has_left.set(true);
        self.common.room.notify();
    }

    /// True when nobody uses it and nothing is under way for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.users.get() == 0 && !self.busy.get()
    }

    /// True when something is under way for it, or the disk does not have all of it.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.busy.get() || !self.state.borrow().dirty.is_empty()
    }

    /// Where what the disk does not have ends, relative to the block.
    pub(crate) fn unstored_end(&self) -> Option<u64> {
        let dirty = self.state.borrow().dirty.iter().map(|range| range.end).max();
        Some(dirty.unwrap_or(0).max(self.leaving_end.get())).filter(|end| *end > 0)
    }

    /// True when the disk does not have all of it, and nobody is writing it back.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty_place.get().is_some()
    }

    /// Keeps the list of dirty blocks up to date, after any change of what is dirty here.
    fn list(&self) {
        let (dirty, is_dirty) = (&self.common.dirty, !self.state.borrow().dirty.is_empty());
        match (self.dirty_place.get(), is_dirty) {
            (None, true) => {
                let place = dirty.add(self.disk, self.key, self.length);
                self.dirty_place.set(Some(place));
            }
            (Some(place), false) => {
                dirty.remove(place, self.length);
                self.dirty_place.set(None);
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// True when every byte has been written since the disk last had it.
    pub(crate) fn is_written_full(&self) -> bool {
        self.state.borrow().dirty.is_full(self.length)
    }

    /// False when there are bytes that will not have been written after `length` more of them.
    pub(super) fn may_be_full_with(&self, length: u64) -> bool {
        self.state.borrow().dirty.bytes().saturating_add(length) >= self.length
    }

    pub(crate) fn is_fragmented(&self) -> bool {
        let state = self.state.borrow();
        state.dirty.iter().nth(DIRTY_FRAGMENTS_MAX).is_some() && !state.knows(self.whole())
    }

    /// Waits while something is under way; false when nothing was.
    pub(crate) async fn wait_while_busy(&self) -> bool {
        let was_busy = self.busy.get();
        self.rested.until(|| (!self.busy.get()).then_some(())).await;
        was_busy
    }

    /// Begins exclusive work, unless another has.
    pub(crate) fn begin_work(&self) -> Option<Busy<'_, W>> {
        // Not `then_some`: what it would make and drop ends the work of the other.
        (!self.busy.replace(true)).then(|| Busy(self))
    }

    /// The bytes `range` for whoever asks for them, if all of them are known.
    pub(super) fn read(&self, range: ByteRange) -> Option<W::Payload> {
        let payload = self.cut(range)?;
        self.counted.hits.update(|hits| hits + 1);
        Some(payload)
    }

    /// The bytes `range`, if all of them are known.
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

    /// Lets all of a block that is known in full be shared without a copy.
    pub(crate) fn freeze(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.knows(self.whole()) {
            state.freeze();
        }
    }

    /// Overwrites the pieces of `runs`, which ascend, with those of `payload`.
    pub(crate) fn put(&self, world: &W, runs: &[Run], payload: &W::Payload) {
        self.overwrite(world, runs, payload);
        self.list();
    }

    fn overwrite(&self, world: &W, runs: &[Run], payload: &W::Payload) {
        let state = &mut *self.state.borrow_mut();
        if runs == [Run::contiguous(0, self.length)] {
            // The whole block is kept as it came.
            state.content = Content::Frozen(payload.clone());
        } else {
            state.memory(world, self.length).scatter(runs, payload);
        }
        let ranges = runs.iter().flat_map(|run| {
            let pieces = if run.is_contiguous() { contiguous(*run) } else { *run };
            pieces.offsets().map(move |offset| ByteRange::at(offset, pieces.length))
        });
        for range in ranges {
            state.dirty.insert(range);
        }
    }

    /// Takes what the disk had, where nothing newer is known.
    pub(crate) fn fill(&self, world: &W, payload: W::Payload) {
        let state = &mut *self.state.borrow_mut();
        let missing: Vec<ByteRange> = state.missing_in(self.whole()).collect();
        if missing == [self.whole()] {
            state.content = Content::Frozen(payload);
        } else {
            let memory = state.memory(world, self.length);
            for gap in missing {
                let run = Run::contiguous(gap.start, gap.length());
                memory.scatter(&[run], &payload.slice(gap.start, gap.length()));
            }
        }
        state.clean.insert(self.whole());
    }

    /// What the disk does not have yet. It is dirty again if its writing is given up.
    pub(crate) fn take_dirty(&self) -> Unwritten<'_, W> {
        let unwritten = Unwritten { entry: self, parts: self.cut_dirty().into() };
        let ends = unwritten.parts.iter().map(|(offset, payload)| offset + payload.length());
        self.leaving_end.set(ends.max().unwrap_or(0));
        self.list();
        unwritten
    }

    /// What is dirty, as offsets and bytes; from now on it is not.
    fn cut_dirty(&self) -> Vec<(u64, W::Payload)> {
        let state = &mut *self.state.borrow_mut();
        let ranges: Vec<ByteRange> = if state.knows(self.whole()) && !state.dirty.is_empty() {
            vec![self.whole()]
        } else {
            state.dirty.iter().collect()
        };
        state.settle();
        if ranges.len() == 1 && ranges[0].length() == self.length {
            return state.freeze().into_iter().map(|payload| (0, payload)).collect();
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

    /// Gives up what the disk does not have.
    pub(crate) fn forget_dirty(&self) {
        self.state.borrow_mut().settle();
        self.list();
    }
}

/// Dirty parts of a block on their way to the disk. Whoever writes them back may vanish in the
/// middle, with a client that was not theirs; so what was not written is dirty again then.
pub(crate) struct Unwritten<'a, W: World> {
    entry: &'a Entry<W>,
    parts: VecDeque<(u64, W::Payload)>,
}

impl<W: World> Unwritten<'_, W> {
    /// The next part to write, as its offset in the block and its bytes.
    pub(crate) fn first(&self) -> Option<(u64, W::Payload)> {
        self.parts.front().cloned()
    }

    /// The next part is on the disk.
    pub(crate) fn first_is_written(&mut self) {
        self.parts.pop_front();
    }

    /// The disk cannot have them: the loss is reported elsewhere.
    pub(crate) fn lose(mut self) {
        self.parts.clear();
    }
}

impl<W: World> Drop for Unwritten<'_, W> {
    fn drop(&mut self) {
        for (offset, payload) in &self.parts {
            let range = ByteRange::at(*offset, payload.length());
            self.entry.state.borrow_mut().dirty.insert(range);
        }
        self.entry.leaving_end.set(0);
        self.entry.list();
    }
}

/// Pieces that touch one another as one piece.
fn contiguous(run: Run) -> Run {
    Run::contiguous(run.offset, run.bytes())
}

impl<W: World> State<W> {
    /// The bytes of `range` that are not known, ascending, as few ranges.
    fn missing_in(&self, range: ByteRange) -> impl Iterator<Item = ByteRange> + '_ {
        self.dirty.missing_in(range).flat_map(|gap| self.clean.missing_in(gap))
    }

    fn knows(&self, range: ByteRange) -> bool {
        self.clean.contains(range) || self.missing_in(range).next().is_none()
    }

    /// What is dirty is so no longer, and still known.
    fn settle(&mut self) {
        for range in std::mem::take(&mut self.dirty).iter() {
            self.clean.insert(range);
        }
    }

    /// The bytes as memory that can be written to.
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

    /// The bytes as a payload to share.
    fn freeze(&mut self) -> Option<W::Payload> {
        self.content = match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Assembling(memory) => Content::Frozen(memory.freeze()),
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
    //! Proves: who cannot begin work on a block does not end that of another.
    use super::*;
    use policy::{Buffering, Pool, Stripe};
    use units::FileId;
    use wire::FileRecord;
    use world::payload::Bytes;
    use world_simulated::SimulatedWorld;

    #[test]
    fn work_goes_on_whoever_wants_to_begin_some() {
        let (name, stripe) = (String::new(), Stripe::round_robin(64, 1, 1));
        let (pool, buffering) = (Pool::all(1), Buffering::default());
        let file = FileId(1);
        let file = FileRecord { file, name, bytes: 64, cuts: 0, stripe, pool, buffering };
        let file = Rc::new(OpenFile::new(file));
        let common = Rc::new(Common::new(64, 1));
        let entry = Entry::<SimulatedWorld<Bytes>>::new(&file, (0, 0), 64, common);
        let busy = entry.begin_work();
        assert!(busy.is_some() && entry.begin_work().is_none());
        assert!(entry.is_unsettled() && entry.begin_work().is_none());
        drop(busy);
        assert!(!entry.is_unsettled() && entry.begin_work().is_some());
    }
}
