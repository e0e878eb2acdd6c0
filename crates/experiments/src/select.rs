//! Selection of experiments and of their rows by a user.

use crate::catalogue::{Experiment, Point, experiments};
use crate::studies::study_names;
use interface::UserError;
use std::str::FromStr;

/// Name that selects all experiments.
pub(crate) const ALL: &str = "all";

/// Returns the name of every experiment, in the order of the papers, and `all`.
pub fn experiment_names() -> Vec<&'static str> {
    experiments().iter().map(|experiment| experiment.name).chain([ALL]).collect()
}

/// Restriction to some rows: a pattern, and optionally a record size, written `rc` or `rc:8192`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    pattern: String,
    record_bytes: Option<u64>,
}

impl Only {
    fn permits(&self, point: &Point) -> bool {
        let record = self.record_bytes.is_none() || point.record_bytes.is_none();
        self.pattern == point.pattern && (record || self.record_bytes == point.record_bytes)
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (pattern, record) = match word.split_once(':') {
            Some((pattern, record)) => (pattern, Some(record)),
            None => (word, None),
        };
        let record_bytes = record.map(str::parse).transpose();
        let record_bytes = record_bytes.map_err(|_| {
            "write a pattern, or a pattern and the bytes of a record, such as rc:8192".to_owned()
        })?;
        // The parser of patterns suggests the nearest name, which must be one of the papers.
        pattern.parse::<interface::Pattern>().map_err(|error| error.to_string())?;
        Ok(Self { pattern: pattern.to_owned(), record_bytes })
    }
}

/// Returns the experiments of these names, in the order of the papers, with only the rows that
/// `only` permits; all rows if it is empty.
///
/// # Errors
/// If a name is unknown; the help suggests the nearest. If no row is left in any of them.
pub fn select(names: &[String], only: &[Only]) -> Result<Vec<Experiment>, UserError> {
    let known = experiment_names();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let offered = [&known[..], &study_names()].concat();
        return Err(UserError::usage(
            format!("there is no experiment {unknown:?}"),
            format!("the nearest name is {}", nearest(unknown, &offered)),
            format!("choose from {}", offered.join(", ")),
        ));
    }
    let wanted = |name: &str| names.iter().any(|word| word == name || word == ALL);
    let mut selected = experiments();
    selected.retain(|experiment| wanted(experiment.name));
    if only.is_empty() {
        return Ok(selected);
    }
    for experiment in &mut selected {
        experiment.points.retain(|point| only.iter().any(|only| only.permits(point)));
    }
    selected.retain(|experiment| !experiment.points.is_empty());
    if selected.is_empty() {
        return Err(UserError::usage(
            "no row is selected",
            "--only names no row of these experiments",
            "leave out --only to see the rows, or name a pattern of theirs",
        ));
    }
    Ok(selected)
}

/// Returns the known name that shares the largest part of its pairs of letters, so that a part of a
/// name is matched as well as a misspelling; among equals the one with the fewest corrections.
fn nearest<'a>(name: &str, known: &[&'a str]) -> &'a str {
    let likeness = |known: &&&str| strsim::sorensen_dice(name, known);
    let corrections = |known: &&&str| strsim::osa_distance(name, known);
    let by_likeness = |a: &&&str, b: &&&str| {
        likeness(a).total_cmp(&likeness(b)).then_with(|| corrections(b).cmp(&corrections(a)))
    };
    known.iter().max_by(by_likeness).copied().unwrap_or(ALL)
}

#[cfg(test)]
mod tests {
    //! Proves: names select, unknown ones get their nearest match, and rows can be selected.
    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn only(words: &[&str]) -> Vec<Only> {
        words.iter().map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn all_is_every_experiment_once() {
        let all = select(&names(&["all", "tocs-fig4"]), &[]).unwrap();
        assert_eq!(all.len() + 1, experiment_names().len());
    }

    #[test]
    fn an_unknown_name_meets_its_nearest() {
        let error = select(&names(&["tr94-tabel4"]), &[]).unwrap_err();
        assert_eq!(error.code, interface::ExitCode::Usage);
        assert!(error.cause.ends_with("tr94-table4"), "{error}");
        let error = select(&names(&["fig7"]), &[]).unwrap_err();
        assert!(error.cause.ends_with("tocs-fig7"), "{error}");
        let error = select(&names(&["piosim-matmull"]), &[]).unwrap_err();
        assert!(error.cause.ends_with("piosim-matmul"), "{error}");
        assert!(error.help.contains("piosim-btio-full"), "{error}");
        assert_eq!(nearest("zz", &experiment_names()), ALL);
    }

    #[test]
    fn rows_are_picked_by_pattern_and_record() {
        let rows = |words: &[&str]| -> usize {
            let selected = select(&names(&["tr94-table4"]), &only(words));
            selected.unwrap()[0].points.len()
        };
        assert_eq!((rows(&["rc:8192"]), rows(&["rc"]), rows(&["rc", "wb:8"])), (1, 2, 3));
        assert_eq!(rows(&["rn:8192"]), 1, "rn has records of any size");
        assert!(select(&names(&["tocs-fig7"]), &only(&["rc:8"])).is_err());
        assert!("rc:many".parse::<Only>().is_err());
        assert!("zz".parse::<Only>().is_err());
    }
}
