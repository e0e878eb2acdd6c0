//! State of a client's cache.

use crate::line_locks::LineLocks;
use crate::signal::Signal;
use policy::{ClientCache, ClientCacheSpec, LineKey};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::{ByteRange, FileId, PeerId, ServerId};
use wire::{DROPPED_LINES_MAX, Fault, FileRecord, LineName};
use world::World;

/// Maximum number of lines that one read or write works on at a time.
pub(super) const LINES_AT_ONCE_MAX: usize = 16;

/// Maximum number of lines on their way out of the cache. Reads and writes wait for them.
const LEAVING_MAX: usize = 64;

/// Cache of one client.
pub(crate) struct LineCache<W: World> {
    pub(super) spec: ClientCacheSpec,
    pub(super) line_bytes: u64,
    /// Secret by which lines of other clients are recognized.
    pub(super) ticket: u64,
    pub(super) lines: RefCell<Lines<W::Payload>>,
    /// Turns of this client's own work on each line.
    pub(super) locks: LineLocks,
    /// Notified when a line has left.
    pub(super) left: Signal,
    /// Lines that were dropped, and whose servers do not know it yet.
    dropped: RefCell<BTreeMap<ServerId, BTreeSet<LineKey>>>,
    /// Connections to other clients, by address.
    pub(super) peers: RefCell<BTreeMap<String, PeerId>>,
    pub(super) connecting: RefCell<BTreeSet<String>>,
    pub(super) connected: Signal,
    /// Number of clients that have left. A line that one of them was to send may not come.
    pub(super) departures: Cell<u64>,
    pub(super) departed: Signal,
    /// First fault of each file with which written bytes were lost, until it is reported.
    faults: RefCell<BTreeMap<FileId, Fault>>,
    pub(super) counts: RefCell<CacheCounts>,
}

/// Lines in the cache and on their way.
pub(super) struct Lines<P> {
    pub(super) policy: ClientCache,
    /// Data of the lines in both parts of the cache.
    pub(super) held: BTreeMap<LineKey, Held<P>>,
    /// Lines that a request is about. True if the line was invalidated meanwhile, after the server
    /// sent it.
    pub(super) pending: BTreeMap<LineKey, bool>,
    /// Lines that were evicted and that their server does not know of yet.
    pub(super) leaving: BTreeMap<LineKey, Leaving<P>>,
    /// Lines that other clients will send.
    pub(super) expected: BTreeMap<LineKey, Expected>,
    /// Number of lines that were ever expected.
    pub(super) expectations: u64,
}

/// Line in the cache.
pub(super) struct Held<P> {
    pub(super) line: P,
    pub(super) server: ServerId,
}

/// Line that another client will send.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    pub(super) server: ServerId,
    /// Number of the move.
    pub(super) number: u64,
    /// Moves that are left to it.
    pub(super) chances: u32,
    /// Place in the order in which lines were expected.
    pub(super) order: u64,
}

/// Line on its way out of the cache.
pub(super) struct Leaving<P> {
    pub(super) line: P,
    pub(super) server: ServerId,
    pub(super) is_dirty: bool,
    pub(super) chances: Option<u32>,
}

/// Counts of a client's cache, in lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    /// Reads that the cache answered.
    pub hits: u64,
    /// Lines that servers sent, from their caches or disks.
    pub from_servers: u64,
    /// Lines that other clients sent.
    pub from_clients: u64,
    /// Lines that this client sent to readers.
    pub sent: u64,
    /// Lines that were dropped because another client wrote them.
    pub invalidated: u64,
}

/// Part of a read or write that lies in one line.
#[derive(Clone, Copy)]
pub(super) struct LinePart {
    pub(super) key: LineKey,
    pub(super) server: ServerId,
    /// Bytes of the part, relative to the line.
    pub(super) range: ByteRange,
    /// Offset of the part in the read or write.
    pub(super) offset: u64,
}

impl<W: World> LineCache<W> {
    pub(super) fn new(spec: ClientCacheSpec, line_bytes: u64, ticket: u64) -> Self {
        let lines = Lines {
            policy: ClientCache::new(&spec),
            held: BTreeMap::new(),
            pending: BTreeMap::new(),
            leaving: BTreeMap::new(),
            expected: BTreeMap::new(),
            expectations: 0,
        };
        Self {
            spec,
            line_bytes,
            ticket,
            lines: RefCell::new(lines),
            locks: LineLocks::default(),
            left: Signal::default(),
            dropped: RefCell::default(),
            peers: RefCell::default(),
            connecting: RefCell::default(),
            connected: Signal::default(),
            departures: Cell::default(),
            departed: Signal::default(),
            faults: RefCell::default(),
            counts: RefCell::default(),
        }
    }

    /// Cuts a range of a file into the parts of its lines.
    pub(super) fn parts(
        &self,
        file: &FileRecord,
        range: ByteRange,
    ) -> Result<impl Iterator<Item = LinePart>, Fault> {
        if range.end > file.bytes {
            return Err(Fault::PastEnd { file: file.name.clone(), bytes: file.bytes });
        }
        let block_bytes = file.stripe.block_bytes;
        if !block_bytes.is_multiple_of(self.line_bytes) {
            let cause = format!(
                "a block of {:?} has {block_bytes} bytes, which is no multiple of the {} bytes of \
                 a block of this client's cache",
                file.name, self.line_bytes
            );
            return Err(Fault::BadRequest { cause });
        }
        let (line_bytes, file) = (self.line_bytes, file.clone());
        let lines = match range.is_empty() {
            true => 0..0,
            false => range.start / line_bytes..range.end.div_ceil(line_bytes),
        };
        let part = move |line: u64| {
            let start = line * line_bytes;
            let part = ByteRange::at(start, line_bytes).intersect(range);
            LinePart {
                key: (file.file, line),
                server: file.server_of(start / block_bytes),
                range: ByteRange::new(part.start - start, part.end - start),
                offset: part.start - range.start,
            }
        };
        Ok(lines.map(part))
    }

    /// Keeps a fault with which bytes of a file were lost.
    pub(super) fn keep_fault(&self, file: FileId, fault: Fault) {
        self.faults.borrow_mut().entry(file).or_insert(fault);
    }

    /// Reports, once, the fault with which bytes of a file were lost.
    pub(super) fn report_fault(&self, file: FileId) -> Result<(), Fault> {
        self.faults.borrow_mut().remove(&file).map_or(Ok(()), Err)
    }

    /// Waits until few lines are on their way out.
    pub(super) async fn until_few_leave(&self) {
        let are_few = || self.lines.borrow().leaving.len() < LEAVING_MAX;
        self.left.until(|| are_few().then_some(())).await;
    }

    /// Notes that a line was dropped. A request about it may give it back before its server would
    /// read the note.
    pub(super) fn note_dropped(&self, lines: &Lines<W::Payload>, server: ServerId, key: LineKey) {
        if !lines.pending.contains_key(&key) {
            self.dropped.borrow_mut().entry(server).or_default().insert(key);
        }
    }

    /// Returns lines of a server that were dropped, for a request that is sent to it at once: no
    /// later request about them may overtake it.
    pub(super) fn take_dropped(&self, server: ServerId) -> Vec<LineName> {
        let mut dropped = self.dropped.borrow_mut();
        let Some(of_server) = dropped.get_mut(&server) else { return Vec::new() };
        let mut taken = Vec::new();
        while taken.len() < DROPPED_LINES_MAX
            && let Some((file, line)) = of_server.pop_first()
        {
            taken.push(LineName { file, line });
        }
        taken
    }

    /// Begins a request about a line, which may give the line to this client.
    pub(super) fn begin(&self, part: &LinePart) -> PendingLine<'_, W> {
        let LinePart { key, server, .. } = *part;
        self.lines.borrow_mut().pending.insert(key, false);
        if let Some(of_server) = self.dropped.borrow_mut().get_mut(&server) {
            of_server.remove(&key);
        }
        PendingLine { cache: self, key, has_ended: false }
    }
}

impl<P: Clone> Lines<P> {
    /// Takes in a line. Returns the one that leaves for it, which only the caller has now.
    pub(super) fn insert(
        &mut self,
        key: LineKey,
        line: P,
        server: ServerId,
        is_last_copy: bool,
    ) -> Option<(LineKey, Leaving<P>)> {
        self.held.insert(key, Held { line, server });
        self.leaving.remove(&key);
        let evicted = self.policy.insert(key, is_last_copy)?;
        let (gone, is_dirty, chances) = (evicted.key, evicted.is_dirty, evicted.chances);
        let held = match self.policy.holds(gone) {
            // The global part still has it.
            true => {
                let Held { line, server } = self.held.get(&gone)?;
                Held { line: line.clone(), server: *server }
            }
            false => self.held.remove(&gone)?,
        };
        let Held { line, server } = held;
        Some((gone, Leaving { line, server, is_dirty, chances }))
    }

    /// Notes that a line that is on its way here must not be kept.
    pub(super) fn will_not_keep(&mut self, key: LineKey) {
        self.expected.remove(&key);
        if let Some(is_stale) = self.pending.get_mut(&key) {
            *is_stale = true;
        }
    }

    /// Drops a line from the client's own part. A request about it will not keep it. Its server
    /// may count on a copy in the other part.
    pub(super) fn drop_own(&mut self, key: LineKey) {
        self.will_not_keep(key);
        self.leaving.remove(&key);
        self.policy.remove_own(key);
        if !self.policy.holds(key) {
            self.held.remove(&key);
        }
    }

    /// Drops a line wherever it is, at the command of its server. A request about it will not keep
    /// it.
    pub(super) fn invalidate(&mut self, key: LineKey) -> bool {
        self.will_not_keep(key);
        let left = self.leaving.remove(&key).is_some();
        self.policy.remove(key);
        self.held.remove(&key).is_some() || left
    }
}

/// Request about a line. One that is dropped before its end may yet change the line at the server,
/// so the line is then dropped from the client's own part too.
pub(super) struct PendingLine<'a, W: World> {
    cache: &'a LineCache<W>,
    key: LineKey,
    has_ended: bool,
}

impl<W: World> PendingLine<'_, W> {
    /// Ends the request. Returns true if the line was invalidated since it began.
    pub(super) fn end(mut self) -> bool {
        self.has_ended = true;
        self.cache.lines.borrow().pending.get(&self.key).copied().unwrap_or(true)
    }
}

impl<W: World> Drop for PendingLine<'_, W> {
    fn drop(&mut self) {
        let lines = &mut *self.cache.lines.borrow_mut();
        lines.pending.remove(&self.key);
        // A line that was expected before is obsolete.
        lines.expected.remove(&self.key);
        if !self.has_ended {
            lines.drop_own(self.key);
        }
    }
}
