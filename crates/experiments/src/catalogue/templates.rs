//! Points and experiments that many tables and figures have in common.

use super::experiment::{Axis, Experiment, Paper, Point, Processors, RaUnit};
use crate::method::Method;
use simulate::LayoutName;

/// Bytes of the small record: one double-precision number.
pub(super) const SMALL: u64 = 8;
/// Bytes of the large record: one block.
pub(super) const LARGE: u64 = 8192;

/// Patterns whose chunks do not depend on the record: all, or nothing distributed.
pub(super) const WITHOUT_RECORD: [&str; 3] = ["ra", "rn", "wn"];

/// Patterns of TOCS 1997, Table II, without direction and without those that are equal to others
/// (`nn`, `nc`, `bn`).
pub(super) const DISTRIBUTIONS: [&str; 8] = ["b", "c", "nb", "bb", "cb", "bc", "cc", "cn"];

/// Patterns of the sensitivity experiments (TOCS 1997, section 6.1).
pub(super) const SENSITIVITY: [&str; 4] = ["ra", "rn", "rb", "rc"];

pub(super) const RECORDS_NOTE: &str = "ra, rn and wn do not depend on the size of a record.";
pub(super) const PICTURE_NOTE: &str = "The published curves are a picture; only figures that the \
    text of the paper states are compared.";
pub(super) const CHOSEN_NOTE: &str = "The published curves are a picture, and the values on its \
    horizontal axis are not in the text: those here are ours.";

pub(super) fn point(
    pattern: &str,
    record_bytes: u64,
    layout: LayoutName,
    value: Option<u32>,
) -> Point {
    let record_bytes = (!WITHOUT_RECORD.contains(&pattern)).then_some(record_bytes);
    Point { pattern: pattern.to_owned(), record_bytes, layout, value }
}

/// Returns every pattern with records of one size: reads first, `ra` and `rn` or `wn` at the front.
pub(super) fn every_pattern(record_bytes: u64, layout: LayoutName) -> Vec<Point> {
    let named = |prefix: &'static str| {
        DISTRIBUTIONS.iter().map(move |distribution| format!("{prefix}{distribution}"))
    };
    let reads = ["ra", "rn"].map(str::to_owned).into_iter().chain(named("r"));
    let writes = std::iter::once("wn".to_owned()).chain(named("w"));
    reads.chain(writes).map(|pattern| point(&pattern, record_bytes, layout, None)).collect()
}

/// Returns every pattern with records of both sizes, in the order of the tables of TR94-226.
pub(super) fn both_records(layout: LayoutName) -> Vec<Point> {
    let small = every_pattern(SMALL, layout);
    let pairs = small.iter().zip(every_pattern(LARGE, layout));
    let both = pairs.flat_map(|(small, large)| match large.record_bytes {
        None => vec![large],
        Some(_) => vec![small.clone(), large],
    });
    both.collect()
}

/// Returns patterns with records of a block, at each value of the variable.
pub(super) fn varied(patterns: &[&str], values: &[u32], layout: LayoutName) -> Vec<Point> {
    let at = |pattern: &&str| {
        let pattern = (*pattern).to_owned();
        values.iter().map(move |value| point(&pattern, LARGE, layout, Some(*value)))
    };
    patterns.iter().flat_map(at).collect()
}

/// Returns caching of cyclic records of several sizes, in both layouts (TOCS 1997, Figure 15: "We
/// also tried 1024-byte and 4096-byte records").
pub(super) fn record_sizes() -> Vec<Point> {
    let layouts = [LayoutName::CONTIGUOUS, LayoutName::RANDOM_BLOCKS];
    let at = |layout| {
        [8, 1024, 4096, 8192].map(|bytes| point("rc", u64::from(bytes), layout, Some(bytes)))
    };
    layouts.into_iter().flat_map(at).collect()
}

/// Returns some patterns in all three layouts (TOCS 1997, section 5: random tracks lie between).
pub(super) fn layouts() -> Vec<Point> {
    let all = [LayoutName::CONTIGUOUS, LayoutName::RANDOM_TRACKS, LayoutName::RANDOM_BLOCKS];
    let patterns = ["rn", "rb", "rc", "wn", "wb", "wc"];
    let at = |pattern| all.map(|layout| point(pattern, LARGE, layout, None));
    patterns.into_iter().flat_map(at).collect()
}

/// Returns a table or figure of TOCS 1997 that compares all methods on every pattern.
pub(super) fn patterns_1997(
    name: &'static str,
    title: &'static str,
    place: &'static str,
    points: Vec<Point>,
) -> Experiment {
    // Sorting has no effect when blocks lie in the order of the file.
    let methods = match points.iter().all(|point| point.layout == LayoutName::CONTIGUOUS) {
        true => vec![Method::Caching, Method::TwoPhase, Method::DiskDirected],
        false => Method::ALL.to_vec(),
    };
    Experiment {
        name,
        title,
        place,
        paper: Paper::Tocs97,
        axis: Axis::Pattern,
        ra: RaUnit::Each,
        processors: Processors::Ignored,
        methods,
        ratio: Some((Method::DiskDirected, Method::Caching)),
        improvement: false,
        points,
        note: PICTURE_NOTE,
    }
}

/// Returns a figure of TOCS 1997, section 6.1, with one variable.
pub(super) fn sensitivity(
    name: &'static str,
    title: &'static str,
    place: &'static str,
    axis: Axis,
    points: Vec<Point>,
) -> Experiment {
    Experiment {
        axis,
        methods: vec![Method::Caching, Method::DiskDirected],
        note: CHOSEN_NOTE,
        ..patterns_1997(name, title, place, points)
    }
}

/// Returns a table of TR94-226.
pub(super) fn table_1994(
    name: &'static str,
    title: &'static str,
    place: &'static str,
) -> Experiment {
    Experiment {
        paper: Paper::Tr94,
        ra: RaUnit::Together,
        note: RECORDS_NOTE,
        ..patterns_1997(name, title, place, Vec::new())
    }
}
