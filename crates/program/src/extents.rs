//! Bytes of files that a program moves.

use policy::OwnPart;
use std::collections::BTreeMap;
use trace::{Operation, RankTrace};
use units::ByteRange;

/// Sum over all files of the bytes from the first to the last byte that a transfer reaches.
pub(crate) fn moved_extents(ranks: &[RankTrace]) -> u64 {
    let mut extents: BTreeMap<&str, ByteRange> = BTreeMap::new();
    for trace in ranks {
        for event in &trace.events {
            let Operation::Transfer { file, part: Some(part), shift, .. } = &event.operation else {
                continue;
            };
            let part = trace.parts.get(part.0 as usize).and_then(OwnPart::file_extent);
            let name = trace.files.get(file.0 as usize);
            let (Some(part), Some(name)) = (part, name) else { continue };
            let start = part.start.saturating_add(*shift);
            let end = part.end.saturating_add(*shift);
            let known = extents.entry(name).or_insert(ByteRange { start, end });
            *known = ByteRange { start: known.start.min(start), end: known.end.max(end) };
        }
    }
    extents.into_values().map(ByteRange::length).fold(0, u64::saturating_add)
}
