//! Blocks that clients have pinned: clients see them in place.

use super::entry::User;
use std::cell::Cell;
use std::rc::Rc;
use world::World;

/// A pinned block. Unpinned when dropped.
pub(crate) struct Pin<W: World> {
    user: User<W>,
    /// Number of bytes of all pins of blocks of the same disk.
    pinned: Rc<Cell<u64>>,
}

impl<W: World> Pin<W> {
    pub(super) fn new(user: User<W>, pinned: &Rc<Cell<u64>>) -> Self {
        pinned.update(|bytes| bytes + user.length());
        Self { user, pinned: Rc::clone(pinned) }
    }
}

impl<W: World> Drop for Pin<W> {
    fn drop(&mut self) {
        self.pinned.update(|bytes| bytes - self.user.length());
    }
}
