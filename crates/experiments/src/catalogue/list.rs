//! Every experiment, in the order in which they are listed.

use super::cai94;
use super::experiment::{Axis, Experiment};
use super::templates::{
    LARGE, PICTURE_NOTE, SENSITIVITY, SMALL, both_records, every_pattern, layouts, patterns_1997,
    record_sizes, sensitivity, table_1994, varied,
};
use crate::method::Method;
use simulate::LayoutName;

/// Returns every experiment, in the order of the papers.
pub(crate) fn experiments() -> Vec<Experiment> {
    const CONTIGUOUS: LayoutName = LayoutName::CONTIGUOUS;
    const RANDOM: LayoutName = LayoutName::RANDOM_BLOCKS;
    let mut all = experiments_1994().to_vec();
    all.extend(cai94::experiments());
    all.extend([
        patterns_1997(
            "tocs-fig4",
            "Every pattern, 8-byte records, random blocks",
            "Figure 4",
            every_pattern(SMALL, RANDOM),
        ),
        patterns_1997(
            "tocs-fig5",
            "Every pattern, 8192-byte records, random blocks",
            "Figure 5",
            every_pattern(LARGE, RANDOM),
        ),
        patterns_1997(
            "tocs-fig6",
            "Every pattern, 8-byte records, contiguous",
            "Figure 6",
            every_pattern(SMALL, CONTIGUOUS),
        ),
        patterns_1997(
            "tocs-fig7",
            "Every pattern, 8192-byte records, contiguous",
            "Figure 7",
            every_pattern(LARGE, CONTIGUOUS),
        ),
        Experiment {
            improvement: true,
            note: "Every case of Figures 4 to 7; ra, rn and wn, which do not depend on the size of \
                   a record, count once for each layout.",
            ..patterns_1997(
                "tocs-table3",
                "Performance relative to caching",
                "Table III",
                [both_records(CONTIGUOUS), both_records(RANDOM)].concat(),
            )
        },
    ]);
    all.extend(experiments_that_vary_the_machine());
    all.extend(experiments_that_vary_the_data());
    all.push(Experiment {
        methods: vec![Method::Caching, Method::DiskDirected],
        note: "Random tracks are said to lie between the other layouts; no figure is printed.",
        ..patterns_1997("tocs-layouts", "The three layouts", "section 5", layouts())
    });
    all
}

fn experiments_1994() -> [Experiment; 2] {
    [
        Experiment {
            methods: vec![Method::Caching, Method::DiskDirected],
            points: both_records(LayoutName::CONTIGUOUS),
            ..table_1994("tr94-table4", "Every pattern, contiguous", "Table 4")
        },
        Experiment {
            methods: vec![Method::Caching, Method::DiskDirectedUnsorted, Method::DiskDirected],
            points: both_records(LayoutName::RANDOM_BLOCKS),
            note: "The published table is kept back; only figures that the text of the report \
                   states are compared. ra, rn and wn do not depend on the size of a record.",
            ..table_1994("tr94-table3", "Every pattern, random blocks", "Table 3")
        },
    ]
}

/// Returns TOCS 1997, Figures 8 to 12: "the patterns ra, rn, rb, and rc with 8KB records" on other
/// numbers of clients, servers and disks.
fn experiments_that_vary_the_machine() -> [Experiment; 5] {
    const CONTIGUOUS: LayoutName = LayoutName::CONTIGUOUS;
    const RANDOM: LayoutName = LayoutName::RANDOM_BLOCKS;
    let powers = [1, 2, 4, 8, 16];
    let disks = [1, 2, 4, 8, 16, 32];
    [
        sensitivity(
            "tocs-fig8",
            "Disk-directed I/O and caching, as the number of clients varies",
            "Figure 8",
            Axis::Clients,
            varied(&["ra", "rb", "rc"], &powers, CONTIGUOUS),
        ),
        Experiment {
            methods: vec![Method::Caching, Method::TwoPhase],
            ratio: Some((Method::TwoPhase, Method::Caching)),
            ..sensitivity(
                "tocs-fig9",
                "Two-phase I/O and caching, as the number of clients varies",
                "Figure 9",
                Axis::Clients,
                varied(&SENSITIVITY, &powers, CONTIGUOUS),
            )
        },
        sensitivity(
            "tocs-fig10",
            "The number of servers and buses varies; 16 disks, contiguous",
            "Figure 10",
            Axis::Servers,
            varied(&SENSITIVITY, &powers, CONTIGUOUS),
        ),
        sensitivity(
            "tocs-fig11",
            "The number of disks on one server and bus varies, contiguous",
            "Figure 11",
            Axis::Disks,
            varied(&SENSITIVITY, &disks, CONTIGUOUS),
        ),
        sensitivity(
            "tocs-fig12",
            "The number of disks on one server and bus varies, random blocks",
            "Figure 12",
            Axis::Disks,
            varied(&SENSITIVITY, &disks, RANDOM),
        ),
    ]
}

/// Returns TOCS 1997, Figures 13 to 15: other sizes of the file and of its records.
fn experiments_that_vary_the_data() -> [Experiment; 3] {
    let files = [10, 100, 1000];
    [
        Experiment {
            note: PICTURE_NOTE,
            ..sensitivity(
                "tocs-fig13",
                "The size of the file varies, contiguous",
                "Figure 13",
                Axis::FileMib,
                varied(&SENSITIVITY, &files, LayoutName::CONTIGUOUS),
            )
        },
        Experiment {
            note: PICTURE_NOTE,
            ..sensitivity(
                "tocs-fig14",
                "The size of the file varies, random blocks",
                "Figure 14",
                Axis::FileMib,
                varied(&SENSITIVITY, &files, LayoutName::RANDOM_BLOCKS),
            )
        },
        Experiment {
            methods: vec![Method::Caching],
            ratio: None,
            note: PICTURE_NOTE,
            ..sensitivity(
                "tocs-fig15",
                "Caching of cyclic records of various sizes, in both layouts",
                "Figure 15",
                Axis::RecordBytes,
                record_sizes(),
            )
        },
    ]
}

#[cfg(test)]
mod tests {
    //! Proves: every experiment consists of scenarios that can be simulated, each once, and the
    //! tables have the rows that the papers print.
    use super::*;
    use crate::scenarios::scenario;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_makes_sense() {
        for experiment in experiments() {
            let points: Vec<String> =
                experiment.points.iter().map(|point| format!("{point:?}")).collect();
            let distinct: BTreeSet<&String> = points.iter().collect();
            assert_eq!(distinct.len(), points.len(), "{}", experiment.name);
            for point in &experiment.points {
                for &method in &experiment.methods {
                    let scenario = scenario(&experiment, point, method, 1).unwrap();
                    scenario.check().unwrap();
                }
            }
        }
    }

    #[test]
    fn tables_have_the_published_rows() {
        let rows = |name: &str| {
            experiments().into_iter().find(|experiment| experiment.name == name).unwrap().points
        };
        // Two rows for each of 8 distributions and 2 directions, and ra, rn, wn.
        assert_eq!(rows("tr94-table4").len(), 35);
        assert_eq!(rows("tocs-fig4").len(), 19);
        assert_eq!(rows("tocs-table3").len(), 70);
        assert_eq!(rows("tocs-fig11").len(), 24);
    }
}
