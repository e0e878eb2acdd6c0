//! Liveness: tells a peer that is busy from one that has stopped or cannot be reached.
//!
//! The evidence is the peer's transport, which answers a ping while its program computes or waits
//! for a disk. Bytes that move count too: an answer may be behind much data on a slow network.

use futures_util::future::{Either, select};
use std::pin::pin;
use units::{Duration, PeerId};
use world::World;

/// Number of steps in which silence is counted. A node that was stopped itself finds when it goes
/// on that one step has passed, and not that its peers were silent.
const STEPS: u64 = 8;

/// Pings a peer. True if it does not answer, and no byte moves over its connection, for a time of
/// `silence`. False if it answers, or when the connection ends.
pub(crate) async fn is_silent<W: World>(world: &W, peer: PeerId, silence: Duration) -> bool {
    let mut answered = pin!(world.ping(peer));
    let mut moved = world.moved_bytes(peer);
    let mut silent_steps = 0;
    let step = Duration::from_ns(silence.as_ns() / STEPS);
    while silent_steps < STEPS {
        if let Either::Left(_) = select(answered.as_mut(), pin!(world.sleep(step))).await {
            return false;
        }
        let now = world.moved_bytes(peer);
        silent_steps = if now == moved { silent_steps + 1 } else { 0 };
        moved = now;
    }
    true
}
