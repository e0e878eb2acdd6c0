//! Checks of a trace: pure functions that find contradictions within a rank and between ranks.
//!
//! MPI's rules make matching a matter of counting (MPI 4.1, sections 3.5 and 6.1): messages of one
//! source, destination, communicator and tag do not overtake, and all members call the collective
//! operations of a communicator in one order.

mod collectives;
mod communicators;
mod messages;
mod requests;
mod share;
#[cfg(test)]
mod tests;

pub use communicators::{Communicators, communicators};
pub use share::{TimingShare, timing_share};

use crate::describe::call;
use crate::event::RankTrace;
use interface::{ErrorKind, UserError};

/// Finds out if a trace can be replayed. Returns the share of its calls and times that depend on
/// timing.
///
/// # Errors
/// Refuses a trace with a cut rank, and one that contradicts itself: the error names the two calls.
pub fn check(ranks: &[RankTrace]) -> Result<TimingShare, UserError> {
    if let Some(rank) = ranks.iter().position(|rank| rank.is_cut) {
        let last = ranks[rank].events.len().saturating_sub(1);
        return Err(UserError::of_kind(
            ErrorKind::Usage,
            REFUSED,
            format!(
                "rank {rank} was killed, or its stream is cut: nothing is known behind its last \
                 call ({})",
                call(ranks, rank as u32, last)
            ),
            "record a run in which every rank calls MPI_Finalize; `unisono trace info` and \
             `unisono trace export` can show this one",
        ));
    }
    requests::check(ranks)?;
    let known = communicators(ranks)?;
    collectives::check(ranks, &known)?;
    messages::check(ranks, &known)?;
    Ok(timing_share(ranks))
}

pub(crate) const REFUSED: &str = "the trace cannot be replayed";

/// Error of a trace that contradicts itself.
fn contradiction(cause: String) -> UserError {
    UserError::of_kind(
        ErrorKind::Corrupt,
        REFUSED,
        cause,
        "record the program again; if the error stays, the program breaks a rule of MPI, or uses \
         calls that are not recorded",
    )
}
