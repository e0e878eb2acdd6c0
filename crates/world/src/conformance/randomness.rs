//! Cases for random numbers.

use super::Fixture;
use super::support::list_cases;
use crate::Randomness;
use std::collections::BTreeSet;

list_cases![numbers_differ, every_bit_changes];

fn numbers_differ<F: Fixture>(fixture: &mut F) {
    const DRAWS: usize = 100;
    fixture.run(2, |worlds| async move {
        // Two of 200 fair numbers are equal with a probability below 10^-14.
        let numbers: BTreeSet<u64> =
            (0..DRAWS).flat_map(|_| [worlds[0].random(), worlds[1].random()]).collect();
        assert_eq!(numbers.len(), 2 * DRAWS, "numbers must differ, within and between nodes");
    });
}

fn every_bit_changes<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        // A fair bit is the same 100 times with a probability below 10^-28.
        let draws: Vec<u64> = (0..100).map(|_| worlds[0].random()).collect();
        let seen_one = draws.iter().fold(0, |seen, draw| seen | draw);
        let seen_zero = draws.iter().fold(0, |seen, draw| seen | !draw);
        assert_eq!((seen_one, seen_zero), (u64::MAX, u64::MAX), "every bit must be random");
    });
}
