//! The library that programs link: files and collectives of an instance.
//!
//! One thread of the process, the I/O thread, talks to the servers for all connections; it sleeps
//! when nothing is under way. Calls hand their work to it and wait, or get an [`Operation`] to wait
//! for later; transfers make progress while the program computes. Small reads and writes that wait
//! are an exception: the calling thread talks to the server.
//!
//! *Invariants:*
//! - Every type here may be used and dropped by any thread.
//! - Servers never write memory of the program. The I/O thread or the calling thread does, until
//!   the call has ended.
//! - Nothing waits for ever: for members of a group, and for servers, there is a time-out.

mod at_exit;
mod blocking;
mod blocking_slots;
mod buffer;
mod cached_record;
mod calls_alone;
mod collective_options;
mod connection;
mod file;
mod group;
mod hints;
mod in_place;
mod io_thread;
mod liked_block;
mod member;
mod naming;
mod nodes;
mod on_thread;
mod operation;
mod options;
mod peers;
mod plain;
mod range_lock;
mod records;
mod several_files;
mod small_calls;
mod unsynced_writes;
mod user_memory;
mod without_message;

pub use blocking::BLOCKING_BYTES_MAX;
pub use buffer::Buffer;
pub use collective_options::CollectiveOptions;
pub use connection::Connection;
pub use file::{File, Page};
pub use group::Group;
pub use hints::{Form, HINTS, Hint, HintSite, Hints, Verdict, hints_of_environment};
pub use in_place::{InPlaceOptions, in_place_block_bytes};
pub use naming::NewFileOptions;
pub use nodes::NewFileNode;
pub use operation::{Operation, wait_any};
pub use options::ConnectionOptions;
pub use range_lock::RangeLock;
pub use records::{Blocks, Records};
pub use several_files::{FILE_TRANSFERS_MAX, FileTransfer, RawFileTransfer};
pub use user_memory::{RawMemory, Slice, VectorOperation};
