//! Decisions of a server's block cache.
//!
//! [`Buffering`] is what the users of a file declare. [`EvictionOrder`] tells which block of all
//! files is evicted next; for each file it asks the [`ReplacementPolicy`] of that file.

mod buffering;
mod eviction_order;
mod lru;
mod prefetch;
mod ranges;
mod replacement;
mod window;

pub use buffering::{Buffering, BufferingError, Declared, Prefetch, WINDOW_BLOCKS};
pub use eviction_order::{BlockKey, EvictionOrder};
pub use lru::Lru;
pub use prefetch::next_on_disk;
pub use ranges::RangeSet;
pub use replacement::{
    BrokenPolicy, MakePolicy, PolicyName, PolicyNameError, Replacement, ReplacementPolicies,
    ReplacementPolicy,
};
pub use window::Window;
