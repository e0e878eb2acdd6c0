//! Protected files: copies of this server's parts of them at other servers, and of those of others
//! here; or parity of rows of blocks.
//!
//! The server that holds a part of a file writes what it stores to the copy too, and a write ends
//! when both have it. So all strategies, caches and layouts are protected alike, and two writes
//! have the same order in both
//! ([0086](../../../../../docs/decisions/0086-servers-mirror-files.md)).
//!
//! | where | what |
//! |---|---|
//! | `mirrors.rs` | writes, cuts and syncs of this server's parts and their copies or parity |
//! | `copy_calls.rs` | calls to the servers with these copies |
//! | `recording.rs` | what the catalogue has recorded of copies that are behind |
//! | `mirrored_file.rs` | one file: which ranges change, or are kept as they are |
//! | `partner.rs` | one server with a copy or parity, and whether that is behind |
//! | `marks.rs` | which ranges of files may differ from their copies, on stable storage |
//! | `spans.rs` | ranges that stand for all that they span |
//! | `repair.rs` | what is damaged here is read from the copy and written again |
//! | `renewal.rs` | copies that were behind are made equal again |
//! | `objects.rs` | copies that this server has for others, and their requests for parity |
//!
//! Of files with parity, the server sends the difference that bytes make
//! ([0098](../../../../../docs/decisions/0098-parity-is-changed-by-differences.md)):
//!
//! | where | what |
//! |---|---|
//! | `parity_changes.rs` | the difference that a write or a cut makes, sent to its parity |
//! | `parity_objects.rs` | parity that this server has of others: changed, read, made anew, cut |
//! | `lost_parity.rs` | which of it a disk has lost, and how much of that is made anew |
//! | `pending_parity.rs` | changes of it that are not with the disks yet |
//! | `parity_state.rs` | what is known of that parity besides its bytes |
//! | `rows.rs` | pieces of a row are combined, from server to server |
//! | `parity_renewal.rs` | parity that was behind is made anew, and compared by a scrub |

mod copy_calls;
mod lost_parity;
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
mod pending_parity;
mod recording;
mod renewal;
mod repair;
mod rows;
mod spans;

pub(crate) use copy_calls::unexpected;
pub(crate) use marks::{Marked, Marks};
pub(crate) use mirrored_file::MirroredFile;
pub(crate) use mirrors::{CATALOGUE, FIRST, Mirrors, PIECE_BYTES};
pub(crate) use parity_changes::cut_to_fit as pieces_of_row;
