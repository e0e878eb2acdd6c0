//! Writes of one file that wait to be sent.

use super::store::{Activity, GatheredBatch, TakenWrites};
use policy::GatheredWrite;
use std::collections::BTreeMap;
use std::ops::Range;
use units::{ByteRange, ServerId};
use wire::{Fault, FileRecord, GATHERED_BYTES_MAX, GATHERED_WRITES_MAX};

/// Number of small writes of a file after which a client asks for its lease, at first.
const WRITES_BEFORE_LEASE: u32 = 4;

/// Largest such number. It doubles each time that a lease was not worth its messages.
const WRITES_BEFORE_LEASE_MAX: u32 = 1 << 10;

/// Number of writes that are worth the messages of a lease.
const WRITES_OF_LEASE_MIN: u64 = 16;

/// Result of [`PendingWrites::add`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// The write is gathered.
    Gathered,
    /// The write is gathered, and now is a good time to send what there is.
    HalfFull,
    /// There is no room: what there is must be sent first.
    Full,
    /// No write may be gathered.
    Refused,
    /// No write may be gathered, but it is time to ask for a lease.
    WantsLease,
}

/// Writes of one file that wait to be sent. `D` holds the bytes for one server.
pub struct PendingWrites<D> {
    may_gather: bool,
    servers: BTreeMap<ServerId, Pending<D>>,
    bytes: u64,
    writes: usize,
    /// Smallest range that holds all writes.
    hull: ByteRange,
    oldest: Option<u64>,
    latest: u64,
    /// Smallest range that holds the writes that are being sent.
    sending: Option<ByteRange>,
    failure: Option<Fault>,
    /// Writes since the last lease, and the number that it takes to ask for the next.
    without_lease: u32,
    before_lease: u32,
    /// Writes that were gathered with this lease.
    with_lease: u64,
}

struct Pending<D> {
    writes: Vec<GatheredWrite>,
    data: D,
}

impl<D: Default> Default for PendingWrites<D> {
    fn default() -> Self {
        Self {
            may_gather: false,
            servers: BTreeMap::new(),
            bytes: 0,
            writes: 0,
            hull: ByteRange::at(0, 0),
            oldest: None,
            latest: 0,
            sending: None,
            failure: None,
            without_lease: 0,
            before_lease: WRITES_BEFORE_LEASE,
            with_lease: 0,
        }
    }
}

impl<D: Default> PendingWrites<D> {
    /// Adds a write of `range` made at `now`, which is not earlier than the one before. Calls
    /// `append` with the data of a server and the bytes of the write that go there.
    pub fn add(
        &mut self,
        record: &FileRecord,
        range: ByteRange,
        now: u64,
        mut append: impl FnMut(&mut D, Range<u64>),
    ) -> Added {
        if !self.may_gather {
            self.without_lease = self.without_lease.saturating_add(1);
            let wants = self.failure.is_none() && self.without_lease > self.before_lease;
            return if wants { Added::WantsLease } else { Added::Refused };
        }
        let blocks = record.stripe.blocks_in(range);
        let (own_bytes, own_writes) = (range.length(), (blocks.end - blocks.start) as usize);
        if own_bytes > GATHERED_BYTES_MAX || own_writes > GATHERED_WRITES_MAX {
            return Added::Refused;
        }
        let (bytes, writes) = (self.bytes + own_bytes, self.writes + own_writes);
        if bytes > GATHERED_BYTES_MAX || writes > GATHERED_WRITES_MAX {
            return Added::Full;
        }
        for block in blocks {
            let part = record.stripe.block_range(block, u64::MAX).intersect(range);
            let pending = self
                .servers
                .entry(record.server_of(block))
                .or_insert_with(|| Pending { writes: Vec::new(), data: D::default() });
            let (offset, length) = (part.start, part.length());
            pending.writes.push(GatheredWrite { offset, length, stamp: now });
            append(&mut pending.data, part.start - range.start..part.end - range.start);
        }
        let is_first = self.oldest.is_none();
        let ByteRange { start, end } = self.hull;
        self.hull = match is_first {
            true => range,
            false => ByteRange::new(start.min(range.start), end.max(range.end)),
        };
        self.oldest.get_or_insert(now);
        self.with_lease += 1;
        let was_half_full = self.is_half_full();
        (self.latest, self.bytes, self.writes) = (now, bytes, writes);
        match self.is_half_full() && !was_half_full {
            true => Added::HalfFull,
            false => Added::Gathered,
        }
    }

    fn is_half_full(&self) -> bool {
        self.bytes >= GATHERED_BYTES_MAX / 2 || self.writes >= GATHERED_WRITES_MAX / 2
    }

    /// Permits to gather writes from `now` on, or forbids it.
    pub fn permit(&mut self, may_gather: bool, now: u64) {
        if may_gather {
            (self.with_lease, self.latest) = (0, now);
            self.failure = None;
        } else if self.may_gather {
            self.without_lease = 0;
            self.before_lease = match self.with_lease >= WRITES_OF_LEASE_MIN {
                true => WRITES_BEFORE_LEASE,
                false => (self.before_lease * 2).min(WRITES_BEFORE_LEASE_MAX),
            };
        }
        self.may_gather = may_gather;
    }

    /// Notes that a lease is being asked for.
    pub fn asked(&mut self) {
        self.without_lease = 0;
    }

    /// Notes that a lease was asked for in vain.
    pub fn refused(&mut self) {
        self.without_lease = 0;
        self.before_lease = (self.before_lease * 2).min(WRITES_BEFORE_LEASE_MAX);
    }

    /// Takes all writes at `now`, with the data that `data` makes of the bytes for a server.
    pub fn take<P>(&mut self, now: u64, mut data: impl FnMut(D) -> P) -> TakenWrites<P> {
        let servers = std::mem::take(&mut self.servers).into_iter();
        let batches: Vec<GatheredBatch<P>> = servers
            .map(|(server, pending)| {
                let Pending { writes, data: bytes } = pending;
                GatheredBatch { server, writes, data: data(bytes) }
            })
            .collect();
        let end = if batches.is_empty() { 0 } else { self.hull.end };
        self.sending = (!batches.is_empty()).then_some(self.hull);
        (self.bytes, self.writes, self.oldest) = (0, 0, None);
        TakenWrites { batches, until: now.max(self.latest), end }
    }

    /// Notes that what was taken is carried out, or lost.
    pub fn flushed(&mut self, outcome: Result<(), Fault>) {
        self.sending = None;
        if let Err(fault) = outcome {
            self.failure.get_or_insert(fault);
        }
    }

    /// Returns, once, why writes are lost.
    pub fn take_failure(&mut self) -> Option<Fault> {
        self.failure.take()
    }

    /// True if a call on `range` may come before a write that is not carried out, or must tell of
    /// lost ones.
    pub fn concerns(&self, range: ByteRange) -> bool {
        let overlaps = |hull: ByteRange| !hull.intersect(range).is_empty();
        self.failure.is_some()
            || self.oldest.is_some() && overlaps(self.hull)
            || self.sending.is_some_and(overlaps)
    }

    /// End of the writes that are not known to be carried out.
    pub fn end(&self) -> u64 {
        let own = if self.oldest.is_some() { self.hull.end } else { 0 };
        self.sending.map_or(own, |sending| sending.end.max(own))
    }

    /// Tells when writes were gathered.
    pub fn activity(&self) -> Activity {
        Activity { oldest: self.oldest, latest: self.latest }
    }
}
