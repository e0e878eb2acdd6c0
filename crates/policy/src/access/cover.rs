//! Tells whether pieces cover a block: then nothing of it must be read before it is written.

use units::PieceRun;

/// True when `runs`, which hold as many bytes as the block together, cover all of its `length`
/// bytes. Pieces may come in any order; one that leaves the block covers nothing.
///
/// Runs of one period that interleave, as those of a cyclic distribution do, take time for their
/// number. Otherwise the time is that of marking every piece.
pub fn covers_block(runs: &[PieceRun], length: u64) -> bool {
    let bytes: u64 = runs.iter().map(|run| run.bytes()).sum();
    if bytes != length {
        return false;
    }
    if let Some(spans) = spans_of(runs)
        && spans.first() == Some(&(0, length))
    {
        return true;
    }
    is_marked_whole(runs, length)
}

/// The contiguous spans that `runs` make up where runs of equal stride and count interleave
/// without a gap; neighbours are joined. `None` when they do not.
fn spans_of(runs: &[PieceRun]) -> Option<Vec<(u64, u64)>> {
    let mut sorted: Vec<PieceRun> =
        runs.iter().copied().filter(|run| run.bytes() > 0).map(as_contiguous).collect();
    sorted.sort_unstable_by_key(|run| (run.count, run.stride, run.offset));
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let mut rest = &sorted[..];
    while let Some(first) = rest.first() {
        // As many runs as fill one period.
        let mut filled = 0;
        let period = first.stride;
        let mut taken = 0;
        for run in rest {
            let continues = (run.count, run.stride) == (first.count, first.stride)
                && run.offset == first.offset + filled;
            if !continues || filled == period {
                break;
            }
            filled += run.length;
            taken += 1;
        }
        if filled != period {
            return None;
        }
        spans.push((first.offset, first.offset + period * first.count));
        rest = &rest[taken..];
    }
    spans.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => joined.push((start, end)),
        }
    }
    Some(joined)
}

/// A run that touches itself is one piece, whose period is its length.
fn as_contiguous(run: PieceRun) -> PieceRun {
    if run.count > 1 && run.stride != run.length {
        return run;
    }
    let length = run.bytes();
    PieceRun { length, stride: length, count: 1, ..run }
}

/// Marks every piece in units of the largest size that divides them all; true when each unit is
/// marked.
fn is_marked_whole(runs: &[PieceRun], length: u64) -> bool {
    let numbers = runs.iter().flat_map(|run| {
        let stride = if run.count > 1 { run.stride } else { 0 };
        [run.offset, run.length, stride]
    });
    let unit = numbers.fold(length, greatest_common_divisor).max(1);
    let units = length / unit;
    let mut marked = vec![0_u64; usize::try_from(units.div_ceil(64)).unwrap_or(usize::MAX)];
    let mut count = 0;
    for run in runs {
        for piece in 0..run.count {
            let start = (run.offset + piece * run.stride) / unit;
            let end = start + run.length / unit;
            if end > units {
                return false;
            }
            for at in start..end {
                let word = &mut marked[(at / 64) as usize];
                let bit = 1 << (at % 64);
                count += u64::from(*word & bit == 0);
                *word |= bit;
            }
        }
    }
    count == units
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    //! Proves: the quick answer and that of marking are the same, for all small sets of runs.
    use super::*;
    use proptest::prelude::*;

    fn run(offset: u64, length: u64, stride: u64, count: u64) -> PieceRun {
        PieceRun { offset, stride, memory_offset: 0, memory_stride: stride, length, count }
    }

    #[test]
    fn interleaved_runs_cover_without_marking() {
        let cyclic: Vec<_> = (0..4).rev().map(|client| run(8 * client, 8, 32, 100)).collect();
        assert_eq!(spans_of(&cyclic), Some(vec![(0, 3200)]));
        assert!(covers_block(&cyclic, 3200));
        assert!(!covers_block(&cyclic[1..], 3200));
        let mut overlapping = cyclic;
        overlapping[0].offset = 0;
        assert!(!covers_block(&overlapping, 3200));
        assert!(covers_block(&[run(10, 90, 90, 1), run(0, 10, 10, 1)], 100));
        assert!(covers_block(&[run(0, 5, 5, 20)], 100));
        assert!(!covers_block(&[run(1, 5, 5, 20)], 100));
    }

    proptest! {
        #[test]
        fn any_runs_are_judged_by_their_bytes(
            runs in prop::collection::vec((0_u64..8, 1_u64..4, 0_u64..3, 1_u64..4), 1..6)
        ) {
            let runs: Vec<_> = runs
                .into_iter()
                .map(|(offset, length, gap, count)| run(offset, length, length + gap, count))
                .collect();
            let mut bytes: Vec<u64> = runs
                .iter()
                .flat_map(|run| {
                    (0..run.count).flat_map(move |piece| {
                        (0..run.length).map(move |byte| run.offset + piece * run.stride + byte)
                    })
                })
                .collect();
            let length = bytes.len() as u64;
            bytes.sort_unstable();
            bytes.dedup();
            let expected = bytes.len() as u64 == length && bytes.last() == Some(&(length - 1));
            prop_assert_eq!(covers_block(&runs, length), expected);
        }
    }
}
