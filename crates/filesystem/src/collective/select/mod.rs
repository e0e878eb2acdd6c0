//! Selection: the servers look into the records that they read, and deliver those that match
//! (TOCS 1997, section 8: data-dependent filtering, and distribution by value).
//!
//! ```text
//! one client:                                    each server:
//!   ask each server to begin                       find which blocks of the records are here
//!                                                  sort them as they lie on each disk
//!                                                  with two buffers for each disk:
//!                                                    read a block, look at its records
//!                                                    keep those that match, or add them up
//!   bring the rest of each record that goes on     look at it, too
//!     in a block of another server
//! each client:
//!   ask how many records of it each block has      answer
//!   find the place of each in its memory
//!   ask for them                                   memput them, reading again what was not kept
//! ```
//!
//! The disks are read once, as far as the records that match have room in memory
//! ([`ServerConfig::buffer_bytes`](crate::ServerConfig)).

use futures_util::future::{LocalBoxFuture, join_all};
use wire::Fault;
use world::JobFailed;

pub(crate) mod active;
pub(crate) mod client;
pub(crate) mod deliver;
pub(crate) mod members;
pub(crate) mod requests;
pub(crate) mod scan;
pub(crate) mod summaries;

/// Fault of a selection whose computation in another place has failed.
fn job_fault(failed: JobFailed) -> Fault {
    Fault::BadSelection { cause: failed.to_string() }
}

/// Waits for the ends of all works, whatever others end with. In boxes, so that the code that waits
/// is the same for all kinds of work.
async fn all_ended<T>(
    works: impl Iterator<Item = LocalBoxFuture<'_, Result<T, Fault>>>,
) -> Result<Vec<T>, Fault> {
    let works: Vec<_> = works.collect();
    join_all(works).await.into_iter().collect()
}
