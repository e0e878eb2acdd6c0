//! Memory that peers can reach for the time of a transfer.

use units::RegionId;
use world::World;

/// Withdraws a memory when a transfer is dropped before its end. Forgotten where the withdrawal is
/// waited for.
pub(crate) struct WithdrawnOnDrop<'a, W: World> {
    pub(crate) world: &'a W,
    pub(crate) region: RegionId,
}

impl<W: World> Drop for WithdrawnOnDrop<'_, W> {
    fn drop(&mut self) {
        // It begins at once; nobody waits for its end.
        drop(self.world.withdraw(self.region));
    }
}
