//! Random numbers of a simulation: the same on every host for the same seed.

use std::cell::Cell;

/// SplitMix64's mixing step (Steele, Lea and Flood, OOPSLA 2014): a bijection that looks random.
pub(crate) fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The next number of a random sequence whose state is `state` (SplitMix64).
pub(crate) fn next_random(state: &Cell<u64>) -> u64 {
    state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
    mix(state.get())
}
