//! Proves: `sim --timeline` and `sim --plot` write what they are told to, change no result, and
//! refuse what they cannot show before they touch a file.

use crate::support;
use serde_json::Value;
use std::fs;
use support::{FAILED, Place, USAGE, run, unisono};

/// A small case, one trial of it, with more words.
fn sim(words: &[&str]) -> std::process::Command {
    let small = "sim --pattern rb --size 256KiB --clients 4 --servers 2 --json";
    unisono(&[&small.split(' ').collect::<Vec<_>>(), words].concat())
}

#[test]
fn a_timeline_and_a_plot_change_no_result() {
    let place = Place::new();
    let (trace, plot) = (place.path("trace.json"), place.path("heads.svg"));
    let words = ["--strategy", "disk-directed"];
    let digest = |command| {
        let report: Value = serde_json::from_slice(&run(command).done().output).expect("JSON");
        report["results"][0]["digest"].clone()
    };
    let plain = digest(sim(&[&words[..], &["--trials", "1"]].concat()));
    let mut looked_at = sim(&words);
    looked_at.arg("--timeline").arg(&trace).arg("--plot").arg(&plot);
    assert_eq!(digest(looked_at), plain);
    let trace: Value = serde_json::from_slice(&fs::read(trace).expect("a trace")).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 100));
    let drawn = fs::read_to_string(plot).expect("a plot");
    assert!(drawn.starts_with("<svg") && drawn.contains("disk-directed"));
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let place = Place::new();
    let file = place.path("out");
    let refused = |option: &str, words: &[&str], parts: &[&str]| {
        let mut command = sim(words);
        command.arg(option).arg(&file);
        run(command).refused(USAGE, parts);
        assert!(!file.exists());
    };
    let one = ["--strategy", "caching"];
    refused("--timeline", &["--strategy", "all"], &["one case", "3 cases"]);
    refused("--timeline", &[&one[..], &["--trials", "2"]].concat(), &["one trial"]);
    refused("--plot", &["--record", "8,8KiB"], &["one case", "6 cases"]);
    refused("--plot", &["--plot-disk", "2"], &["disk 2", "2 disks"]);
    // What was there stays, also when it shows only later that there is nothing to see.
    fs::write(&file, "precious").expect("it can be written");
    let mut headless = sim(&[&one[..], &["--disk", "nvme"]].concat());
    headless.arg("--plot").arg(&file);
    run(headless).refused(USAGE, &["the head of disk 0"]);
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    let writes = sim(&["--write"]);
    run(writes).refused(USAGE, &["cannot be used with '--write'"]);
    let mut nowhere = sim(&one);
    nowhere.arg("--timeline").arg(place.path("no/such/folder/trace.json"));
    run(nowhere).refused(FAILED, &["cannot write", "trace.json"]);
}
