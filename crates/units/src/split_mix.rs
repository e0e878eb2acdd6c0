//! SplitMix64: a pseudo-random number generator with 64 bits of state.
//!
//! Source: G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014. It is fast and good enough for simulations and tests, not for secrets.
//!
//! Invariants:
//! - Equal seeds give equal sequences, on every machine and in every release.
//! - [`SplitMix64::mix`] maps 64-bit numbers to 64-bit numbers one to one.

/// Generator of a reproducible sequence of 64-bit numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Step from one state to the next: 2^64 divided by the golden ratio, made odd.
    pub const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Generator with the given seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// State that the next number is made of. [`SplitMix64::new`] of it continues the sequence.
    pub const fn state(&self) -> u64 {
        self.state
    }

    /// Returns the next number of the sequence.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::INCREMENT);
        Self::mix(self.state)
    }

    /// Returns the next number of the sequence modulo `limit`, which must not be 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// Output function of the generator: a bijection that mixes all 64 bits.
    pub const fn mix(value: u64) -> u64 {
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation (S. Vigna, splitmix64.c) for seed 0.
    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        let mut numbers = SplitMix64::new(0);
        assert_eq!(numbers.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(numbers.next_u64(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(SplitMix64::new(numbers.state()).next_u64(), 0x06c4_5d18_8009_454f);
        assert_eq!(SplitMix64::new(0).below(1 << 8), 0xaf);
    }
}
