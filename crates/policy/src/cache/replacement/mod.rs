//! Replacement policies: which block of one file is evicted first from a full cache.
//!
//! To add a built-in policy:
//! 1. Append a variant to [`Replacement`]. Its number is stored and sent, so it goes to the end.
//! 2. Write a file beside [`lru`]: the policy, with its name, its help text and its constructor.
//! 3. Add one line to the table in [`table`].
//!
//! Commands, scenario files, error messages and help texts are made of that table. A program can
//! also add policies of its own, which need no variant: [`ReplacementPolicies::with`].

mod built_in;
mod kind;
mod loop_aware;
mod lru;
mod mru;
mod name;
mod policy;
mod random;
mod registry;
mod table;
mod toss_immediate;

pub use kind::Replacement;
pub use name::{PolicyName, PolicyNameError};
pub use policy::{MakePolicy, ReplacementPolicy};
pub use registry::{BrokenPolicy, ReplacementPolicies};
