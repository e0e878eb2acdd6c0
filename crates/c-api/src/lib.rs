//! The C interface: the functions that `include/unisono.h` declares, on top of the crate `client`,
//! and those of `include/unisono_trace.h`, on top of the crate `trace`.
//!
//! Each module has the functions of one section of the header, which is their documentation.
//! Arguments come in the types of [`arguments`], which are pointers as C gives them; calls go
//! through [`border`].
//!
//! *Invariants:*
//! - No panic leaves a function: it becomes an error of kind `internal`.
//! - Every pointer is checked for NULL, every string for UTF-8, every count for its limit.
//! - A part is validated when it is made; the I/O thread never sees one that is not valid.
//! - A handle of another process is neither used nor freed.
//! - `scripts/install` exports the functions of `unisono.map` and nothing else.

mod arguments;
mod border;
mod collectives;
mod condition;
mod connections;
mod errors;
mod files;
mod groups;
mod handles;
mod hints;
mod locks;
mod names;
mod operations;
mod pages;
mod parts;
mod records;
mod traces;
mod version;
