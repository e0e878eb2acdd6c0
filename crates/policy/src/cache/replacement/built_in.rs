//! Declaration of a built-in replacement policy: value, name, help text and constructor.

use super::kind::Replacement;
use super::policy::MakePolicy;
use crate::choice::Choice;

/// Built-in replacement policy.
pub(super) struct BuiltIn {
    /// Value, name and help text.
    pub(super) choice: Choice<Replacement>,
    /// Constructor.
    pub(super) make: MakePolicy,
}
