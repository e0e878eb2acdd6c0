//! How close a disk model is to a disk: a trace of the disk is replayed on the model, and the two
//! distributions of service times are compared by their demerit.

mod csv;
mod figure;
mod reader;
mod replay;
mod run;
mod srt;
#[cfg(test)]
mod tests;
mod trace;

pub use run::{Demerit, DemeritPlan, demerit};
