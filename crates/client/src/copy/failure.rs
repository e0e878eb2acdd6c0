//! Why a copy ends before its time.

use interface::UserError;
use std::cell::RefCell;

/// Why a copy ends before its time: the first error of any of its files. What others meet after
/// that, most of all that they were stopped, is no reason.
#[derive(Default)]
pub(super) struct Failure(RefCell<Option<UserError>>);

impl Failure {
    pub(super) fn is_there(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub(super) fn tell(&self, error: UserError) {
        self.0.borrow_mut().get_or_insert(error);
    }

    pub(super) fn first(self) -> Option<UserError> {
        self.0.into_inner()
    }
}
