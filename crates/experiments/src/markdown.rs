//! Markdown page of experiments: docs/validation.md.
//!
//! Invariants:
//! - Every figure of a table is from a [`Comparison`]; no figure is typed.
//! - The section of an experiment depends on that experiment only, so that it can be checked alone.

use crate::availability::AvailableSummary;
use crate::catalogue::Paper;
use crate::compare::Comparison;
use crate::markdown_table::{
    agreement_table, anchor_table, improvement_table, result_table, simulated_table,
};
use crate::notes::{Standing, notes};
use crate::select::{ALL, experiment_names};
use crate::text::{column_line, conditions, order_line};
use std::fmt::Write;

/// Heading of the figures that texts state.
const STATED: &str = "Stated in the text";

/// Number of trials without `--trials`.
const TRIALS: u32 = 5;

const HOW_TO_READ: &str = "\
This page compares simulated machines with published measurements of the same file systems. Figures
are from a run, sentences on experiments from [notes](../crates/experiments/notes), published values
from [files](../crates/experiments/published/README.md).

- Throughput is in MB/s of 2^20 bytes. An error is the simulated value over the published one, less
  one; inside a published range it is zero. **Bold** errors are above 10 %.
- A published limit (`at most`) is shown and not counted. `~` marks a ratio of two methods that do
  not differ significantly (95 %, Welch's t-test).
- `unisono reproduce NAME` repeats an experiment; `--out DIR` adds every trial, and plots.
- What was tried, and figures of speed and scale, are in the [notebook](notebook/validation.md).
";

const TRUST: &str = "
## What to trust

- **Trust** the order of strategies, disk-directed I/O, and the limits that disks set: large records
  in the contiguous layout, presorting in random blocks, large files.
- **Trust with care** caching: most cells are within 10 %, but the order in which clients meet
  decides some of them.
- **Do not trust** caching of 8-byte `wbc` and ratios to it, two-phase I/O where its permutation
  decides, and several disks on one bus.
";

const OTHER_CHECKS: &str = "\
## Other checks

- **Disk.** [Tests](../crates/world-simulated/src/models/disk/mechanical/calibration.rs) compare the
  model with published throughputs of random and contiguous transfers.
- **Network.** The papers' modelled network differs from an exact one by at most 5.4 %. So does
  [ours](decisions/0039-modelled-and-exact-networks.md), in each case of the
  [tables](notebook/validation.md#exact-and-modelled-network) that
  `cargo run --release -p simulate --example networks` prints.
- **Not compared yet.** The variants of Bagrodia, Docy and Kahn (SC'97), and the measurements of
  Tan, Roussopoulos and Kelley on a real machine (UMIACS-TR-95-52).
";

/// Returns the page of these experiments; that of all of them is docs/validation.md.
pub fn markdown(comparisons: &[Comparison]) -> String {
    let arguments = arguments(comparisons);
    let trials = comparisons.first().map_or(String::new(), trials_option);
    let mut out = head(&format!("{arguments}{trials}"));
    if arguments == ALL {
        out.push_str(TRUST);
    }
    let (published, unpublished): (Vec<&Comparison>, Vec<&Comparison>) = comparisons
        .iter()
        .partition(|comparison| comparison.is_tabulated() || !comparison.anchors.is_empty());
    if !published.is_empty() {
        out.push_str("\n## Agreement\n\n");
        agreement(&mut out, &published);
    }
    for comparison in published.iter().filter(|comparison| comparison.is_tabulated()) {
        out.push('\n');
        section(&mut out, comparison);
    }
    if published.iter().any(|comparison| !comparison.anchors.is_empty()) {
        let _ = writeln!(out, "\n## {STATED}\n");
        stated(&mut out, &published);
    }
    if !unpublished.is_empty() {
        out.push_str("\n## Only pictures, or kept back\n\n");
        without_figures(&mut out, &unpublished);
    }
    out.push('\n');
    out.push_str(OTHER_CHECKS);
    out
}

/// Returns the names of experiments as arguments of the command: `all`, or each.
fn arguments(comparisons: &[Comparison]) -> String {
    let names: Vec<&str> = comparisons.iter().map(|comparison| comparison.name).collect();
    // One of the names is `all`.
    if names.len() + 1 == experiment_names().len() { ALL.to_owned() } else { names.join(" ") }
}

/// Returns the lines above the first section, with the command that makes the page.
fn head(arguments: &str) -> String {
    let mut out = format!(
        "<!-- Made by `unisono reproduce {arguments} --markdown docs/validation.md`; do not edit. \
         -->\n# Validation\n\n{HOW_TO_READ}\n| name | paper | preset |\n|---|---|---|\n",
    );
    for paper in Paper::ALL {
        let (name, citation, machine) = (paper.short_name(), paper.citation(), paper.machine());
        let _ = writeln!(out, "| {name} | {citation} | `{machine}` |");
    }
    out
}

/// Writes a table with a row for each experiment, and the meaning of each standing.
fn agreement(out: &mut String, comparisons: &[&Comparison]) {
    out.push_str(&agreement_table(comparisons));
    out.push('\n');
    for standing in Standing::ALL {
        let _ = writeln!(out, "- *{}*: {}", standing.name(), standing.meaning());
    }
}

/// Writes the section of an experiment: conditions, tables, agreement and notes.
fn section(out: &mut String, comparison: &Comparison) {
    let Comparison { name, title, note, .. } = comparison;
    let (source, conditions) = (comparison.short_source(), conditions(comparison));
    let command = command(comparison);
    let _ = writeln!(out, "## {name}\n\n**{source}: {title}.** `{command}`");
    let _ = writeln!(out, "\n{conditions}. {note}\n");
    if comparison.has_cells() {
        out.push_str(&result_table(comparison));
        let lines = comparison.columns.iter().map(column_line);
        let lines = lines.chain(comparison.available.iter().map(AvailableSummary::line));
        let lines = lines.chain(order_line(comparison));
        out.push('\n');
        for line in lines {
            let _ = writeln!(out, "- {line}");
        }
        out.push('\n');
    }
    if !comparison.improvements.is_empty() {
        out.push_str(&improvement_table(comparison));
        out.push('\n');
    }
    out.push_str(notes(comparison.name));
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// Writes a table of the figures that texts state about experiments, and the notes on those that
/// have no section.
fn stated(out: &mut String, comparisons: &[&Comparison]) {
    let trials = comparisons.first().map_or(0, |comparison| comparison.trials);
    let _ = writeln!(
        out,
        "Where a table or a curve is a picture, or is kept back for a later check, the text still \
         states some\nfigures. Number of trials: {trials}. Values on the horizontal axes of \
         Figures 8 to 12 are ours.\n",
    );
    out.push_str(&anchor_table(comparisons));
    let without_section = comparisons.iter().filter(|comparison| !comparison.is_tabulated());
    list_notes(out, without_section);
}

/// Writes the notes on experiments.
fn list_notes<'a>(out: &mut String, comparisons: impl Iterator<Item = &'a &'a Comparison>) {
    let notes: String = comparisons.map(|comparison| notes(comparison.name)).collect();
    if !notes.is_empty() {
        let _ = write!(out, "\n{notes}");
    }
}

/// Writes a table of experiments that have no published figures, and the notes on them.
fn without_figures(out: &mut String, comparisons: &[&Comparison]) {
    out.push_str(&simulated_table(comparisons));
    list_notes(out, comparisons.iter());
}

/// Returns the command that repeats an experiment.
fn command(comparison: &Comparison) -> String {
    format!("unisono reproduce {}{}", comparison.name, trials_option(comparison))
}

/// Returns the option for the number of trials, with a space before it; empty for the default.
fn trials_option(comparison: &Comparison) -> String {
    match comparison.trials {
        TRIALS => String::new(),
        trials => format!(" --trials {trials}"),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a page shows each figure of an experiment, and docs/validation.md has the head, the
    //! notes and the length of a page that the command makes. cli/tests/reproduce.rs proves that
    //! its figures are simulated ones.
    use super::*;
    use crate::compare::tests::comparison;

    /// Largest number of lines of docs/validation.md.
    const LINES_MAX: usize = 250;

    #[test]
    fn a_section_has_figures_and_agreement() {
        let page = markdown(&[comparison()]);
        assert!(page.starts_with("<!-- Made by `unisono reproduce made-up --trials 1 --markdown "));
        for line in [
            "| pattern | record | caching: published | simulated | error | disk-directed: \
             published | simulated | error | disk-directed / caching: published | simulated |",
            "| `rc` | 8192 | 10.0 | 9.00 | -10.0 % | 30.0 | 30.0 | +0.0 % | - | 3.33 |",
            "| `rn` | 8192 | 10.0 | 15.0 | **+50.0 %** | 30.0 | 30.0 | +0.0 % | - | 2.00 |",
            "- caching: median |error| 10.0 %, worst +50.0 % (rn 8192), within 2/10/35 %: 1/2/2 of \
             3 cells",
            "| [made-up](#made-up) | TR94-226, Table 0: Three <rows> | independent | 6 | 0.5 % | \
             **+50.0 %** (caching rn 8192) | 4 / 5 / 5 |",
            "**TR94-226, Table 0: Three <rows>.** `unisono reproduce made-up --trials 1`",
        ] {
            assert!(page.lines().any(|it| it == line), "no line {line:?} in\n{page}");
        }
    }

    #[test]
    fn the_committed_page_is_made_by_this_code() {
        let page = include_str!("../../../docs/validation.md");
        let stale = "is stale: run `unisono reproduce all --markdown docs/validation.md`";
        assert!(page.starts_with(&(head(ALL) + TRUST)), "the head of docs/validation.md {stale}");
        assert!(page.ends_with(OTHER_CHECKS), "the end of docs/validation.md {stale}");
        for name in experiment_names().into_iter().filter(|name| *name != ALL) {
            let named = [format!("\n| {name} | "), format!("\n| [{name}](#")];
            let is_there = named.iter().any(|start| page.contains(start));
            assert!(is_there, "docs/validation.md lacks {name}: it {stale}");
            assert!(page.contains(notes(name)), "docs/validation.md: {name} {stale}");
        }
        let lines = page.lines().count();
        assert!(lines <= LINES_MAX, "docs/validation.md has {lines} lines, over {LINES_MAX}");
    }
}
