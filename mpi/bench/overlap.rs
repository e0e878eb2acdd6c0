//! The share of a non-blocking collective write that passes while the program computes.

use crate::{BYTES, Bench};
use std::fmt::Write;

/// Processes: as many as the processors of a small machine.
const RANKS: u32 = 2;

/// Bytes of a record.
const RECORD_BYTES: u64 = 8192;

/// Measurements of one run; the least times count.
const REPEATS: u32 = 15;

/// Seconds of a write alone, of a computation as long as that, and of both together.
#[derive(Clone, Copy)]
struct Times {
    alone: f64,
    computing: f64,
    both: f64,
}

impl Times {
    /// Reads the line that the program prints.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(Self { alone: number(4)?, computing: number(5)?, both: number(6)? })
    }

    fn least(self, other: Self) -> Self {
        Self {
            alone: self.alone.min(other.alone),
            computing: self.computing.min(other.computing),
            both: self.both.min(other.both),
        }
    }

    /// Share of the write that is hidden: 1 if both together take as long as the computation.
    fn hidden(self) -> f64 {
        (self.alone + self.computing - self.both) / self.alone
    }
}

/// Measures all contenders in turns; returns a table in Markdown.
pub(crate) fn measure(bench: &Bench, rounds: u32) -> Result<String, String> {
    let mut text = String::from(
        "| computation | contender | write alone, MiB/s | hidden share of the write |\n|---|---|---|---|\n",
    );
    for computation in ["processor", "elsewhere"] {
        let mut least: Vec<Option<Times>> = vec![None; bench.contenders.len()];
        for _ in 0..rounds {
            for (kept, &contender) in least.iter_mut().zip(bench.contenders) {
                let (bytes, record) = (BYTES.to_string(), RECORD_BYTES.to_string());
                let words = [bytes, record, computation.to_owned(), REPEATS.to_string()];
                if let Some(times) =
                    bench.run(contender, ("overlap", RANKS), &words, Times::parse)?
                {
                    *kept = Some(kept.map_or(times, |kept| kept.least(times)));
                }
            }
        }
        for (times, contender) in least.into_iter().zip(bench.contenders) {
            let Some(times) = times else { continue };
            let rate = BYTES as f64 / f64::from(1 << 20) / times.alone;
            let (name, hidden) = (contender.name(), times.hidden());
            let _ = writeln!(text, "| {computation} | {name} | {rate:.0} | {hidden:.2} |");
        }
    }
    Ok(text)
}
