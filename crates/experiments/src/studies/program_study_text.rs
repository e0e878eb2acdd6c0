//! Text form of a study of programs: tables of seconds and requests, and the claims.

use super::program_study::{ProgramStudy, ProgramStudyCell};
use super::study_text::{write_claims, write_head, write_table};

/// Returns the text of a study of programs for a terminal, ending with a line feed.
pub(super) fn program_study_text(study: &ProgramStudy) -> String {
    let mut out = String::new();
    let ProgramStudy { name, title, source, note, trials, .. } = study;
    write_head(&mut out, (name, title), source, *trials, note);
    write_claims(&mut out, &study.claims);
    let columns: Vec<&str> = study.columns.iter().map(String::as_str).collect();
    for (unit, value) in [
        ("seconds", (|cell| format!("{:.3}", cell.seconds)) as fn(&ProgramStudyCell) -> String),
        ("seconds in files", |cell| format!("{:.3}", cell.file_seconds)),
        ("requests", |cell| format!("{:.0}", cell.requests)),
    ] {
        let rows = study.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (row.label.clone(), row.cells.iter().map(value).collect::<Vec<String>>()))
            .collect();
        write_table(&mut out, unit, &columns, &rows);
    }
    out
}
