//! Report of a calibration in Markdown.

use super::cells::{Cell, ratio_error_percent};
use super::fit::{Calibration, FACTORS_PERCENT, NAMES, ROUNDS_MAX, Score, to_array};
use crate::text::percent;
use std::fmt::Write;

impl Calibration {
    /// Returns the page: method, start, steps, result, and remaining errors of the cells.
    pub fn report(&self) -> String {
        let mut out = format!(
            "# Calibration of the 1994 machine\n\n\
             Fitted: the costs that nobody published. To: the contiguous 8-byte cyclic cells of \
             TR94-226, Table 4, one trial (seed 1) of the full file each; no other figure was \
             looked at.\n\n\
             Method: coordinate descent. One cost after the other is tried times and over {}, at \
             most {ROUNDS_MAX} rounds with each factor, and what makes the score smaller is kept. \
             The score is the sum of the squared logarithms of simulated over published \
             throughput: every cell counts the same.\n\n\
             Simulations: {}.\n\n## Costs\n\n| cost | start, ns | result, ns |\n|---|---|---|\n",
            FACTORS_PERCENT.map(|percent| format!("{:.2}", percent as f64 / 100.0)).join(", then "),
            self.trials,
        );
        let costs = to_array(&self.start).into_iter().zip(to_array(&self.result));
        for (name, (start, result)) in NAMES.iter().zip(costs) {
            let _ = writeln!(out, "| `{name}` | {start} | {result} |");
        }
        let _ = writeln!(out, "\nScore at the start: {}.", score(&self.score_at_start));
        let _ = writeln!(out, "Score of the result: {}.", score(&self.score_of_result));
        out.push_str("\n## Steps\n\n| factor | cost | from, ns | to, ns | score |\n");
        out.push_str("|---|---|---|---|---|\n");
        for step in &self.steps {
            let to = if step.to == step.from { "kept".to_owned() } else { step.to.to_string() };
            let _ = writeln!(
                out,
                "| {:.2} | `{}` | {} | {to} | {} |",
                step.factor_percent as f64 / 100.0,
                NAMES[step.coordinate],
                step.from,
                score(&step.score),
            );
        }
        out.push_str("\n## Cells\n\nMB/s of 2^20 bytes, 8-byte records.\n\n");
        out.push_str("| pattern | method | published | start | error | result | error |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for (start, result) in self.cells_at_start.iter().zip(&self.cells_of_result) {
            let _ = writeln!(
                out,
                "| `{}` | {} | {:.1} | {:.2} | {} | {:.2} | {} |",
                result.pattern,
                result.method,
                result.published,
                start.simulated,
                percent(start.error_percent()),
                result.simulated,
                percent(result.error_percent()),
            );
        }
        let ratio = |cells: &[Cell]| ratio_error_percent(cells).map_or("-".to_owned(), percent);
        let _ = writeln!(
            out,
            "\nDisk-directed over caching in `wbc`, the largest published ratio: error {} at the \
             start, {} of the result.",
            ratio(&self.cells_at_start),
            ratio(&self.cells_of_result),
        );
        out
    }

    /// Returns the constants as they stand in the source of the machines.
    pub fn constants(&self) -> String {
        let costs = NAMES.iter().zip(to_array(&self.result));
        costs.map(|(name, ns)| format!("{name}: Duration::from_ns({}),\n", digits(ns))).collect()
    }
}

/// Formats a score.
fn score(score: &Score) -> String {
    format!("squares {score:.4}")
}

/// Formats a number in Rust's style, with groups of three digits.
fn digits(number: u64) -> String {
    let plain = number.to_string();
    let mut out = String::new();
    for (place, digit) in plain.chars().enumerate() {
        if place > 0 && (plain.len() - place).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    //! Proves: the page has every step and cell, and constants can be copied into the source.
    use super::*;
    use crate::calibration::descent::Step;
    use crate::method::Method;
    use simulate::FittedCosts;

    fn calibration() -> Calibration {
        let start = FittedCosts {
            client_read_ns: 2_000,
            client_write_ns: 50_000,
            cache_read_ns: 8_000,
            piece_per_dimension_ns: 1_250,
            get_answer_ns: 900,
        };
        let cell = |simulated| Cell {
            pattern: "wbc",
            method: Method::Caching,
            published: 0.8,
            simulated,
            published_ratio: 18.2,
        };
        let step =
            Step { factor_percent: 130, coordinate: 1, from: 50_000, to: 65_000, score: 0.25 };
        Calibration {
            start,
            result: FittedCosts { client_write_ns: 65_000, ..start },
            score_at_start: 0.5,
            score_of_result: 0.25,
            steps: vec![step],
            cells_at_start: vec![cell(1.0)],
            cells_of_result: vec![cell(0.88)],
            trials: 2,
        }
    }

    #[test]
    fn the_page_tells_all() {
        let report = calibration().report();
        for line in [
            "| `client_write` | 50000 | 65000 |",
            "| 1.30 | `client_write` | 50000 | 65000 | squares 0.2500 |",
            "| `wbc` | caching | 0.8 | 1.00 | +25.0 % | 0.88 | +10.0 % |",
            "Simulations: 2.",
        ] {
            assert!(report.contains(line), "{line} in {report}");
        }
    }

    #[test]
    fn constants_are_rust() {
        let constants = calibration().constants();
        assert!(constants.contains("client_write: Duration::from_ns(65_000),\n"), "{constants}");
        assert!(constants.contains("get_answer: Duration::from_ns(900),\n"), "{constants}");
        assert_eq!(digits(1_234_567), "1_234_567");
    }
}
