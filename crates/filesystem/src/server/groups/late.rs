//! Choice of one member, of those that have waited in vain, to ask for the missing ones.

use futures_util::future::pending;
use std::cell::Cell;

/// Mark of a call in which a member has waited for as long as it may.
#[derive(Default)]
pub(super) struct Late(Cell<bool>);

impl Late {
    /// Returns to the first caller only. The others go on waiting for the outcome of the call: the
    /// first decides it, or it ends because the first has left.
    pub(super) async fn first_only(&self) {
        if self.0.replace(true) {
            pending::<()>().await;
        }
    }
}
