//! Recordings of one simulated trial for people to look at: a trace of all events, or the
//! trajectory of one disk's head.

mod chrome;
mod head;
#[cfg(test)]
mod tests;
mod trace;

pub use chrome::TraceSummary;
pub use head::{HeadMotion, HeadPath};
pub use trace::{check_disk, follow_head, trace_program, trace_trial};
pub use world_simulated::Activity;
