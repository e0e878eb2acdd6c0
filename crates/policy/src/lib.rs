//! Decisions of the file system, as pure functions and small state machines: where a block lies,
//! which bytes belong to a client, in which order a disk works, what a cache keeps.
//!
//! Invariants:
//! - No clock, no input or output, no async, no randomness, no order that depends on a hash.
//! - A value that passed its `validate` makes no function of this crate panic, overflow, or run for
//!   longer than its answer is long. A value that did not pass may do so.
//!
//! | question | answer | folder |
//! |---|---|---|
//! | Which bytes of the file go where in which client's memory? | [`Access`] | `access` |
//! | Which blocks and servers hold some of one client's part? | [`Access::blocks_of`] | `access` |
//! | Which access do the papers mean by "rbc"? | [`Pattern`] | `access` |
//! | Which server and disk hold a block of a file? | [`Stripe`], [`Pool`] | `placement` |
//! | Which server has a copy of what another one holds? | [`Protection`] | `placement` |
//! | How much of a file would the loss of a server leave? | [`ProtectedBytes`] | `placement` |
//! | In which order does a disk serve its blocks? | [`disk_order`] | `collective` |
//! | What does each client read itself in two-phase I/O? | [`conforming_segment`] | `collective` |
//! | Which clients make requests at a time (node grouping)? | [`NodeGroups`] | `collective` |
//! | Which members of a group exchange messages? | [`Dissemination`] | `collective` |
//! | Which member of a group gets a lock of a range next? | [`LockTable`] | `locks.rs` |
//! | Which of several gathered writes of a byte counts? | [`WriteOrder`] | `gathering` |
//! | How is a file buffered? | [`Buffering`] | `cache` |
//! | Which block is evicted from a full cache? | [`EvictionOrder`] | `cache` |
//! | Which block of one file is evicted first? | [`ReplacementPolicy`] | `cache/replacement` |
//! | Which blocks are read ahead? | [`next_on_disk`], [`Window`] | `cache` |
//! | Which bytes of a block have arrived? | [`RangeSet`] | `cache` |
//! | Which blocks does a client keep? | [`ClientCache`] | `client_cache` |
//! | Which records of a file match, and which client gets each? | [`Selection`] | `select` |
//! | Which client has a copy, and where does an evicted one go? | [`Directory`] | `client_cache` |

mod access;
mod cache;
mod choice;
mod client_cache;
mod collective;
mod extensions;
mod gathering;
mod locks;
mod placement;
mod select;

pub use access::{
    Access, AccessError, BYTES_MAX, CLIENTS_MAX, Chunk, DIMENSIONS_MAX, Dimension, Direction,
    Distribution, LEVELS_MAX, LIST_ENTRIES_MAX, Level, ListEntry, NESTS_MAX, Nested, OwnPart,
    Pattern, PatternError, PatternKind, SHAPE_RECORDS_MAX, covers_block,
};
pub use cache::{
    BlockKey, BrokenPolicy, Buffering, BufferingError, Declared, EvictionOrder, Lru, MakePolicy,
    PolicyName, PolicyNameError, Prefetch, RangeSet, Replacement, ReplacementPolicies,
    ReplacementPolicy, WINDOW_BLOCKS, Window, next_on_disk,
};
pub use client_cache::{
    ClientCache, ClientCacheSpec, ClientCacheSpecError, Cooperation, Directory, EvictedLine,
    LINES_MAX, LineFate, LineKey, LineSource, Organisation, Stored, WriteMiss, WritePolicy,
};
pub use collective::{
    DiskOrder, Dissemination, NodeGroups, SORT_WINDOW_BLOCKS, conforming_segment, disk_order,
};
pub use extensions::Extensions;
pub use gathering::{GatheredPart, GatheredWrite, WriteOrder};
pub use locks::{LockKind, LockLimits, LockName, LockRefusal, LockTable, LockedRange};
pub use placement::{
    BLOCK_BYTES_MAX, Location, PAGE_MAP_MAX, PageMap, PageMapError, Placement, Pool, PoolError,
    ProtectedBytes, Protection, ProtectionError, ROW_BLOCKS_MAX, RowPiece, Rows, Stripe,
    StripeError, UnknownProtection, Unprotected, copied_file, copy_object, part_bytes,
};
pub use select::{
    Answers, ApartOperator, BATCH_RECORDS_MAX, Bounds, Comparison, Condition, Constant,
    Destination, EXPRESSION_NODES_MAX, EXPRESSION_OPERANDS_MAX, Expression, ExpressionError,
    FUNCTION_NAME_BYTES_MAX, FUNCTION_OPERANDS_MAX, FailedOperator, FieldAt, HISTOGRAM_EDGES_MAX,
    KeyError, LookError, MODULE_BYTES_MAX, Matches, ModuleCompiler, Node, Number, NumberKind,
    Operator, RECORD_BYTES_MAX, RecordBatch, RecordFunction, RecordFunctions, RecordGrid,
    RecordGridError, RecordOperator, RecordOperators, Reduced, Reduction, ReductionError,
    RefusedFunction, SET_VALUES_MAX, SUMMARY_FIELDS_MAX, Selected, Selection, SelectionError,
    Selector, UnknownFunction, ValueKind, batch_records,
};
