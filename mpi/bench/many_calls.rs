//! Programs that make many small calls: microseconds a call of the slowest rank.

use crate::{Bench, CONTENDERS, Contender, LIMIT_S};
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
    passes: [Vec<f64>; 4],
}

impl Row {
    /// The best passes of the contenders.
    fn bests(&self) -> [f64; 4] {
        self.passes.each_ref().map(|passes| passes.iter().copied().fold(f64::INFINITY, f64::min))
    }

    fn medians(&self) -> [f64; 4] {
        self.passes.each_ref().map(|passes| {
            let mut sorted = passes.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        })
    }
}

/// Time of the better plain library over that of the slower form of Unisono.
fn ratio([mpich, open_mpi, own_mpich, own_open_mpi]: [f64; 4]) -> f64 {
    mpich.min(open_mpi) / own_mpich.max(own_open_mpi)
}

/// The best passes as a table in Markdown.
fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| bytes | mode | direction | Unisono, MPICH, us | Unisono, Open MPI, us | better peer, us \
         | ratio | ratio of medians |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let Cell { mode, placement, direction, bytes } = row.cell;
        let bests = row.bests();
        let [mpich, open_mpi, own_mpich, own_open_mpi] = bests;
        let (peer, is_mpich) = (mpich.min(open_mpi), mpich <= open_mpi);
        let name = if is_mpich { "MPICH" } else { "Open MPI" };
        let _ = writeln!(
            text,
            "| {bytes} | {mode}, {placement} | {direction} | {own_mpich:.1} | {own_open_mpi:.1} \
             | {peer:.1} ({name}) | {:.2} | {:.2} |",
            ratio(bests),
            ratio(row.medians()),
        );
    }
    text
}

/// The best and the median passes of each contender as comma-separated values.
fn values(rows: &[Row]) -> String {
    let mut text = String::from(
        "mode,placement,direction,bytes,ranks,calls,contender,passes,best_us,median_us\n",
    );
    for row in rows {
        let Cell { mode, placement, direction, bytes } = row.cell;
        let (calls, bests, medians) = (row.cell.calls(), row.bests(), row.medians());
        for (index, contender) in CONTENDERS.into_iter().enumerate() {
            let name = contender.name().replace(',', "");
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
    let new = |&cell: &Cell| Row { cell, passes: Default::default() };
    let mut rows: Vec<Row> = cells.iter().map(new).collect();
    for round in 1..=rounds {
        for (number, row) in rows.iter_mut().enumerate() {
            println!("round {round}, cell {} of {}: {:?}", number + 1, cells.len(), row.cell);
            for (passes, contender) in row.passes.iter_mut().zip(CONTENDERS) {
                passes.extend(row.cell.measure(bench, contender)?);
            }
        }
        let path = bench.folder.join("many-calls.csv");
        std::fs::write(path, values(&rows)).map_err(|error| error.to_string())?;
    }
    Ok(table(&rows))
}
