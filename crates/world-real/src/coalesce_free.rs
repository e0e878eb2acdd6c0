//! Coalescing of free areas: makes an area of one size out of adjacent free areas of others.
//!
//! Invariants:
//!
//! - The size of an area is a power of two, at least [`AREA_BYTES_MIN`].
//! - An area of at least a huge page is aligned to a huge page.

use crate::huge::HUGE_BYTES;
use std::collections::BTreeMap;

/// Size of the smallest area.
const AREA_BYTES_MIN: usize = 1 << 14;

/// Takes an area of `bytes` bytes out of `areas` (length by start), from adjacent ones or from a
/// larger one; returns its start. The rest of the areas that it covers stays free, in areas of up
/// to `most` bytes.
pub(crate) fn coalesce_free(
    areas: &mut BTreeMap<usize, usize>,
    bytes: usize,
    most: usize,
) -> Option<usize> {
    let start = place_for(areas, bytes)?;
    let end = start + bytes;
    let first = *areas.range(..=start).next_back()?.0;
    let covered: Vec<usize> = areas.range(first..end).map(|(at, _)| *at).collect();
    let mut last_end = end;
    for at in covered {
        let length = areas.remove(&at)?;
        last_end = at + length;
    }
    put(areas, first, start, most);
    put(areas, end, last_end, most);
    Some(start)
}

/// Returns the start of a contiguous free range of `bytes` (best fit).
fn place_for(areas: &BTreeMap<usize, usize>, bytes: usize) -> Option<usize> {
    let alignment = if bytes >= HUGE_BYTES { HUGE_BYTES } else { AREA_BYTES_MIN };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, length) in areas {
        match runs.last_mut() {
            Some((_, end)) if end == at => *end = at + length,
            _ => runs.push((*at, at + length)),
        }
    }
    let fits = |(start, end): &(usize, usize)| start.next_multiple_of(alignment) + bytes <= *end;
    let shortest = runs.into_iter().filter(fits).min_by_key(|(start, end)| end - start);
    shortest.map(|(start, _)| start.next_multiple_of(alignment))
}

/// Adds the range `start .. end` as areas.
fn put(areas: &mut BTreeMap<usize, usize>, mut start: usize, end: usize, most: usize) {
    while start < end {
        let fits = 1 << (end - start).ilog2();
        let aligned = if start == 0 { most } else { 1 << start.trailing_zeros() };
        let length = most.min(fits).min(aligned);
        areas.insert(start, length);
        start += length;
    }
}

#[cfg(test)]
mod tests {
    //! Proves: no byte is lost or in two areas, and adjacent areas are found.
    use super::*;

    const MOST: usize = 64 << 20;

    #[test]
    fn areas_are_cut_and_joined() {
        let mut areas = BTreeMap::new();
        put(&mut areas, 0, MOST, MOST);
        assert_eq!(areas.len(), 1);
        // Split into small areas …
        let mut random = fastrand::Rng::with_seed(1);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for _ in 0..2_000 {
            let bytes = AREA_BYTES_MIN << random.u32(0..10);
            if random.bool() && !taken.is_empty() {
                let (at, length) = taken.swap_remove(random.usize(..taken.len()));
                assert!(areas.insert(at, length).is_none());
            } else if let Some(at) = coalesce_free(&mut areas, bytes, MOST) {
                assert!(bytes < HUGE_BYTES || at.is_multiple_of(HUGE_BYTES));
                taken.push((at, bytes));
            }
            let all: BTreeMap<usize, usize> =
                areas.iter().map(|(at, length)| (*at, *length)).chain(taken.clone()).collect();
            assert_eq!(all.len(), areas.len() + taken.len());
            let mut next = 0;
            for (at, length) in all {
                assert_eq!((at, length.is_power_of_two()), (next, true));
                next = at + length;
            }
            assert_eq!(next, MOST);
        }
        // … and merged again when all are free.
        areas.extend(taken.drain(..));
        assert!(areas.len() > 1);
        assert_eq!(coalesce_free(&mut areas, MOST, MOST), Some(0));
        assert_eq!(coalesce_free(&mut areas, AREA_BYTES_MIN, MOST), None);
    }
}
