//! Accuracy of a disk model: replays a trace of a real disk on the model and compares the two
//! distributions of service times by their demerit.

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
