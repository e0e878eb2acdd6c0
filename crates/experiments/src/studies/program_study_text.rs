//! Text form of a study of programs: tables of seconds and requests, and the claims.

use super::program_study::{ProgramStudy, ProgramStudyCell};
use super::study_text::write_claims;
use std::fmt::Write;

/// Returns the text of a study of programs for a terminal, ending with a line feed.
pub(super) fn program_study_text(study: &ProgramStudy) -> String {
    let mut out = String::new();
    let ProgramStudy { name, title, source, note, trials, .. } = study;
    let _ = writeln!(out, "{name}: {title}\nsource: {source}\ntrials: {trials}\n{note}\n");
    let label = study.rows.iter().map(|row| row.label.len()).max().unwrap_or(0).max(15);
    let width = study.columns.iter().map(String::len).max().unwrap_or(0).max(9);
    for (unit, value) in [
        ("seconds", (|cell| format!("{:.3}", cell.seconds)) as fn(&ProgramStudyCell) -> String),
        ("seconds in files", |cell| format!("{:.3}", cell.file_seconds)),
        ("requests", |cell| format!("{:.0}", cell.requests)),
    ] {
        let _ = write!(out, "{unit:label$}");
        for column in &study.columns {
            let _ = write!(out, "  {column:>width$}");
        }
        let _ = writeln!(out);
        for row in &study.rows {
            let _ = write!(out, "{:label$}", row.label);
            for cell in &row.cells {
                let _ = write!(out, "  {:>width$}", value(cell));
            }
            let _ = writeln!(out);
        }
        let _ = writeln!(out);
    }
    write_claims(&mut out, &study.claims);
    out
}
