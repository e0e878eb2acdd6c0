//! The library that programs link: files by the classic calls, blocking or not.
//!
//! There is no thread behind it. What was begun and not waited for goes on whenever the program is
//! in a call of the library. It talks straight to the servers of an instance; pages of servers on
//! this machine are seen in their memory.
//!
//! Invariants: all memory that servers write is the library's own pool, of a stated size, so that
//! no error and no signal leaves them a pointer into the program's; nothing here waits for ever for
//! room in it.

mod connection;
mod file;
mod known;
mod opening;
mod operation;

pub use connection::{Library, LibraryBuffer};
pub use file::{LibraryFile, LibraryPage};
pub use operation::Operation;
