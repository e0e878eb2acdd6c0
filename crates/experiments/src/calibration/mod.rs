//! Calibration: fits the unpublished costs of the 1994 machine to the contiguous 8-byte cyclic
//! cells of TR94-226, Table 4, and to nothing else.
//!
//! The method is coordinate descent: one cost after the other is tried larger and smaller by a
//! factor, and a change that reduces the [`Score`] is kept. Each cell is one trial of the full
//! file.

mod cells;
mod descent;
mod fit;
mod report;

pub use fit::{Calibration, calibrate_1994};
