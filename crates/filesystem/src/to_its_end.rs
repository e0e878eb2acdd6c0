//! Work that goes on when whoever waits for it is given up.

use crate::signal::Signal;
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use world::{Scope, Tasks};

/// Carries out work to its end as a task of `scope`, also when the future that waits for its result
/// is dropped.
pub(crate) async fn to_its_end<W: Tasks, T: 'static>(
    scope: &Scope<W, Infallible>,
    work: impl Future<Output = T> + 'static,
) -> T {
    let ended = Rc::new((Cell::new(None), Signal::default()));
    let ending = Rc::clone(&ended);
    scope.spawn(async move {
        ending.0.set(Some(work.await));
        ending.1.notify();
        Ok(())
    });
    ended.1.until(|| ended.0.take()).await
}
