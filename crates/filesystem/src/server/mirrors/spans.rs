//! Ranges of objects in which what other servers have may differ. One range stands for all that it
//! spans, on each disk: a longer one costs comparisons, and nothing else.

use units::ByteRange;

/// All of an object.
pub(super) const WHOLE: ByteRange = ByteRange { start: 0, end: u64::MAX };

/// Range that spans two; an empty one adds nothing.
pub(super) fn spanning(known: Option<ByteRange>, other: ByteRange) -> ByteRange {
    match known {
        Some(known) if other.is_empty() => known,
        Some(known) if !known.is_empty() => {
            ByteRange::new(known.start.min(other.start), known.end.max(other.end))
        }
        _ => other,
    }
}

/// Range that spans two and some more, in the direction in which it grows: it doubles, so that a
/// long write changes it a few times only. It grows by `least` bytes or more.
pub(super) fn widened(known: Option<ByteRange>, other: ByteRange, least: u64) -> ByteRange {
    let all = spanning(known, other);
    let more = all.length().max(least);
    let start = match known.is_some_and(|known| all.start < known.start) {
        true => all.start.saturating_sub(more),
        false => all.start,
    };
    let end = match known.is_none_or(|known| all.end > known.end) {
        true => all.end.saturating_add(more),
        false => all.end,
    };
    ByteRange::new(start, end)
}

/// True if two ranges have a byte in common.
pub(super) fn overlap(one: ByteRange, other: ByteRange) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    //! Proves: a span has all that it was made of, and a long write changes it a few times only.
    use super::*;

    const NONE: ByteRange = ByteRange { start: 0, end: 0 };

    #[test]
    fn a_span_has_all_that_it_was_made_of() {
        let range = ByteRange::new;
        assert_eq!(spanning(None, NONE), NONE);
        assert_eq!(spanning(Some(NONE), range(5, 7)), range(5, 7));
        assert_eq!(spanning(Some(range(5, 7)), NONE), range(5, 7));
        assert_eq!(spanning(Some(range(5, 7)), range(1, 2)), range(1, 7));
        assert!(overlap(range(5, 7), range(6, 9)) && !overlap(range(5, 7), range(7, 9)));
        assert!(!overlap(NONE, WHOLE) && overlap(WHOLE, range(5, 7)));
        assert_eq!(widened(Some(range(5, 7)), WHOLE, 4), WHOLE);
    }

    #[test]
    fn a_long_write_changes_a_span_a_few_times() {
        for downwards in [false, true] {
            let (mut known, mut changes) = (None, 0);
            for step in 0..1_000 {
                let start = 10 * if downwards { 999 - step } else { step };
                let written = ByteRange::new(start, start + 10);
                if known.is_none_or(|known: ByteRange| !known.contains(written)) {
                    known = Some(widened(known, written, 40));
                    changes += 1;
                }
                assert!(known.is_some_and(|known| known.contains(written)));
            }
            assert!(changes < 10, "{changes}");
            assert!(known.is_some_and(|known| known.length() < 30_000), "{known:?}");
        }
    }
}
