//! `demo`: transfers a real file with every strategy, here and on the simulated machine of 1994.

use crate::arguments::Demo;
use crate::output::format::show_size;
use crate::output::present::{self, line};
use cluster::Program;
use interface::{Row, UserError};
use measure::{DEMO_CLIENTS, DEMO_SERVERS, DemoCase, DemoEvent};
use serde_json::json;

pub(crate) fn run(arguments: &Demo) -> Result<(), UserError> {
    arguments.root.check()?;
    client::clean_up_on_signals()?;
    let program = Program::current()?;
    let (input, directory) = (arguments.input.as_deref(), arguments.directory.as_deref());
    let mut shown = Ok(());
    let mut previous = None;
    let cases = measure::demo(&program, input, directory, |event| {
        if arguments.json || shown.is_err() {
            return;
        }
        shown = match event {
            DemoEvent::Begun { input, bytes, sha256 } => show_begin(input, bytes, sha256),
            DemoEvent::Case(case) => {
                let group = Some((case.real[0].pattern.clone(), case.real[0].record_bytes));
                let is_new = previous.replace(group.clone()) != Some(group);
                show_case(case, is_new)
            }
        };
    })?;
    shown?;
    if arguments.json {
        let rows = |pick: fn(&DemoCase) -> &[Row; 2]| -> Vec<Row> {
            cases.iter().flat_map(pick).cloned().collect()
        };
        return present::json(&json!({
            "schema": "unisono.demo/1",
            "real": rows(|case| &case.real),
            "simulated": rows(|case| &case.simulated),
        }));
    }
    show_end(&cases)
}

fn show_begin(input: &std::path::Path, bytes: u64, sha256: &str) -> Result<(), UserError> {
    line(&format!("input   {} ({bytes} bytes)", input.display()))?;
    line(&format!("sha256  {sha256}"))?;
    line(&format!(
        "{DEMO_CLIENTS} client processes write it as a matrix of records, then read it back in \
         another\ndistribution, through {DEMO_SERVERS} servers on this machine. MiB/s:\n"
    ))?;
    line("                                here              1994, simulated")?;
    line("pattern   record  strategy        write     read    write   read   sha256")
}

fn show_case(case: &DemoCase, is_new: bool) -> Result<(), UserError> {
    let [write, read] = &case.real;
    let [write_1994, read_1994] = &case.simulated;
    let label = match is_new {
        true => {
            let pattern = format!("{}/{}", write.pattern, read.pattern);
            format!("{pattern:<8} {:>7}", show_size(write.record_bytes))
        }
        false => " ".repeat(16),
    };
    let part = match case.is_whole {
        true => "same".to_owned(),
        false => format!("same (first {})", show_size(write.file_bytes)),
    };
    line(&format!(
        "{label}  {:<13} {:>7.1}  {:>7.1}  {:>7.1} {:>6.1}   {part}",
        write.strategy, write.mib_s, read.mib_s, write_1994.mib_s, read_1994.mib_s,
    ))
}

/// Prints the largest speedup of disk-directed over caching, and the reason for it.
fn show_end(cases: &[DemoCase]) -> Result<(), UserError> {
    line("")?;
    for record_bytes in [8, 65_536] {
        line(&format!(
            "{:>6} records: disk-directed is up to {:.0} x caching here, {:.0} x in 1994{}",
            show_size(record_bytes),
            best_ratio(cases, record_bytes, |case| &case.real),
            best_ratio(cases, record_bytes, |case| &case.simulated),
            if is_whole(cases, record_bytes) { "" } else { " (its first part)" },
        ))?;
    }
    line(
        "\nCaching asks for every record by itself. Two-phase asks for large parts, then moves \
         each byte\na second time. Disk-directed asks once, and each byte moves once between \
         server and client.",
    )
}

/// True if every case with records of this size transferred the whole input.
fn is_whole(cases: &[DemoCase], record_bytes: u64) -> bool {
    let of_size = |case: &&DemoCase| case.real[0].record_bytes == record_bytes;
    cases.iter().filter(of_size).all(|case| case.is_whole)
}

/// Largest ratio of the throughputs of disk-directed and caching, over all transfers with records
/// of this size.
fn best_ratio(cases: &[DemoCase], record_bytes: u64, rows: fn(&DemoCase) -> &[Row; 2]) -> f64 {
    let rates = |strategy: &str| -> Vec<f64> {
        let rows = cases.iter().flat_map(rows);
        let wanted =
            rows.filter(|row| row.strategy == strategy && row.record_bytes == record_bytes);
        wanted.map(|row| row.mib_s).collect()
    };
    let pairs = rates("disk-directed").into_iter().zip(rates("caching"));
    pairs.map(|(directed, caching)| directed / caching).fold(0.0, f64::max)
}
