//! Disk of a real node in memory that outlives the process of the node.
//!
//! ```text
//! memory_disk   the disk: objects made of chunks, written without system calls
//!   object      the chunks of one object, in the order of their offsets
//!   chunk       one chunk: its bytes, their checksums, and its entry in the table
//! memory        the memory itself, one per process: its layout, who has which part of it
//!   table       what a new process must know: which object has which bytes
//!   part        a part of it as a memory
//!   buddies     free parts of the memory
//! reserve       making the memory, as much as the machine has
//! ```
//!
//! The memory is a file without a name (memfd), also held by a process that does nothing else, so
//! that it is there when a server has crashed
//! ([0082](../../../../docs/decisions/0082-disks-in-memory.md)). It is the arena of its process:
//! data that was fetched from a client into it becomes part of an object where it is, and peers on
//! the machine read objects where they are.
//!
//! Invariants:
//!
//! - At any instruction at which the process is killed, the table says which bytes belong to which
//!   object. A write that has returned is in it.
//! - A chunk that a payload shares is not written; a write replaces it.
//! - Bytes that do not match their checksum are never returned.

mod buddies;
mod chunk;
mod memory;
#[expect(clippy::module_inception, reason = "it is the disk itself")]
mod memory_disk;
mod object;
mod part;
mod reserve;
mod table;

pub(crate) use memory::{allocate, free};
pub use memory::{holds_objects, memory_in_use, use_memory};
pub(crate) use memory_disk::MemoryDisk;
pub use reserve::{ReserveError, reserve_memory};
