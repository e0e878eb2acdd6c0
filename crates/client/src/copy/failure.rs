//! The reason for which a copy fails, shared by its workers.

use interface::UserError;
use std::sync::{Mutex, PoisonError};

/// First error of any file of a copy. Later errors are ignored: most of them only say that the
/// worker was stopped.
#[derive(Default)]
pub(super) struct Failure(Mutex<Option<UserError>>);

impl Failure {
    pub(super) fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn tell(&self, error: UserError) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
    }

    pub(super) fn first(self) -> Option<UserError> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
