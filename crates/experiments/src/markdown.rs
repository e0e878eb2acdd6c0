//! Markdown page of experiments: docs/validation.md.
//!
//! Invariants:
//! - Every figure of a table is from a [`Comparison`]; no figure is typed.
//! - A section depends on its own experiment only, so that one of them can be checked.

use crate::availability::AvailableSummary;
use crate::catalogue::Paper;
use crate::compare::Comparison;
use crate::markdown_table::{
    agreement_table, anchor_table, improvement_table, result_table, simulated_table,
};
use crate::notes::{Standing, notes};
use crate::select::experiment_names;
use crate::text::{chance_line, column_line, conditions, order_line};
use std::fmt::Write;

/// Number of trials without `--trials`.
const TRIALS: u32 = 5;

const HOW_TO_READ: &str = "\
This page says how close the simulated machines are to published measurements of the same file
systems, and which agreement is evidence. Figures are from a run; the sentences on each experiment
are files in [notes](../crates/experiments/notes), published values files in
[published](../crates/experiments/published/README.md).

- Throughput is in MB/s of 2^20 bytes. An error is the simulated value over the published one, less
  one; inside a published range it is zero. **Bold** errors are above 10 %.
- A published limit (`at most`) is shown and not counted.
- `unisono reproduce NAME` repeats one experiment. `--out DIR` adds every trial as CSV and Parquet,
  and plots.
- What was tried, and figures of speed and scale, are in the
  [notebook](notebook/validation.md).
";

const OTHER_CHECKS: &str = "\
## Other checks

- **Disk.** The model is compared with published throughputs of random and contiguous transfers in
  [its tests](../crates/world-simulated/src/models/disk/mechanical/calibration.rs).
- **Network.** The papers state that their modelled network differs from an exact one by at most
  5.4 %. `cargo run --release -p simulate --example networks` compares ours; each measured case is
  within that limit ([tables](notebook/validation.md#exact-and-modelled-network), [decision
  0014](decisions/0014-two-forms-of-a-network.md)).
- **Costs.** [Decision 0012](decisions/0012-costs-of-the-1994-machine.md) lists each constant of the
  presets and how it was obtained.
- **Not compared yet.** The variants of Bagrodia, Docy and Kahn (SC'97), and the measurements of
  Tan, Roussopoulos and Kelley on a real machine (UMIACS-TR-95-52).
";

/// Returns the page of these experiments; that of all of them is docs/validation.md.
pub fn markdown(comparisons: &[Comparison]) -> String {
    let mut out = head(comparisons);
    let (published, unpublished): (Vec<&Comparison>, Vec<&Comparison>) =
        comparisons.iter().partition(|comparison| is_compared(comparison));
    if !published.is_empty() {
        out.push_str("\n## Agreement\n\n");
        agreement(&mut out, &published);
    }
    for comparison in published {
        out.push('\n');
        section(&mut out, comparison);
    }
    if !unpublished.is_empty() {
        out.push_str("\n## Nothing to compare\n\n");
        without_figures(&mut out, &unpublished);
    }
    out.push('\n');
    out.push_str(OTHER_CHECKS);
    out
}

/// Returns the lines above the first section, with the command that makes the page.
fn head(comparisons: &[Comparison]) -> String {
    let mut names: Vec<&str> = comparisons.iter().map(|comparison| comparison.name).collect();
    // One of the names stands for all of the others.
    if names.len() + 1 == experiment_names().len() {
        names = vec!["all"];
    }
    let trials = comparisons.first().map_or(String::new(), trials_option);
    let mut out = format!(
        "<!-- Made by `unisono reproduce {}{trials} --markdown docs/validation.md`; do not edit. \
         -->\n# Validation\n\n{HOW_TO_READ}\n| name | paper | preset |\n|---|---|---|\n",
        names.join(" "),
    );
    for paper in Paper::ALL {
        let _ = writeln!(
            out,
            "| {} | {} | `{}` |",
            paper.short_name(),
            paper.citation(),
            paper.machine()
        );
    }
    out
}

/// True if a figure of the experiment is published as a number.
fn is_compared(comparison: &Comparison) -> bool {
    !(comparison.columns.is_empty()
        && comparison.available.is_empty()
        && comparison.improvements.is_empty()
        && comparison.anchors.is_empty())
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
    let _ = writeln!(
        out,
        "## {}\n\n{}: {}. {}.\n{}Repeat: `{}`.\n",
        comparison.name,
        comparison.short_source(),
        comparison.title,
        conditions(comparison),
        Some(comparison.note)
            .filter(|note| !note.is_empty())
            .map_or(String::new(), |note| { format!("{note}\n") }),
        command(comparison),
    );
    if !(comparison.columns.is_empty() && comparison.available.is_empty()) {
        out.push_str(&result_table(comparison));
        let lines = comparison.columns.iter().map(column_line);
        let lines = lines.chain(comparison.available.iter().map(AvailableSummary::line));
        let lines = lines.chain(order_line(comparison)).chain(chance_line(comparison));
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
    if !comparison.anchors.is_empty() {
        out.push_str(&anchor_table(comparison));
        out.push('\n');
    }
    out.push_str(notes(comparison.name));
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// Writes a table of experiments that have no published figures, and the notes on them.
fn without_figures(out: &mut String, comparisons: &[&Comparison]) {
    out.push_str(
        "The published values are pictures, or tables that are kept back for a later check.\n\n",
    );
    out.push_str(&simulated_table(comparisons));
    let notes: String = comparisons.iter().map(|comparison| notes(comparison.name)).collect();
    if !notes.is_empty() {
        let _ = write!(out, "\n{notes}");
    }
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
