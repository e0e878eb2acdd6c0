//! Refill: what data directories lack that took the place of lost ones is filled from copies, while
//! the instance is used.
//!
//! | where | what |
//! |---|---|
//! | `lacking.rs` | which files are lacking, on stable storage |
//! | `listing.rs` | a new directory lacks its part of all files that the catalogue has |
//! | `filling.rs` | this server's own parts are filled from their copies |
//! | `lost_copies.rs` | copies that were lost are written anew by the servers of the parts |
//! | `parity.rs` | parity that was lost is made anew from the pieces of its rows |
//!
//! Until a part is filled, its copy is the file: reads come from there, and a write that does not
//! reach the copy fails. Afterwards it is as any other part of a mirrored file
//! ([mirrors](super::mirrors)).

mod filling;
mod lacking;
mod listing;
mod lost_copies;
mod parity;

pub(crate) use lacking::{Lacking, LackingFile};

use super::state::Server;
use futures_util::future::join3;
use std::rc::Rc;
use units::Duration;
use world::World;

/// Pause before what has failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_ms(1_000);

impl<W: World> Server<W> {
    /// Fills what directories lack, whenever some do.
    pub(crate) async fn refill(self: &Rc<Self>) {
        self.list_lacking().await;
        // The server may have ended before it was told.
        self.record_lost().await;
        join3(self.fill_parts(), self.announce_lost_copies(), self.make_parity()).await;
    }
}
