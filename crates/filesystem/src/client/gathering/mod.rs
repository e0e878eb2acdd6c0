//! Small calls of programs: a client with a lease of a file gathers its small writes, and sends
//! many of them together; it keeps pages that it reads much from
//! ([0080](../../../../../docs/decisions/0080-clients-gather-small-writes-under-leases.md)).
//!
//! Invariants:
//! - A page is read only while its server can recall it, and knows of no change.
//! - Writes are gathered only while all servers of the file know it, and can recall them.
//! - Everything else that the client does with the file comes after its gathered writes.
//! - Gathered writes are sent in the order in which they were made, one flush at a time.

mod flush;
mod gatherings;
mod kept;
mod kept_files;
mod leases;
mod pages;
mod pending;
mod small_calls;
mod store;

pub(super) use gatherings::Gatherings;
pub use kept::{Kept, KeptPages};
pub(super) use kept_files::KeptFiles;
pub use pending::{Added, PendingWrites};
pub use small_calls::SmallCalls;
pub use store::{Activity, GatheredBatch, GatheredStore, KeptStore, TakenWrites};
