//! Gathering of small writes: a client with a lease of a file keeps its writes for a while, and
//! sends many of them together
//! ([0080](../../../../../docs/decisions/0080-clients-gather-small-writes-under-leases.md)).
//!
//! Invariants:
//! - Writes are gathered only while all servers of the file know it, and can recall them.
//! - Everything else that the client does with the file comes after its gathered writes.
//! - Gathered writes are sent in the order in which they were made, one flush at a time.

mod flush;
mod gatherings;
mod pending;
mod small_writes;
mod store;

pub(super) use gatherings::Gatherings;
pub use pending::{Added, PendingWrites};
pub use small_writes::SmallWrites;
pub use store::{Activity, GatheredBatch, GatheredStore, TakenWrites};
