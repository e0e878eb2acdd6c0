//! A medium below several disks of one computer.

use std::cell::Cell;
use std::rc::Rc;
use units::{Duration, Instant};

/// State of a medium. Clones are the same medium.
#[derive(Clone, Default, Debug)]
pub struct SharedMedium(Rc<Cell<Option<Instant>>>);

impl SharedMedium {
    /// Accepts work that takes `length`, after all earlier work. Returns its end.
    pub fn occupy(&self, now: Instant, length: Duration) -> Instant {
        let end = self.0.get().unwrap_or(Instant::START).max(now) + length;
        self.0.set(Some(end));
        end
    }
}
