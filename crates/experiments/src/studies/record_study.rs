//! Studies of records: a machine and a share of records that match in each row, and a way in which
//! they get to their clients in each column.

use super::claims::{ClaimResult, Labelled};
use super::study_text::{write_claims, write_head, write_table};
use super::table_study::TableStudy;
use interface::UserError;
use serde::Serialize;
use simulate::{Progress, RecordCase, RecordOutcome, simulate_records};

/// Bytes in a unit of the table.
const MIB: f64 = (1 << 20) as f64;

/// Results of a study of records.
pub type RecordStudy = TableStudy<RecordStudyRow>;

/// Row of a study of records.
#[derive(Clone, Debug, Serialize)]
pub struct RecordStudyRow {
    /// Description, unique in the study.
    pub label: String,
    /// Machine.
    pub machine: &'static str,
    /// Number of clients.
    pub clients: u32,
    /// Records of a thousand that match.
    pub matching_of_1000: u32,
    /// Results, one for each column.
    pub cells: Vec<RecordStudyCell>,
}

/// Means over the trials of one case.
#[derive(Clone, Debug, Serialize)]
pub struct RecordStudyCell {
    /// Simulated seconds from the first client's begin to the last one's end.
    pub seconds: f64,
    /// Bytes on the network, headers included.
    pub network_bytes: f64,
    /// Records that clients got.
    pub records: f64,
    /// Digest of each trial, in hexadecimal.
    pub digests: Vec<String>,
}

/// Definition of a study of records.
pub(super) struct RecordDefinition {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    pub(super) note: &'static str,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<RecordRowDefinition>,
    pub(super) claims: fn(&[RecordStudyRow]) -> Vec<ClaimResult>,
}

/// Definition of a row: a case for each column.
pub(super) struct RecordRowDefinition {
    pub(super) machine: &'static str,
    pub(super) cases: Vec<RecordCase>,
}

impl RecordDefinition {
    /// Simulates every case.
    pub(super) fn run(
        self,
        trials: u32,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<RecordStudy, UserError> {
        let cases: usize = self.rows.iter().map(|row| row.cases.len()).sum();
        let (mut done, all) = (0, cases as u64 * u64::from(trials));
        let mut rows = Vec::new();
        for RecordRowDefinition { machine, cases } in self.rows {
            let mut cells = Vec::new();
            for case in &cases {
                let mut outcomes = Vec::new();
                for trial in 0..u64::from(trials) {
                    outcomes.push(simulate_records(case, case.scenario.seed + trial)?);
                    done += 1;
                    progress(Progress { done, all });
                }
                cells.push(RecordStudyCell::of(&outcomes));
            }
            let first = cases.first();
            let clients = first.map_or(0, |case| case.scenario.clients);
            let matching_of_1000 = first.map_or(0, |case| case.matching_of_1000);
            let label = format!("{machine}, {clients} clients, {matching_of_1000} of 1000");
            rows.push(RecordStudyRow { label, machine, clients, matching_of_1000, cells });
        }
        let claims = (self.claims)(&rows);
        let Self { name, title, source, note, columns, .. } = self;
        Ok(RecordStudy { name, title, source, note, trials, columns, rows, claims })
    }
}

impl TableStudy<RecordStudyRow> {
    /// Text for a terminal, ending with a line feed.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let Self { name, title, source, note, trials, .. } = self;
        write_head(&mut out, (name, title), source, *trials, note);
        write_claims(&mut out, &self.claims);
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let milliseconds =
            (|cell| format!("{:.2}", cell.seconds * 1e3)) as fn(&RecordStudyCell) -> String;
        for (unit, value) in [
            ("milliseconds", milliseconds),
            ("MiB on the network", |cell| format!("{:.2}", cell.network_bytes / MIB)),
        ] {
            let rows = self.rows.iter().map(|row| {
                (row.label.clone(), row.cells.iter().map(value).collect::<Vec<String>>())
            });
            write_table(&mut out, unit, &columns, &rows.collect::<Vec<_>>());
        }
        out
    }
}

impl RecordStudyRow {
    /// Time of the first column over that of the second.
    pub(super) fn gain(&self) -> f64 {
        self.cells[0].seconds / self.cells[1].seconds
    }

    /// Bytes of the second column over those of the first.
    pub(super) fn bytes_left(&self) -> f64 {
        self.cells[1].network_bytes / self.cells[0].network_bytes
    }

    /// Share of the records that match.
    pub(super) fn matching(&self) -> f64 {
        f64::from(self.matching_of_1000) / 1e3
    }
}

impl RecordStudyCell {
    fn of(outcomes: &[RecordOutcome]) -> Self {
        let mean = |value: fn(&RecordOutcome) -> f64| {
            outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
        };
        Self {
            seconds: mean(|outcome| outcome.seconds),
            network_bytes: mean(|outcome| outcome.network_bytes as f64),
            records: mean(|outcome| outcome.records as f64),
            digests: outcomes.iter().map(|it| format!("{:016x}", it.digest)).collect(),
        }
    }
}

impl Labelled for RecordStudyRow {
    fn label(&self) -> &str {
        &self.label
    }
}
