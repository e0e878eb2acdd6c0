//! Proves: `bench compute` measures every load that it is asked for, beside what is simulated and
//! published, with shares that can be; pins servers, computation and clients as it says; leaves
//! nothing behind; and refuses what cannot be measured. Not here: how large a share is.

use crate::support;
use interface::CoreList;
use serde_json::Value;
use std::process::Command;
use support::{Place, USAGE, entries, processes_naming, run, unisono};

/// A load that takes little time.
const SMALL: &str = "--clients 2 --size 256KiB --block 64KiB --time 40 --repeat 2";

fn compute(place: &Place, words: &str) -> Command {
    let mut command = unisono(&["bench", "compute", "--directory"]);
    command.arg(place.path("")).args(words.split_whitespace());
    command
}

/// Proves that no process is left, and no file.
#[track_caller]
fn assert_nothing_left(place: &Place) {
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
    assert_eq!(entries(&place.path("")), [""; 0]);
}

fn cores(value: &Value) -> CoreList {
    value.as_str().expect("a list").parse().expect("a list of cores")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is no number: {row}"))
}

#[test]
fn every_load_is_measured() {
    let place = Place::new();
    let words = format!("{SMALL} --servers 2 --nice 0 --json --pattern rc,wbc");
    let report = run(compute(&place, &words)).done().json();
    assert_eq!((&report["schema"], &report["servers"]), (&"unisono.compute/1".into(), &2.into()));
    assert_eq!((&report["barrier_ms"], &report["nice"]), (&5.into(), &0.into()));
    assert!(number(&report, "round_us") > 0.0 && number(&report, "rounds_per_barrier") >= 1.0);
    let servers = report["server_cores"].as_array().expect("cores of each");
    assert_eq!(servers.len(), 2);
    let clients = cores(&report["client_cores"]);
    let are_apart = servers.iter().all(|one| clients.without(&cores(one)) == Some(clients.clone()));
    assert_eq!(report["shares_client_cores"], !are_apart);
    let rows = report["results"].as_array().expect("rows");
    let cases: Vec<_> = rows.iter().map(|row| (&row["pattern"], &row["strategy"])).collect();
    let (rc, wbc) = (Value::from("rc"), Value::from("wbc"));
    let (caching, directed) = (Value::from("caching"), Value::from("disk-directed"));
    assert_eq!(cases, [(&rc, &caching), (&rc, &directed), (&wbc, &caching), (&wbc, &directed)]);
    for row in rows {
        for key in ["mib_s", "computing_mib_s", "barriers_mib_s", "servers_percent"] {
            assert!(number(row, key) > 0.0, "{key}: {row}");
        }
        for key in ["left", "usable"] {
            let [least, share, most] = ["least", "percent", "most"].map(|it| number(&row[key], it));
            assert!(0.0 < least && least <= share && share <= most, "{row}");
            // A machine that others use may leave more than at the measurement beside idle servers.
            assert!(most < 500.0, "{row}");
        }
        for key in ["cpu_available_percent", "cpu_usable_with_barriers_percent"] {
            let simulated = number(&row["simulated"], key);
            assert!(simulated > 0.0 && simulated < 100.0, "{row}");
        }
        let record_bytes = if row["pattern"] == "rc" { 8192 } else { 8 };
        assert_eq!(
            (&row["record_bytes"], &row["file_bytes"]),
            (&record_bytes.into(), &(256 << 10).into())
        );
        assert!(number(row, "transfers") >= 1.0);
    }
    let published = report["published"]["rows"].as_array().expect("Table 4");
    assert_eq!(published.len(), 5);
    assert!(report["published"]["source"].as_str().expect("a source").contains("Table 4"));
    assert_nothing_left(&place);
}

#[test]
fn the_table_says_where_everything_runs() {
    let place = Place::new();
    let words = format!("{SMALL} --servers 1 --server-cores 0 --pattern rc --memory 4MiB --nice 5");
    let ended = run(compute(&place, &words)).done();
    let text = ended.text();
    for words in [
        "1 server on cores 0, a computing thread beside each",
        "nice 0, and 5 for the computation",
        "2 clients on cores ",
        "one thread waits for nobody",
        "rc         8 KiB disk-directed",
        "Table 4",
        "sequential read",
    ] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    assert_nothing_left(&place);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Place::new();
    for (words, told) in [
        ("--server-cores 1023", "cannot run servers on core 1023"),
        ("--server-cores 1,0-1", "named twice"),
        ("--pattern none", "none"),
        ("--strategy slow", "slow"),
        ("--nice 20", "20"),
        ("--nice=-1", "-1"),
        ("--servers 0", "0"),
        ("--clients 5000", "5000"),
        ("--size 0", "0"),
        ("--time 0", "0"),
        ("--block 0", "0"),
    ] {
        run(compute(&place, words)).refused(USAGE, &[told]);
    }
    assert_nothing_left(&place);
}

#[test]
fn the_help_explains_each_number() {
    let mut command = unisono(&["bench", "compute", "--help"]);
    // The help shows its value.
    command.env("UNISONO_ALLOW_ROOT", "true");
    let help = run(command).done();
    assert_eq!(help.text(), include_str!("expected/bench_compute_help.txt"));
}
