//! Collective transfers: one transfer made together by the clients of a group.
//!
//! Each strategy is one folder with both of its sides; read it next to Figure 2 of the paper
//! (TOCS 1997).

pub(crate) mod access_checks;
pub(crate) mod caching;
mod call_servers;
pub(crate) mod disk_directed;
pub(crate) mod global_barrier;
mod group_transfer;
pub(crate) mod node_grouping;
pub(crate) mod noncollective;
mod pieces;
mod requests;
pub(crate) mod select;
mod strategy;
mod transfer;
pub(crate) mod two_phase;

pub(crate) use call_servers::{all_to_the_end, call_to_the_end};
pub use noncollective::Part;
pub use select::client::{RecordCounts, Selected};
pub use select::members::{Agreements, FoundRecords, Selecting, Share};
pub use strategy::Strategy;
pub use transfer::Transfer;
