//! Anchors: figures that the text of a paper states, beside the same statistic of the simulation.

use crate::catalogue::{Experiment, Point};
use crate::defect::defect;
use crate::method::Method;
use crate::published::{AnchorLine, anchors};
use crate::results::RowResult;
use crate::stats::{Improvement, median};
use interface::UserError;
use serde::Serialize;

/// Stated figure and its simulated counterpart.
#[derive(Clone, Debug, Serialize)]
pub struct AnchorResult {
    /// Short description.
    pub name: String,
    /// Smallest value that agrees with the text; `None` without a lower limit.
    pub low: Option<f64>,
    /// Largest value that agrees with the text; `None` without an upper limit.
    pub high: Option<f64>,
    /// Unit: `MB/s`, of 2^20 bytes, or `times`.
    pub unit: String,
    /// Simulated value; `None` if none of its rows was simulated.
    pub simulated: Option<f64>,
    /// Distance from the nearest value that agrees, in percent of it.
    pub error_percent: Option<f64>,
    /// Place of the text.
    pub source: String,
    /// Quotation.
    pub sentence: String,
}

#[derive(Clone, Copy)]
enum Statistic {
    Minimum,
    Median,
    GeometricMean,
    Maximum,
}

/// Statistic of the rows of an experiment that an anchor is about.
struct Anchor {
    line: AnchorLine,
    statistic: Statistic,
    method: Method,
    over: Option<Method>,
}

/// Compares figures that are stated about an experiment with the same statistic of `rows`. A figure
/// is left out if a selection has taken away some of the rows that it is about: `whole` has them
/// all.
///
/// # Errors
/// If a file of this crate is damaged.
pub(crate) fn compare(
    whole: &Experiment,
    rows: &[RowResult],
) -> Result<Vec<AnchorResult>, UserError> {
    let mut results = Vec::new();
    for line in anchors(whole.name)? {
        let anchor = Anchor::new(line)?;
        if anchor.has_all_rows(whole, rows) {
            results.push(anchor.compare(rows));
        }
    }
    Ok(results)
}

impl Anchor {
    fn new(line: AnchorLine) -> Result<Self, UserError> {
        let damaged = |what: &str, word: &str| {
            defect(format!("anchors.csv: {:?} has the {what} {word:?}", line.name))
        };
        let method = |word: &str| Method::parse(word).ok_or_else(|| damaged("method", word));
        let statistic = match line.statistic.as_str() {
            "minimum" => Statistic::Minimum,
            "median" => Statistic::Median,
            "geometric-mean" => Statistic::GeometricMean,
            "maximum" => Statistic::Maximum,
            other => return Err(damaged("statistic", other)),
        };
        let over = match line.over.as_str() {
            "" => None,
            word => Some(method(word)?),
        };
        Ok(Self { statistic, method: method(&line.method)?, over, line })
    }

    fn has_all_rows(&self, whole: &Experiment, rows: &[RowResult]) -> bool {
        let is_of_point =
            |point: &&Point| self.permits(&point.pattern, &point.layout.to_string(), point.value);
        let of_rows = self.rows(rows).count();
        of_rows == whole.points.iter().filter(is_of_point).count()
    }

    fn rows<'a>(&'a self, rows: &'a [RowResult]) -> impl Iterator<Item = &'a RowResult> {
        rows.iter().filter(|row| self.permits(&row.pattern, &row.layout, row.value))
    }

    fn compare(self, rows: &[RowResult]) -> AnchorResult {
        let value = |row: &RowResult| match self.over {
            Some(over) => row.ratio_of(self.method, over),
            None => row.simulated(self.method),
        };
        let values: Vec<f64> = self.rows(rows).filter_map(value).collect();
        let simulated = match self.statistic {
            Statistic::Median => median(&values),
            Statistic::Minimum => Improvement::of(&values).map(|all| all.minimum),
            Statistic::GeometricMean => Improvement::of(&values).map(|all| all.geometric_mean),
            Statistic::Maximum => Improvement::of(&values).map(|all| all.maximum),
        };
        let AnchorLine { name, low, high, unit, source, sentence, .. } = self.line;
        let error_percent = simulated.map(|value| error_percent(value, low, high));
        AnchorResult { name, low, high, unit, simulated, error_percent, source, sentence }
    }

    fn permits(&self, pattern: &str, layout: &str, value: Option<u32>) -> bool {
        let among = |words: &str, word: &str| {
            words.is_empty() || words.split_whitespace().any(|permitted| permitted == word)
        };
        let value = value.map(|value| value.to_string()).unwrap_or_default();
        permits_pattern(&self.line.patterns, pattern)
            && among(&self.line.layouts, layout)
            && among(&self.line.values, &value)
    }
}

/// True if a list of names, `r*`, `w*` and `-name` selects a pattern.
fn permits_pattern(words: &str, pattern: &str) -> bool {
    let is_it = |word: &str| match word.strip_suffix('*') {
        Some(start) => pattern.starts_with(start),
        None => pattern == word,
    };
    let (taken_out, named): (Vec<&str>, Vec<&str>) =
        words.split_whitespace().partition(|word| word.starts_with('-'));
    let out = taken_out.iter().filter_map(|word| word.strip_prefix('-')).any(is_it);
    !out && (named.is_empty() || named.into_iter().any(is_it))
}

/// Returns the distance of a value from a range, in percent of the exceeded limit.
fn error_percent(value: f64, low: Option<f64>, high: Option<f64>) -> f64 {
    match (low, high) {
        (Some(low), _) if value < low => (value / low - 1.0) * 100.0,
        (_, Some(high)) if value > high => (value / high - 1.0) * 100.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    //! Proves: every anchor of the file parses, its filters select the rows that they name, and a
    //! value inside a range has no error.
    use super::*;
    use crate::catalogue::experiments;

    #[test]
    fn every_anchor_is_understood() {
        for experiment in experiments() {
            compare(&experiment, &[]).unwrap();
        }
    }

    #[test]
    fn patterns_are_picked() {
        assert!(permits_pattern("", "rc"));
        assert!(permits_pattern("r*", "rc") && !permits_pattern("r*", "wc"));
        assert!(permits_pattern("rn rc", "rc") && !permits_pattern("rn rc", "rb"));
        assert!(permits_pattern("-ra", "rc") && !permits_pattern("-ra", "ra"));
        assert!(!permits_pattern("r* -ra", "ra") && !permits_pattern("r* -ra", "wb"));
    }

    #[test]
    fn a_range_has_no_error_inside() {
        let close = |error: f64, expected: f64| (error - expected).abs() < 1e-9;
        assert!(close(error_percent(7.45, Some(7.4), Some(7.5)), 0.0));
        assert!(close(error_percent(7.4 / 2.0, Some(7.4), Some(7.5)), -50.0));
        assert!(close(error_percent(6.0, None, Some(5.0)), 20.0));
        assert!(close(error_percent(0.1, None, Some(5.0)), 0.0));
    }
}
