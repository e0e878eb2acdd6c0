//! Range sets and the least-recently-used order, against plain models of them.

use policy::{Lru, RangeSet};
use proptest::prelude::*;
use units::ByteRange;

const LENGTH: u64 = 24;

/// Compares every answer of `set` with the flags of its bytes.
fn check_set(set: &RangeSet, model: &[bool]) {
    let held: Vec<ByteRange> = set.iter().collect();
    assert!(held.iter().all(|range| !range.is_empty()));
    assert!(held.windows(2).all(|pair| pair[0].end < pair[1].start), "{held:?}");
    let bytes = model.iter().filter(|held| **held).count() as u64;
    assert_eq!((set.bytes(), set.is_empty()), (bytes, bytes == 0));
    for start in 0..=LENGTH {
        for end in start..=LENGTH {
            let part = &model[start as usize..end as usize];
            let range = ByteRange::new(start, end);
            assert_eq!(set.contains(range), part.iter().all(|held| *held));
            let missing: Vec<ByteRange> = set.missing_in(range).collect();
            assert!(missing.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert!(missing.iter().all(|gap| !gap.is_empty() && range.contains(*gap)));
            let bytes = missing.iter().flat_map(|gap| gap.start..gap.end);
            assert!(bytes.eq((start..end).filter(|byte| !model[*byte as usize])));
        }
        let all = model[..start as usize].iter().all(|held| *held);
        assert_eq!(set.is_full(start), all);
    }
}

proptest! {
    #[test]
    fn a_set_is_its_bytes(inserts in prop::collection::vec((0..LENGTH, 0..8_u64), 0..12)) {
        // Proves: after any inserts a set answers as an array of flags does.
        let (mut set, mut model) = (RangeSet::new(), vec![false; LENGTH as usize]);
        for (start, length) in inserts {
            let range = ByteRange::new(start, (start + length).min(LENGTH));
            let flags = &mut model[range.start as usize..range.end as usize];
            let added = flags.iter().filter(|held| !**held).count() as u64;
            flags.fill(true);
            prop_assert_eq!(set.insert(range), added);
            check_set(&set, &model);
        }
        set.clear();
        check_set(&set, &vec![false; LENGTH as usize]);
    }

    #[test]
    fn a_set_of_many_rows_is_its_bytes(
        inserts in prop::collection::vec((0..4000_u64, 1..4_u64, 0..40_u8), 0..900),
    ) {
        // Proves: the same where there are hundreds of ranges, some of which become one at once.
        const LENGTH: u64 = 4000;
        let (mut set, mut model) = (RangeSet::new(), vec![false; LENGTH as usize]);
        for (start, length, kind) in inserts {
            let length = if kind == 0 { length * 300 } else { length };
            let range = ByteRange::new(start, (start + length).min(LENGTH));
            let flags = &mut model[range.start as usize..range.end as usize];
            let added = flags.iter().filter(|held| !**held).count() as u64;
            flags.fill(true);
            prop_assert_eq!(set.insert(range), added);
            prop_assert!(set.contains(range));
        }
        let held = set.iter().flat_map(|range| range.start..range.end);
        prop_assert!(held.eq((0..LENGTH).filter(|byte| model[*byte as usize])));
        let ranges: Vec<ByteRange> = set.iter().collect();
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        let missing = set.missing_in(ByteRange::at(100, 3000));
        let missing = missing.flat_map(|range| range.start..range.end);
        prop_assert!(missing.eq((100..3100).filter(|byte| !model[*byte as usize])));
    }

    #[test]
    fn lru_is_a_list(uses in prop::collection::vec((0..4_u8, 0..6_u8), 0..60)) {
        // Proves: after any uses the order is that of a list whose used keys move to the end.
        let (mut lru, mut model) = (Lru::new(), Vec::<u8>::new());
        for (action, key) in uses {
            let known = model.contains(&key);
            prop_assert_eq!(lru.contains(key), known);
            if action != 0 || known {
                model.retain(|other| *other != key);
            }
            match action {
                0 => {
                    prop_assert_eq!(lru.touch(key), known);
                    model.extend(known.then_some(key));
                }
                1 | 2 => {
                    prop_assert_eq!(lru.insert(key), !known);
                    model.push(key);
                }
                _ => prop_assert_eq!(lru.remove(key), known),
            }
            prop_assert_eq!(lru.oldest(), model.first().copied());
            prop_assert_eq!((lru.len(), lru.is_empty()), (model.len(), model.is_empty()));
            prop_assert!(lru.iter().eq(model.iter().copied()));
            prop_assert!(lru.iter().rev().eq(model.iter().rev().copied()));
        }
    }
}

#[test]
fn what_is_taken_is_the_first_that_is_long_enough() {
    let mut set = RangeSet::new();
    for start in 0..200 {
        set.insert(ByteRange::at(100 * start, 10 + start));
    }
    assert_eq!(set.take(10), Some(ByteRange::at(0, 10)), "all of a range");
    assert_eq!(set.take(110), Some(ByteRange::at(9_000, 110)), "of those that became one");
    assert!(!set.contains(ByteRange::at(9_000, 1)) && set.contains(ByteRange::at(9_110, 1)));
    assert_eq!(set.take(1 << 40), None);
    let bytes = set.bytes();
    assert_eq!(set.take(7).map(|range| range.length()), Some(7));
    assert_eq!(set.bytes(), bytes - 7);
}

#[test]
fn ranges_in_order_stay_one() {
    // Proves: the fast path, appending at the end, keeps a single range to the end of 64 bits.
    let mut set = RangeSet::new();
    for start in (0..1_000_000).step_by(8) {
        assert_eq!(set.insert(ByteRange::at(start, 8)), 8);
    }
    assert_eq!(set.iter().count(), 1);
    assert_eq!(set.insert(ByteRange::new(500, u64::MAX)), u64::MAX - 1_000_000);
    assert!(set.is_full(u64::MAX));
}

#[test]
fn thousands_of_gaps_close_again() {
    // Proves: rows become two, and go again, without a range being lost or out of order.
    const PIECES: u64 = 5_000;
    let mut set = RangeSet::new();
    // Every other piece, in an order that jumps (7,919 and the number of pieces have no divisor in
    // common), then the pieces between them.
    let jumping = || (0..PIECES).map(|piece| piece * 7_919 % PIECES);
    for (count, piece) in (1..).zip(jumping()) {
        assert_eq!(set.insert(ByteRange::at(16 * piece, 8)), 8);
        assert_eq!(set.iter().count(), count);
    }
    assert!(set.iter().map(|range| range.start).eq((0..PIECES).map(|piece| 16 * piece)));
    assert!(set.contains(ByteRange::at(16 * 4_321, 8)) && !set.contains(ByteRange::at(8, 8)));
    let across = ByteRange::new(16 * 100 + 4, 16 * 4_000 + 4);
    assert_eq!(set.missing_in(across).count(), 3_900);
    for piece in jumping() {
        assert_eq!(set.insert(ByteRange::at(16 * piece + 6, 10)), 8);
    }
    assert!(set.iter().eq([ByteRange::new(0, 16 * PIECES)]));
    assert_eq!(set.insert(ByteRange::at(16 * PIECES + 1, 1)), 1);
    assert_eq!(set.insert(ByteRange::new(0, 1 << 40)), (1 << 40) - 16 * PIECES - 1);
}
