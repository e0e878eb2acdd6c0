//! Mirrored files: copies of this server's parts of them at other servers, and of those of others
//! here.
//!
//! The server that holds a part of a file writes what it stores to the copy too, and a write ends
//! when both have it. So all strategies, caches and layouts are protected alike, and two writes
//! have the same order in both
//! ([0086](../../../../../docs/decisions/0086-servers-mirror-files.md)).
//!
//! | where | what |
//! |---|---|
//! | `mirrors.rs` | writes, cuts and syncs of this server's parts and their copies |
//! | `copy_calls.rs` | calls to the servers with these copies |
//! | `recording.rs` | what the catalogue has recorded of copies that are behind |
//! | `mirrored_file.rs` | one file: which ranges change, and whether its copy is behind |
//! | `marks.rs` | which files may differ from their copies, on stable storage |
//! | `repair.rs` | what is damaged here is read from the copy and written again |
//! | `renewal.rs` | copies that were behind are made equal again |
//! | `objects.rs` | copies that this server has for others |

mod copy_calls;
mod marks;
mod mirrored_file;
#[expect(clippy::module_inception, reason = "the state that the other files serve")]
mod mirrors;
mod objects;
mod parity_changes;
mod parity_objects;
mod parity_renewal;
mod parity_state;
mod partner;
mod recording;
mod renewal;
mod repair;
mod rows;

pub(crate) use copy_calls::unexpected;
pub(crate) use marks::Marks;
pub(crate) use mirrored_file::MirroredFile;
pub(crate) use mirrors::{CATALOGUE, FIRST, Mirrors, PIECE_BYTES};
pub(crate) use parity_changes::cut_to_fit as pieces_of_row;
