//! Experiments of D. Kotz and T. Cai: share of the servers' processors that is left for a
//! computation during a transfer (Dartmouth PCS-TR94-232).

use super::experiment::{Experiment, Paper, Point, Processors};
use super::templates::{DISTRIBUTIONS, LARGE, SMALL, patterns_1997};
use crate::method::Method;
use simulate::LayoutName;

const TABLES_NOTE: &str = "Easy patterns are those of 8192-byte records, hard ones those of 8-byte \
    records.";
const HELD_BACK_NOTE: &str = "The published table is kept back: only what was simulated is shown.";
const FIGURE_NOTE: &str = "The published points are a picture. The 36 I/O applications are taken \
    to be each of 9 distributions, to read and to write, with records of either size.";

/// Returns Tables 2 and 3 and Figures 2 and 3.
pub(super) fn experiments() -> [Experiment; 4] {
    let figure = |name, title, place, processors| Experiment {
        ratio: None,
        note: FIGURE_NOTE,
        ..experiment(name, title, place, processors, every_application())
    };
    [
        experiment(
            "cai-table2",
            "Processor time of the servers left for a computation",
            "Table 2",
            Processors::Available,
            representative(),
        ),
        Experiment {
            note: HELD_BACK_NOTE,
            ..experiment(
                "cai-table3",
                "Processor time of the servers usable with a barrier every 5 ms",
                "Table 3",
                Processors::WithBarriers,
                representative(),
            )
        },
        figure(
            "cai-fig2",
            "Throughput and processor time left for a computation, all patterns",
            "Figure 2",
            Processors::Available,
        ),
        figure(
            "cai-fig3",
            "Throughput and processor time usable with a barrier every 5 ms, all patterns",
            "Figure 3",
            Processors::WithBarriers,
        ),
    ]
}

fn experiment(
    name: &'static str,
    title: &'static str,
    place: &'static str,
    processors: Processors,
    points: Vec<Point>,
) -> Experiment {
    Experiment {
        paper: Paper::Cai94,
        processors,
        methods: vec![Method::Caching, Method::DiskDirected],
        note: TABLES_NOTE,
        ..patterns_1997(name, title, place, points)
    }
}

/// Returns the representative patterns. "The easy patterns are called rc and wc with 8-KB records,
/// and the hard patterns are called rbc and wbc with 8-byte records" (TR94-232, section 3.6);
/// contiguous (section 3.3).
fn representative() -> Vec<Point> {
    [("rc", LARGE), ("wc", LARGE), ("rbc", SMALL), ("wbc", SMALL)]
        .map(|(pattern, record_bytes)| application(pattern.to_owned(), record_bytes))
        .to_vec()
}

/// Returns every distribution of HPF, in both directions, with both records; `ra` is none of them.
fn every_application() -> Vec<Point> {
    let mut points = Vec::new();
    for direction in ["r", "w"] {
        for distribution in ["n"].into_iter().chain(DISTRIBUTIONS) {
            for record_bytes in [SMALL, LARGE] {
                points.push(application(format!("{direction}{distribution}"), record_bytes));
            }
        }
    }
    points
}

fn application(pattern: String, record_bytes: u64) -> Point {
    let (record_bytes, layout) = (Some(record_bytes), LayoutName::CONTIGUOUS);
    Point { pattern, record_bytes, layout, value: None }
}

#[cfg(test)]
mod tests {
    //! Proves: there are as many I/O applications as the paper says, and the representative ones
    //! are among them.
    use super::*;

    #[test]
    fn there_are_36_applications() {
        let all = every_application();
        assert_eq!(all.len(), 36);
        assert!(representative().iter().all(|point| all.contains(point)));
    }
}
