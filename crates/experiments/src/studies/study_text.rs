//! Text form of a study: what became of its claims, then a table of seconds and disk reads.
//!
//! Lines have about 100 columns: names of columns are broken at their hyphens, and a row in which a
//! claim does not hold has a line of its own.

use super::StudyCell;
use super::claims::ClaimResult;
use super::study::Study;
use std::fmt::Write;

/// Columns of running text.
const COLUMNS: usize = 100;

/// Returns the text of a study for a terminal, ending with a line feed.
pub(super) fn study_text(study: &Study) -> String {
    let mut out = String::new();
    let Study { name, title, source, note, trials, .. } = study;
    write_head(&mut out, (name, title), source, *trials, note);
    write_claims(&mut out, &study.claims);
    let columns: Vec<&str> = study
        .rows
        .first()
        .map_or(&[][..], |row| &row.cells)
        .iter()
        .map(|cell| cell.cooperation.as_str())
        .collect();
    for (unit, value) in [
        ("seconds", (|cell| format!("{:.2}", cell.seconds)) as fn(&StudyCell) -> String),
        ("disk reads", |cell| format!("{:.0}", cell.disk_reads)),
    ] {
        let row = |row: &super::StudyRow| {
            (row.label.clone(), row.cells.iter().map(value).collect::<Vec<String>>())
        };
        let rows: Vec<_> = study.rows.iter().map(row).collect();
        write_table(&mut out, unit, &columns, &rows);
    }
    out
}

/// Writes what a study is about.
pub(super) fn write_head(
    out: &mut String,
    (name, title): (&str, &str),
    source: &str,
    trials: u32,
    note: &str,
) {
    let texts =
        [format!("{name}: {title}"), format!("source: {source}"), format!("trials: {trials}")];
    for text in texts.iter().map(String::as_str).chain([note]) {
        for line in wrap(text) {
            let _ = writeln!(out, "{line}");
        }
    }
}

/// Writes how many claims hold, and a line for each, with one for each row in which it does not.
pub(super) fn write_claims(out: &mut String, claims: &[ClaimResult]) {
    let whole = claims.iter().filter(|claim| claim.exceptions.is_empty()).count();
    let new = |claim: &ClaimResult| {
        claim.exceptions.iter().filter(|row| !claim.known.contains(row)).count()
    };
    let news: usize = claims.iter().map(new).sum();
    let all = claims.len();
    let _ = match all - whole {
        0 => writeln!(out, "\nverdict: all {all} claims hold in every row"),
        _ => writeln!(
            out,
            "\nverdict: {whole} of {all} claims hold in every row, the others in some; exceptions \
             that were not known: {news}"
        ),
    };
    for claim in claims {
        let held = claim.rows - claim.exceptions.len();
        let _ = writeln!(out, "  {}: holds in {held} of {} rows", claim.claim, claim.rows);
        for row in &claim.exceptions {
            let known = if claim.known.contains(row) { " (known)" } else { "" };
            let _ = writeln!(out, "    not in {row}{known}");
        }
    }
}

/// Writes a table whose rows have a label, after an empty line. `unit` is that of its cells.
pub(super) fn write_table(
    out: &mut String,
    unit: &str,
    columns: &[&str],
    rows: &[(String, Vec<String>)],
) {
    let label = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0).max(unit.len());
    let heads: Vec<Vec<&str>> = columns.iter().map(|name| broken(name)).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(column)).map(String::len);
        heads[column].iter().map(|word| word.len()).chain(cells).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(1);
    let _ = writeln!(out);
    for line in 0..height {
        let name = if line + 1 == height { unit } else { "" };
        let _ = write!(out, "{name:label$}");
        for (words, width) in heads.iter().zip(&widths) {
            // The last words of all names are in the last line.
            let word = (line + words.len()).checked_sub(height).map_or("", |at| words[at]);
            let _ = write!(out, "  {word:>width$}");
        }
        let _ = writeln!(out);
    }
    for (name, cells) in rows {
        let _ = write!(out, "{name:label$}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(out, "  {cell:>width$}");
        }
        let _ = writeln!(out);
    }
}

/// Words of a name, each with the hyphen behind it.
fn broken(name: &str) -> Vec<&str> {
    name.split_inclusive(['-', ' ']).map(str::trim_end).collect()
}

/// Lines of a text.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    //! Proves: the verdict counts claims and rows, and names of columns are broken.
    use super::*;

    #[test]
    fn the_verdict_comes_first() {
        let claim = |exceptions: &[&str], known: &[&'static str]| ClaimResult {
            claim: "a > b".to_owned(),
            rows: 3,
            exceptions: exceptions.iter().map(|&row| row.to_owned()).collect(),
            known: known.iter().map(|&row| row.to_owned()).collect(),
        };
        let mut out = String::new();
        write_claims(&mut out, &[claim(&[], &[]), claim(&["x", "y"], &["x"])]);
        assert_eq!(
            out,
            "\nverdict: 1 of 2 claims hold in every row, the others in some; exceptions that were \
             not known: 1\n  a > b: holds in 3 of 3 rows\n  a > b: holds in 1 of 3 rows\n    \
             not in x (known)\n    not in y\n"
        );
    }

    #[test]
    fn names_of_columns_are_broken() {
        let mut out = String::new();
        let rows = [("one".to_owned(), vec!["1.25".to_owned(), "10".to_owned()])];
        write_table(&mut out, "seconds", &["base", "globally-managed"], &rows);
        let expected =
            "\n               globally-\nseconds  base    managed\none      1.25         10\n";
        assert_eq!(out, expected);
    }
}
