//! Blocks that clients have pinned: clients see them in place.

use super::entry::User;
use world::World;

/// A pinned block. Unpinned when dropped.
pub(crate) struct Pin<W: World>(User<W>);

impl<W: World> Pin<W> {
    /// Pins a block, unless so much is pinned that others would lack room.
    pub(super) fn new(user: User<W>) -> Option<Self> {
        user.occupancy().pin(user.disk(), user.room()).then(|| Self(user))
    }
}

impl<W: World> Drop for Pin<W> {
    fn drop(&mut self) {
        self.0.occupancy().unpin(self.0.disk(), self.0.room());
    }
}
