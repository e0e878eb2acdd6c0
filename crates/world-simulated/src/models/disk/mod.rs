//! Disks: their models, and the layout and queue that all models share.
//!
//! [`spec`] is the interface of a specification of disks, [`disk_model`] that of a disk which is
//! built of one, and [`contract`] tests both. [`mechanical`], [`ssd`], [`page_cache`], [`analytic`]
//! and [`ideal`] implement them; [`DISKS`] lists those that have a name. [`layout`] places blocks,
//! and [`request_queue`] orders the requests that wait.

pub mod analytic;
mod built_in;
pub mod contract;
pub mod disk_model;
pub mod ideal;
pub mod layout;
pub mod mechanical;
pub mod nvme_p5510;
pub mod page_cache;
mod parameter_bases;
pub mod request_queue;
pub mod shared_medium;
pub mod spec;
pub mod ssd;

pub use built_in::DISKS;
pub use spec::{DiskDeclaration, DiskKind, DiskSpec};
