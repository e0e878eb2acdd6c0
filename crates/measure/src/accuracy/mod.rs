//! Errors of predictions, as they were measured: programs that were recorded, carried out again and
//! simulated, by kind.
//!
//! `make accuracy` measures the [`Residuals`] that are published with this crate, and writes the
//! page docs/accuracy.md. A prediction states the [`Interval`] of its [`Kind`].

mod interval;
mod kind;

pub use interval::{CASES_MIN, CONFIDENCE, Interval, median};
pub use kind::{Kind, Profile};

use interface::UserError;
use serde::{Deserialize, Serialize};

/// Seconds of several runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Median.
    pub median: f64,
    /// Begin and end of the interval of the median, by the bootstrap, with a confidence of 95 %.
    pub interval: [f64; 2],
}

impl Measurement {
    /// Width of the interval, relative to the median.
    pub fn width(&self) -> f64 {
        (self.interval[1] - self.interval[0]) / self.median.max(f64::MIN_POSITIVE)
    }
}

/// A program on some servers: measured, carried out again, and simulated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Name of the program.
    pub program: String,
    /// Number of servers.
    pub servers: u32,
    /// Strategy of collective transfers.
    pub strategy: String,
    /// True if servers read and wrote past the page cache.
    pub is_direct: bool,
    /// True if the trace was recorded on other servers, or under another strategy.
    pub is_what_if: bool,
    /// Kind of the program on these servers.
    pub kind: Kind,
    /// Seconds of the program itself.
    pub program_seconds: Measurement,
    /// Seconds of its trace on real servers.
    pub replay_seconds: Measurement,
    /// Seconds of its trace on simulated servers.
    pub simulated_seconds: f64,
}

impl Row {
    /// Relative error of the real replay as a prediction of the program.
    pub fn replay_error(&self) -> f64 {
        self.replay_seconds.median / self.program_seconds.median - 1.0
    }

    /// Relative error of the simulation as a prediction of the real replay.
    pub fn model_error(&self) -> f64 {
        self.simulated_seconds / self.replay_seconds.median - 1.0
    }

    /// Relative error of the simulation as a prediction of the program.
    pub fn error(&self) -> f64 {
        self.simulated_seconds / self.program_seconds.median - 1.0
    }
}

/// Programs that were measured and predicted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residuals {
    /// Name and version of the form.
    pub schema: String,
    /// Processors of the machine on which they were measured, in words.
    pub machine: String,
    /// Ranks of the programs.
    pub ranks: u32,
    /// Programs on servers.
    pub rows: Vec<Row>,
}

impl Residuals {
    /// Name and version of the form.
    pub const SCHEMA: &str = "unisono.residuals/1";

    /// Returns the residuals that are published with this crate.
    ///
    /// # Errors
    /// Fails when the published file is damaged.
    pub fn published() -> Result<Self, UserError> {
        serde_json::from_str(include_str!("residuals.json")).map_err(|error| {
            UserError::new(
                interface::ExitCode::Failed,
                "cannot read the residuals of this program",
                error.to_string(),
                "report this as a defect",
            )
        })
    }

    /// Returns the interval of programs of a kind, without those named `program`; that of all kinds
    /// where fewer than [`CASES_MIN`] remain, and none where those are fewer too.
    pub fn interval(&self, kind: Kind, program: Option<&str>) -> Option<Interval> {
        let others = || self.rows.iter().filter(|row| Some(row.program.as_str()) != program);
        let of_kind: Vec<&Row> = others().filter(|row| row.kind == kind).collect();
        let rows = if of_kind.len() < CASES_MIN { others().collect() } else { of_kind };
        let ratio = |row: &&Row| row.program_seconds.median / row.simulated_seconds;
        Interval::of(rows.iter().map(ratio).collect())
    }

    /// Counts the rows whose program lies in the interval that the rows of other programs state,
    /// and all rows for which they state one.
    pub fn held_out(&self) -> (usize, usize) {
        let stated = self.rows.iter().filter_map(|row| {
            let interval = self.interval(row.kind, Some(&row.program))?;
            let bounds =
                interval.low * row.simulated_seconds..=interval.high * row.simulated_seconds;
            Some(bounds.contains(&row.program_seconds.median))
        });
        stated.fold((0, 0), |(inside, all), is_inside| (inside + usize::from(is_inside), all + 1))
    }
}

#[cfg(test)]
mod tests {
    //! Proves: what is published can be read, and a program has no part in its own interval.
    use super::*;

    fn row(program: &str, seconds: f64) -> Row {
        let measured = Measurement { median: seconds, interval: [seconds; 2] };
        Row {
            program: program.to_owned(),
            servers: 2,
            strategy: "disk-directed".to_owned(),
            is_direct: false,
            is_what_if: false,
            kind: Kind::Directed,
            program_seconds: measured,
            replay_seconds: measured,
            simulated_seconds: 1.0,
        }
    }

    #[test]
    fn what_is_published_is_whole() {
        let published = Residuals::published().unwrap();
        assert_eq!(published.schema, Residuals::SCHEMA);
        for row in &published.rows {
            let Measurement { median, interval: [low, high] } = row.program_seconds;
            assert!(0.0 < low && low <= median && median <= high, "{row:?}");
            assert!(row.simulated_seconds > 0.0, "{row:?}");
        }
    }

    #[test]
    fn a_program_has_no_part_in_its_own_interval() {
        let mut rows: Vec<Row> = (0..12).map(|number| row(&number.to_string(), 1.1)).collect();
        rows.push(row("other", 9.0));
        let residuals = Residuals {
            schema: Residuals::SCHEMA.to_owned(),
            machine: String::new(),
            ranks: 4,
            rows,
        };
        let without = residuals.interval(Kind::Directed, Some("other")).unwrap();
        assert_eq!((without.low, without.high, without.cases), (1.1, 1.1, 12));
        assert_eq!(residuals.interval(Kind::Directed, None).unwrap().cases, 13);
        assert_eq!(residuals.held_out(), (12, 13));
        // Of a kind without rows, all are taken.
        assert_eq!(residuals.interval(Kind::Computing, None).unwrap().cases, 13);
    }
}
