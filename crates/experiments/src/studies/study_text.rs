//! Text form of a study: a table of seconds and disk reads, and the claims.

use super::claims::ClaimResult;
use super::study::Study;
use std::fmt::Write;

/// Returns the text of a study for a terminal, ending with a line feed.
pub(super) fn study_text(study: &Study) -> String {
    let mut out = String::new();
    let Study { name, title, source, note, trials, .. } = study;
    let _ = writeln!(out, "{name}: {title}\nsource: {source}\ntrials: {trials}\n{note}\n");
    let width = study.rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    for (unit, value) in [
        ("seconds", (|cell| format!("{:.2}", cell.seconds)) as fn(&super::StudyCell) -> String),
        ("disk reads", |cell| format!("{:.0}", cell.disk_reads)),
    ] {
        let _ = write!(out, "{unit:width$}");
        for cell in study.rows.first().map_or(&[][..], |row| &row.cells) {
            let _ = write!(out, "  {:>21}", cell.cooperation);
        }
        let _ = writeln!(out);
        for row in &study.rows {
            let _ = write!(out, "{:width$}", row.label);
            for cell in &row.cells {
                let _ = write!(out, "  {:>21}", value(cell));
            }
            let _ = writeln!(out);
        }
        let _ = writeln!(out);
    }
    write_claims(&mut out, &study.claims);
    out
}

/// Writes a line for each claim.
pub(super) fn write_claims(out: &mut String, claims: &[ClaimResult]) {
    for claim in claims {
        let held = claim.rows - claim.exceptions.len();
        let _ = write!(out, "{}: holds in {held} of {} rows", claim.claim, claim.rows);
        for (at, row) in claim.exceptions.iter().enumerate() {
            let before = if at == 0 { "; not in" } else { ";" };
            let known = if claim.known.contains(row) { " (known)" } else { "" };
            let _ = write!(out, "{before} {row}{known}");
        }
        let _ = writeln!(out);
    }
}
