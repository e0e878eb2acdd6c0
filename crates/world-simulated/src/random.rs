//! Random numbers of a simulation: the same on every host for the same seed.

use std::cell::Cell;
use units::SplitMix64;

/// Returns the next number of the SplitMix64 sequence whose state is `state`.
pub(crate) fn next_random(state: &Cell<u64>) -> u64 {
    let mut numbers = SplitMix64::new(state.get());
    let number = numbers.next_u64();
    state.set(numbers.state());
    number
}
