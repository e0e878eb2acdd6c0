//! Study of what protection costs: a collective call in each row, a protection in each column.
//!
//! Beside each rate stands what bounds it: of all that a write stores, the share that is data.

use super::claims::{ClaimResult, Labelled};
use super::study_text::{write_claims, write_head, write_table};
use super::table_study::TableStudy;
use interface::{Protection, UserError, mib_s};
use serde::Serialize;
use simulate::{
    Machine, MachineName, Progress, ProtectedCall, ProtectedCase, ProtectedOutcome, Scenario,
    simulate_protected,
};

const NOTE: &str = "No paper has figures of these; the claims are ours. All clients take part in \
    each call, and what they write is stored when it ends. Parity has rows of as many blocks as \
    its name says. The machine of 1994 is that of TOCS 1997, with contiguous files; the cluster \
    has 16 servers with an NVMe device each. Without a server, what it had comes from copies, or \
    is made of the rest of its rows. A lost server is filled again by the others while no client \
    does anything; its rate is of what it had, with copies or parity. The bound is the share of \
    data in what a write stores; where disks are the limit, no write of whole rows is faster; of a \
    server that is filled it is one of all disks. The changes of a row are collected, and its \
    parity is written once. What is written again is read before, by two servers: disks of \
    these machines have no page cache before them.";

const DISKS: &str = "1994";
const CLUSTER: &str = "cluster";

/// Protections, in the order of the columns; the first is that with which others are compared.
const PROTECTIONS: [Protection; 5] = [
    Protection::None,
    Protection::Mirror,
    Protection::Parity { blocks: 2 },
    Protection::Parity { blocks: 4 },
    Protection::Parity { blocks: 8 },
];

/// Results of a study of protection.
pub type ProtectionStudy = TableStudy<ProtectionStudyRow>;

/// Row of a study of protection.
#[derive(Clone, Debug, Serialize)]
pub struct ProtectionStudyRow {
    /// Description, unique in the study.
    pub label: String,
    /// Machine.
    pub machine: &'static str,
    /// Call, in words.
    pub call: String,
    #[serde(skip)]
    kind: ProtectedCall,
    /// Results, one for each column; `None` where there is nothing to simulate.
    pub cells: Vec<Option<ProtectionStudyCell>>,
}

/// Means over the trials of one case.
#[derive(Clone, Debug, Serialize)]
pub struct ProtectionStudyCell {
    /// Simulated seconds of the call.
    pub seconds: f64,
    /// Bytes that clients wrote or read, in 2^20 bytes a second.
    pub mib_s: f64,
    /// Rate over that of the same call without protection; without a server, over that of the read
    /// with all servers and without protection.
    pub share: f64,
    /// Bound of the share where disks are the limit.
    pub bound: f64,
    /// Digest of each trial, in hexadecimal.
    pub digests: Vec<String>,
}

/// Definition of a study of protection.
pub(super) struct ProtectionDefinition {
    pub(super) name: &'static str,
    title: &'static str,
    machines: Vec<(&'static str, Scenario)>,
}

/// Returns every study of protection.
pub(super) fn studies() -> [ProtectionDefinition; 1] {
    let scenario = |machine, block_bytes: u64, blocks: u64| Scenario {
        machine: Machine::of(machine),
        block_bytes,
        file_bytes: blocks * block_bytes,
        ..Scenario::default()
    };
    // About the 10 MB of the papers. Each client has a multiple of three blocks, and all rows are
    // whole.
    const BLOCKS: u64 = 1296;
    let machines = vec![
        (DISKS, scenario(MachineName::Tocs97, 8 << 10, BLOCKS)),
        (CLUSTER, scenario(MachineName::Cluster, 1 << 20, BLOCKS)),
    ];
    [ProtectionDefinition {
        name: "protection",
        title: "Files with copies or parity: whole rows, parts of rows, and reads",
        machines,
    }]
}

impl ProtectionDefinition {
    /// Simulates every case.
    pub(super) fn run(
        self,
        trials: u32,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<ProtectionStudy, UserError> {
        let all = (self.machines.len() * ProtectedCall::ALL.len() * PROTECTIONS.len()) as u64;
        let (mut done, all) = (0, all * u64::from(trials));
        let mut rows: Vec<ProtectionStudyRow> = Vec::new();
        for (machine, scenario) in &self.machines {
            for call in ProtectedCall::ALL {
                let mut cells: Vec<Option<ProtectionStudyCell>> = Vec::new();
                for protection in PROTECTIONS {
                    let scenario = Scenario { protection, ..scenario.clone() };
                    let case = ProtectedCase { scenario, call };
                    let plain = match call {
                        // Compared with the read of all without protection.
                        call if call.loses_server() => {
                            let read = |row: &&ProtectionStudyRow| row.is(&[ProtectedCall::Read]);
                            rows.iter().rfind(read).map(|row| &row.cells)
                        }
                        _ => Some(&cells),
                    };
                    let plain = plain.and_then(|cells| cells.first()?.as_ref());
                    let cell = ProtectionStudyCell::of(&case, trials, plain)?;
                    cells.push(cell);
                    done += u64::from(trials);
                    progress(Progress { done, all });
                }
                let (label, call, kind) = (format!("{machine}: {call}"), call.to_string(), call);
                rows.push(ProtectionStudyRow { label, machine, call, kind, cells });
            }
        }
        Ok(ProtectionStudy {
            name: self.name,
            title: self.title,
            source: "this project, decisions 0086 and 0098",
            note: NOTE,
            trials,
            columns: PROTECTIONS.iter().map(ToString::to_string).collect(),
            claims: claims(&rows),
            rows,
        })
    }
}

impl ProtectionStudyCell {
    /// Simulates a case, to be compared with `plain`. `None` for a call that cannot be: nothing
    /// else has what the lost server of a file without protection had.
    fn of(
        case: &ProtectedCase,
        trials: u32,
        plain: Option<&Self>,
    ) -> Result<Option<Self>, UserError> {
        let is_lost = case.scenario.protection == Protection::None;
        if is_lost && case.call.loses_server() {
            return Ok(None);
        }
        let seeds = (0..u64::from(trials)).map(|trial| case.scenario.seed + trial);
        let outcomes = seeds.map(|seed| simulate_protected(case, seed));
        let outcomes = outcomes.collect::<Result<Vec<ProtectedOutcome>, UserError>>()?;
        let mean = |value: fn(&ProtectedOutcome) -> f64| {
            outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
        };
        let mib_s = mean(|outcome| mib_s(outcome.bytes, outcome.seconds));
        Ok(Some(Self {
            seconds: mean(|outcome| outcome.seconds),
            mib_s,
            share: plain.map_or(1.0, |plain| mib_s / plain.mib_s),
            bound: case.bound(),
            digests: outcomes.iter().map(|it| format!("{:016x}", it.digest)).collect(),
        }))
    }
}

impl ProtectionStudyRow {
    /// Shares of the columns with a protection, with their bounds.
    fn shares(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.cells[1..].iter().flatten().map(|cell| (cell.share, cell.bound))
    }

    /// Shares with copies, and with parity from narrow to wide rows.
    fn copies_and_parity(&self) -> (f64, Vec<f64>) {
        let shares: Vec<f64> = self.shares().map(|(share, _)| share).collect();
        (shares[0], shares[1..].to_vec())
    }

    /// True if it is one of these calls.
    fn is(&self, calls: &[ProtectedCall]) -> bool {
        calls.contains(&self.kind)
    }
}

fn claims(rows: &[ProtectionStudyRow]) -> Vec<ClaimResult> {
    use ProtectedCall::{Read, ReadWithout, Refill, WriteAgain, WriteBlocks, WriteNew};
    let of = |machine: &str, kind: ProtectedCall| {
        rows.iter().find(|row| row.machine == machine && row.kind == kind)
    };
    vec![
        ClaimResult::check(
            "reads with all servers: as without protection, within 2 %",
            rows,
            |row| {
                row.is(&[Read]).then(|| row.shares().all(|(share, _)| (share - 1.0).abs() < 0.02))
            },
        ),
        ClaimResult::check(
            "whole rows where disks are the limit: share <= bound, within 1 %",
            rows,
            |row| {
                let is_meant = row.machine == DISKS && row.is(&[WriteNew, WriteAgain]);
                is_meant.then(|| row.shares().all(|(share, bound)| share <= 1.01 * bound))
            },
        ),
        ClaimResult::check(
            "a new file where disks are the limit: parity at its bound, within 3 %",
            rows,
            |row| {
                let is_meant = row.machine == DISKS && row.is(&[WriteNew]);
                is_meant.then(|| row.shares().skip(1).all(|(share, bound)| share > 0.97 * bound))
            },
        ),
        ClaimResult::check("again, and blocks: copies faster than parity", rows, |row| {
            let (copies, parity) = row.copies_and_parity();
            let is_meant = row.is(&[WriteAgain, WriteBlocks]);
            is_meant.then(|| parity.iter().all(|share| *share < copies))
        }),
        ClaimResult::check("whole rows with parity: again slower than new", rows, |row| {
            let new = of(row.machine, WriteNew).filter(|_| row.is(&[WriteAgain]))?;
            let pairs = row.shares().zip(new.shares()).skip(1);
            Some(pairs.into_iter().all(|((again, _), (new, _))| again < new))
        }),
        ClaimResult::check("without a server: copies > parity, wide rows slowest", rows, |row| {
            let (copies, parity) = row.copies_and_parity();
            let shares = [&[1.0, copies], &parity[..]].concat();
            row.is(&[ReadWithout]).then(|| shares.is_sorted_by(|wide, narrow| wide > narrow))
        }),
        ClaimResult::check("filling: copies > parity, wide rows slowest", rows, |row| {
            let (copies, parity) = row.copies_and_parity();
            let shares = [&[copies], &parity[..]].concat();
            row.is(&[Refill]).then(|| shares.is_sorted_by(|wide, narrow| wide > narrow))
        }),
        ClaimResult::check(
            "filling where disks are the limit: share <= bound, a quarter of it at least",
            rows,
            |row| {
                let is_meant = row.machine == DISKS && row.is(&[Refill]);
                is_meant.then(|| {
                    row.shares().all(|(share, bound)| share <= bound && share > 0.25 * bound)
                })
            },
        ),
    ]
}

impl TableStudy<ProtectionStudyRow> {
    /// Text for a terminal, ending with a line feed.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let Self { name, title, source, note, trials, .. } = self;
        write_head(&mut out, (name, title), source, *trials, note);
        write_claims(&mut out, &self.claims);
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let rate = (|cell| format!("{:.2}", cell.mib_s)) as fn(&ProtectionStudyCell) -> String;
        for (unit, value) in [
            ("MiB/s", rate),
            ("share of none, and bound", |cell| format!("{:.2} of {:.2}", cell.share, cell.bound)),
        ] {
            let shown = |cell: &Option<ProtectionStudyCell>| {
                cell.as_ref().map_or_else(|| "-".to_owned(), value)
            };
            let rows = self.rows.iter().map(|row| {
                (row.label.clone(), row.cells.iter().map(shown).collect::<Vec<String>>())
            });
            write_table(&mut out, unit, &columns, &rows.collect::<Vec<_>>());
        }
        out
    }
}

impl Labelled for ProtectionStudyRow {
    fn label(&self) -> &str {
        &self.label
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the claims hold in the study, each in at least one row.
    use super::*;

    #[test]
    fn the_claims_hold() {
        for definition in studies() {
            let study = definition.run(1, &|_| {}).unwrap();
            let text = study.text();
            assert!(study.claims.iter().all(ClaimResult::holds), "{text}");
        }
    }
}
