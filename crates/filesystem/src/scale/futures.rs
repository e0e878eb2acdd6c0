//! Futures of requests: small, and not moved.

use std::convert::Infallible;
use std::pin::Pin;
use world::{Scope, World};

/// Moves the future of rare work to the heap. The future of a request has room for each future that
/// it awaits, so a large one would make every request as large.
pub(crate) fn rare<F: Future>(future: F) -> Pin<Box<F>> {
    Box::pin(future)
}

/// Starts the future that `build` returns in a scope. It is built in its place, so it is not moved.
#[inline]
pub(crate) fn start<W, F>(scope: &Scope<W, Infallible>, build: impl FnOnce() -> F)
where
    W: World,
    F: Future<Output = Result<(), Infallible>> + 'static,
{
    scope.spawn_built(build);
}
