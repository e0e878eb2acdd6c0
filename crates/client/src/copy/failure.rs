//! Why a copy ends before its time.

use interface::UserError;
use std::sync::{Mutex, PoisonError};

/// Why a copy ends before its time: the first error of any of its files. What others meet after
/// that, most of all that they were stopped, is no reason.
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
