//! Parameters of a server.

use crate::Costs;
use policy::Extensions;
use units::ServerId;

/// Parameters of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Number of the server. Server 0 keeps the catalogue.
    pub id: ServerId,
    /// Number of servers of the instance.
    pub servers: u32,
    /// Capacity of the block cache, in bytes. It holds at least one block.
    pub cache_bytes: u64,
    /// Dirty high-water mark, percent of the cache. Above it the oldest dirty blocks are written
    /// back down to half the mark. 100 disables this.
    pub dirty_percent: u32,
    /// Number of buffers of a collective, or of the part of one client, for each disk: with two,
    /// one is at the disk while the other is on the network (TOCS 1997, section 4).
    pub buffers_per_disk: u32,
    /// Maximum number of bytes of all these buffers, besides the cache, in equal parts for the
    /// disks. One collective always has its buffers. As many bytes of write requests may wait for
    /// room in the cache, and as many bytes of records that match are kept for selections.
    /// `u64::MAX` means no limit; then the watchdog disconnects no client either.
    pub buffer_bytes: u64,
    /// True if clients may use caches. Then every other change of a file looks whether the file is
    /// in such a cache.
    pub client_caches: bool,
    /// True if ends stay in the cache: the last block of a file when the file becomes longer, and
    /// the first and last block of a collective call that wants only some of their bytes.
    /// Otherwise the one is written back and read again, and the others go to the disk, as in the
    /// simulated machines of the papers.
    pub caches_ends: bool,
    /// True if other servers have copies of the catalogue of this one.
    pub copies_catalogue: bool,
    /// For each disk that took the place of a lost one, a number that no other disk has had in that
    /// place, else 0. What it lacks is filled from copies. May be shorter than the list of disks.
    pub replacements: Vec<u64>,
    /// Maximum number of bytes that are filled in a second; `None` means no limit.
    pub refill_rate: Option<u64>,
    /// True if nothing may be changed, because some data of the instance is lost.
    pub read_only: bool,
    /// Processor costs of the server's own work.
    pub costs: Costs,
    /// Replacement policies that files may choose, and functions for selections of records.
    pub extensions: Extensions,
}
