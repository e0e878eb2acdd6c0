//! Programs that make many small calls: microseconds a call of the slowest rank.

use crate::contender::{Compared, Contender};
use crate::{Bench, LIMIT_S};
use std::fmt::Write;

/// Processes on one shared file.
const RANKS: u32 = 4;

/// Maximum number of bytes that a rank moves in one pass.
const PASS_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of independent calls in one pass. A pass of the plain libraries takes 5 to 300 ms.
const CALLS_MAX: u64 = 4000;

/// Maximum number of collective calls in one pass. Four spinning ranks of MPICH on two processors
/// take up to 23 ms a call while the machine does other work.
const COLLECTIVE_CALLS_MAX: u64 = 500;

/// Passes of one run. The first of Open MPI is slower, because its processes connect in it.
const PASSES: u32 = 3;

/// Least number of rounds, except for a quick look.
const ROUNDS_MIN: u32 = 5;

/// Calls to measure.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mode: &'static str,
    /// Place of the pieces of a rank in the file.
    placement: &'static str,
    direction: &'static str,
    /// Of one call.
    bytes: u64,
}

impl Cell {
    fn all() -> Vec<Self> {
        let kinds: [(_, _, &[u64]); 3] = [
            ("collective", "interleaved", &[4096, 47_008]),
            ("independent", "interleaved", &[40, 4096, 47_008, 262_144]),
            ("independent", "contiguous", &[40, 4096, 47_008, 262_144]),
        ];
        let mut cells = Vec::new();
        for (mode, placement, sizes) in kinds {
            for direction in ["write", "read"] {
                let cell = |&bytes: &u64| Self { mode, placement, direction, bytes };
                cells.extend(sizes.iter().map(cell));
            }
        }
        cells
    }

    fn calls(self) -> u64 {
        let calls_max = if self.mode == "collective" { COLLECTIVE_CALLS_MAX } else { CALLS_MAX };
        (PASS_BYTES_MAX / self.bytes).min(calls_max)
    }

    /// Microseconds a call of each pass of one run. A plain library that is given up counts as if it
    /// had ended then.
    fn measure(self, bench: &Bench, contender: Contender) -> Result<Vec<f64>, String> {
        let Self { mode, placement, direction, bytes } = self;
        let calls = self.calls();
        let words = [mode, placement, direction].map(str::to_owned);
        let numbers = [bytes.to_string(), calls.to_string(), PASSES.to_string()];
        let arguments = [words, numbers].concat();
        let passes = bench.run(contender, ("many_calls", RANKS), &arguments, parse)?;
        let bound_us = LIMIT_S as f64 * 1e6 / (calls * u64::from(PASSES)) as f64;
        Ok(passes.unwrap_or_else(|| vec![bound_us]))
    }
}

/// Reads the line that the program prints.
fn parse(line: &str) -> Option<Vec<f64>> {
    let mut fields = line.split(',').skip(6).peekable();
    fields.peek()?;
    fields.map(|field| field.parse().ok()).collect()
}

/// All passes of the contenders in a cell, in microseconds a call.
struct Row {
    cell: Cell,
    passes: Vec<Vec<f64>>,
}

impl Row {
    /// The best passes of the contenders.
    fn bests(&self) -> Vec<f64> {
        let best = |passes: &Vec<f64>| passes.iter().copied().fold(f64::INFINITY, f64::min);
        self.passes.iter().map(best).collect()
    }

    fn medians(&self) -> Vec<f64> {
        let median = |passes: &Vec<f64>| {
            let mut sorted = passes.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        self.passes.iter().map(median).collect()
    }
}

/// The best passes as a table in Markdown.
fn table(rows: &[Row], contenders: &[Contender]) -> String {
    let names: Vec<String> =
        contenders[2..].iter().map(|it| format!("{}, us", it.name())).collect();
    let with_in_place = contenders.len() > 4;
    let more = if with_in_place { "| in place | in place, of medians " } else { "" };
    let mut text = format!(
        "| bytes | mode | direction | {} | better peer, us | ratio | ratio of medians {more}|\n",
        names.join(" | ")
    );
    let columns = text.matches('|').count() - 1;
    let _ = writeln!(text, "{}|", "|---".repeat(columns));
    for row in rows {
        let Cell { mode, placement, direction, bytes } = row.cell;
        let bests = row.bests();
        let (best, median) = (Compared::of(&bests), Compared::of(&row.medians()));
        let own: Vec<String> = bests[2..].iter().map(|us| format!("{us:.1}")).collect();
        let peer = best.peer;
        let name = if bests[0] <= bests[1] { "MPICH" } else { "Open MPI" };
        let _ = write!(
            text,
            "| {bytes} | {mode}, {placement} | {direction} | {} | {peer:.1} ({name}) | {:.2} | {:.2} |",
            own.join(" | "),
            best.instance(),
            median.instance(),
        );
        if let (Some(best), Some(median)) = (best.in_place(), median.in_place()) {
            let _ = write!(text, " {best:.2} | {median:.2} |");
        }
        text.push('\n');
    }
    text
}

/// The best and the median passes of each contender as comma-separated values.
fn values(rows: &[Row], contenders: &[Contender]) -> String {
    let mut text = String::from(
        "mode,placement,direction,bytes,ranks,calls,contender,passes,best_us,median_us\n",
    );
    for row in rows {
        let Cell { mode, placement, direction, bytes } = row.cell;
        let (calls, bests, medians) = (row.cell.calls(), row.bests(), row.medians());
        for (index, contender) in contenders.iter().enumerate() {
            let name = contender.plain_name();
            let (passes, best, median) = (row.passes[index].len(), bests[index], medians[index]);
            let _ = writeln!(
                text,
                "{mode},{placement},{direction},{bytes},{RANKS},{calls},{name},{passes},{best:.3},\
                 {median:.3}",
            );
        }
    }
    text
}

/// Measures all contenders in turns, in rounds; returns a table in Markdown. All figures are in
/// `many-calls.csv`.
pub(crate) fn measure(bench: &Bench, rounds: u32, is_quick: bool) -> Result<String, String> {
    let rounds = if is_quick { rounds } else { rounds.max(ROUNDS_MIN) };
    let cells = Cell::all();
    let passes = vec![Vec::new(); bench.contenders.len()];
    let new = |&cell: &Cell| Row { cell, passes: passes.clone() };
    let mut rows: Vec<Row> = cells.iter().map(new).collect();
    for round in 1..=rounds {
        for (number, row) in rows.iter_mut().enumerate() {
            println!("round {round}, cell {} of {}: {:?}", number + 1, cells.len(), row.cell);
            for (passes, &contender) in row.passes.iter_mut().zip(bench.contenders) {
                passes.extend(row.cell.measure(bench, contender)?);
            }
        }
        let path = bench.folder.join("many-calls.csv");
        std::fs::write(path, values(&rows, bench.contenders)).map_err(|error| error.to_string())?;
    }
    Ok(table(&rows, bench.contenders))
}
