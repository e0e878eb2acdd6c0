//! Disks: their kinds, their models, and the layout and queue that all kinds share.
//!
//! [`kind`] names the kinds, [`disk_model`] is the interface of their models. [`mechanical`],
//! [`ssd`], [`analytic`] and [`ideal`] implement it. [`layout`] places blocks, and
//! [`request_queue`] orders the requests that wait.

pub mod analytic;
pub mod disk_model;
pub mod ideal;
pub mod kind;
pub mod layout;
pub mod mechanical;
pub mod request_queue;
pub mod ssd;

pub use kind::DiskKind;
