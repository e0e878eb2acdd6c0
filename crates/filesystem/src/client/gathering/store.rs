//! Places where gathered writes and pages are kept.

use policy::GatheredWrite;
use units::ServerId;
use wire::{Fault, FileRecord};

/// Gathered writes of one server.
#[derive(Clone)]
pub struct GatheredBatch<P> {
    /// Server that has the bytes.
    pub server: ServerId,
    /// Writes in the order in which they were made, each within one block of the file, at most
    /// [`wire::GATHERED_WRITES_MAX`].
    pub writes: Vec<GatheredWrite>,
    /// Their bytes, one write after the other, at most [`wire::GATHERED_BYTES_MAX`].
    pub data: P,
}

/// All writes of a file that were gathered up to some time.
pub struct TakenWrites<P> {
    /// A batch for each server that has some of the bytes.
    pub batches: Vec<GatheredBatch<P>>,
    /// Time in ns: all writes of the client up to it are in a batch, or were in an earlier one.
    pub until: u64,
    /// End of the last byte of all writes.
    pub end: u64,
}

/// Times at which writes were gathered, in ns of the clock of the client's world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Time of the oldest write that was not taken yet.
    pub oldest: Option<u64>,
    /// Time of the latest write.
    pub latest: u64,
}

/// Place where the pages of one file are kept. None of these calls waits.
pub trait KeptStore {
    /// Drops all pages: nobody reads from them any more when this returns.
    fn drop_pages(&self);

    /// Time of the last read, in ns of the clock of the client's world.
    fn used_at(&self) -> u64;

    /// Notes that at this time, in ns, all servers knew that this client may keep pages.
    fn confirm(&self, at: u64);

    /// Number that handles of the same place have in common, and no others.
    fn identity(&self) -> usize;
}

/// Place where the writes of one file are gathered: a part of a program's memory that its threads
/// share, or of a simulated client. None of these calls waits.
pub trait GatheredStore<P> {
    /// Permits to gather writes, or forbids it: then none is added any more.
    fn permit(&self, may_gather: bool);

    /// Takes all writes. They count as being sent until [`GatheredStore::flushed`].
    fn take(&self) -> TakenWrites<P>;

    /// Ends what [`GatheredStore::take`] began. A fault means that writes are lost.
    fn flushed(&self, outcome: Result<(), Fault>);

    /// Tells when writes were gathered.
    fn activity(&self) -> Activity;

    /// Returns the record of the file.
    fn record(&self) -> FileRecord;

    /// Learns the size of the file from a record.
    fn learn(&self, record: &FileRecord);

    /// Returns, once, the fault for which writes are lost.
    fn take_failure(&self) -> Option<Fault>;
}
