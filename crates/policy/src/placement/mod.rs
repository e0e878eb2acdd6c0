//! Placement: which server, disk and slot hold each block of a file.
//!
//! [`Stripe`] is the entry point: it numbers the servers of its file from 0. A [`PageMap`] is the
//! part of a stripe that a user can state. A [`Pool`] tells which servers of the instance they are,
//! and a [`Protection`] what is stored twice, or has parity in [`Rows`]; [`ProtectedBytes`]
//! counts how much of it is protected now.

mod page_map;
mod pool;
mod protected;
mod protection;
mod rows;
mod stripe;

pub use page_map::{PAGE_MAP_MAX, PageMap, PageMapError};
pub use pool::{Pool, PoolError};
pub use protected::{ProtectedBytes, Unprotected, part_bytes};
pub use protection::{
    Protection, ProtectionError, ROW_BLOCKS_MAX, UnknownProtection, copied_file, copy_object,
};
pub use rows::{RowPiece, Rows};
pub use stripe::{BLOCK_BYTES_MAX, Location, Placement, Stripe, StripeError};
