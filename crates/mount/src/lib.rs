//! An instance as a directory of the system: every program can use its files.
//!
//! The kernel sends requests for the directory to this process by FUSE, and it answers them as a
//! client of the servers.
//!
//! | file | what |
//! |---|---|
//! | `session.rs` | mounts, serves the kernel, and unmounts |
//! | `points.rs` | mount points of this machine |
//! | `kernel.rs` | requests of the kernel and their answers |
//! | `operations.rs` | operations of the library for them |
//! | `files.rs` | open files |
//! | `listings.rs` | open directories |
//! | `attributes.rs` | attributes of entries, as the kernel wants them |
//! | `extended.rs` | extended attributes: instance, name and layout |
//! | `errors.rs` | errors of the system for those of the servers |
//! | `kept.rs` | entries that are kept for a moment |
//!
//! *Invariants:*
//! - A file that one program has closed is read as it is by one that opens it then, here or on
//!   another machine, by whatever door it was written (close-to-open consistency).
//! - Data that a program has written is at the servers when its call returns.
//! - What a server refuses is an error of the system, never a wrong answer.

mod attributes;
mod errors;
mod extended;
mod files;
mod kept;
mod kernel;
mod listings;
mod operations;
mod points;
mod session;

pub use points::{MountPoint, mount_point, unmount};
pub use session::{MountOptions, Mounted, check_directory, mount};
