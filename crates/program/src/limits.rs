//! Limits of what can be carried out.

use interface::UserError;
use trace::{Operation, RankTrace};

/// Longest computation and longest message of a trace that can be carried out, so that no sum of
/// times or bytes overflows: 36 years, and 2^50 bytes.
const RANK_NS_MAX: u64 = 1 << 60;
const MESSAGE_BYTES_MAX: u64 = 1 << 50;

/// Refuses times and messages whose sums would overflow.
pub(crate) fn check_limits(ranks: &[RankTrace], speed: f64) -> Result<(), UserError> {
    for (rank, trace) in ranks.iter().enumerate() {
        let mut sum = 0.0;
        for event in &trace.events {
            sum += event.computed_ns as f64 / speed + event.blocked_ns as f64;
            let bytes = match &event.operation {
                Operation::Send { message, .. } | Operation::Receive { message, .. } => {
                    message.bytes
                }
                Operation::Collective { bytes, .. } => *bytes,
                _ => 0,
            };
            if bytes > MESSAGE_BYTES_MAX {
                let cause = format!("rank {rank} sends or receives {bytes} bytes at once");
                return Err(too_much(cause));
            }
        }
        if sum > RANK_NS_MAX as f64 {
            let years = sum / 1e9 / 3600.0 / 24.0 / 365.25;
            return Err(too_much(format!("rank {rank} computes for {years:.0} years")));
        }
    }
    Ok(())
}

fn too_much(cause: String) -> UserError {
    UserError::usage(
        "the trace cannot be carried out",
        cause,
        "record the program again, or give a higher speed of computations",
    )
}
