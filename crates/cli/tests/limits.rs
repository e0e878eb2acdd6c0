//! Proves: `bench --limits` compares with a memory copy and with the `dd` of this machine, run in
//! the data directory of the same servers, and leaves nothing of it.

use crate::support;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{
    Ended, FAILED, INTERRUPTED, Place, Running, USAGE, children_of, gone, processes_naming, run,
    signal, unisono, until,
};

/// A small bench with limits, its data in `place`.
const WORDS: &str = "bench --limits --size 3000200 --record 200 --clients 2 --servers 1 \
                     --repeat 1 --pattern rbc,wb";

fn bench(place: &Place, words: &str) -> std::process::Command {
    let mut command = unisono(&words.split_whitespace().collect::<Vec<_>>());
    command.arg("--data").arg(place.path("disk")).arg("--directory").arg(place.path(""));
    command
}

/// Lets `command` find nothing but what this script says under the name of `dd`.
fn with_dd(place: &Place, command: &mut std::process::Command, script: Option<&str>) {
    let programs = place.path("programs");
    std::fs::create_dir_all(&programs).expect("a test must have room");
    if let Some(script) = script {
        let path = place.file("programs/dd", format!("#!/bin/sh\n{script}\n").as_bytes());
        let runs = std::fs::set_permissions(path, PermissionsExt::from_mode(0o755));
        runs.expect("it is this test's own");
    }
    command.env("PATH", programs);
}

/// The names in a data directory that are not a server's.
fn strange_names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn limits_are_of_a_copy_and_of_dd() {
    // Proves: the report has a figure for the memory copy and for dd writing, writing with fsync
    // and reading; the table shows each row's ratio to the copy and to dd's like of it, on lines
    // of at most 100 columns.
    let place = Place::new();
    let report = run(bench(&place, &format!("{WORDS} --json"))).done().json();
    let limits = report["limits"].as_object().expect("limits were asked for");
    let named = ["dd_read_mib_s", "dd_write_fsync_mib_s", "dd_write_mib_s", "memory_copy_mib_s"];
    assert_eq!(limits.keys().collect::<Vec<_>>(), named);
    for (name, figure) in limits {
        assert!(figure.as_f64().is_some_and(|figure| figure > 0.0), "{name}: {figure}");
    }
    let table = |words: &str| run(bench(&place, &format!("{WORDS} {words}"))).done();
    let lines = |shown: &Ended| shown.text().lines().map(str::to_owned).collect::<Vec<_>>();
    let (shown, synced) = (lines(&table("")), lines(&table("--sync")));
    assert_eq!(shown.len(), 2 + 1 + 2 * 3, "{shown:?}");
    assert!(shown.iter().all(|line| line.chars().count() <= 100), "{shown:?}");
    let column = |line: &str, at: usize| line.split_whitespace().nth(at).unwrap().to_owned();
    assert_eq!([4, 5, 6].map(|at| column(&shown[2], at)), ["MiB/s", "/copy", "/dd"]);
    // Copy, write, write and fsync, read: the numbers of the first line, in its order.
    let figures = |line: &str| -> Vec<f64> {
        let words = line.split([' ', ';', ',', ':']);
        words.filter_map(|word| word.parse().ok()).collect()
    };
    for (shown, write_at) in [(shown, 1), (synced, 2)] {
        let limits = figures(&shown[0]);
        for line in &shown[3..] {
            // Sizes are two words each.
            let of = |at: usize| column(line, at).parse::<f64>().unwrap();
            let like = if line.starts_with('w') { limits[write_at] } else { limits[3] };
            for (ratio, limit) in [(of(7), limits[0]), (of(8), like)] {
                // Limits are shown with one decimal, ratios with three.
                let (low, high) = (of(6) / (limit + 0.06), of(6) / (limit - 0.06));
                assert!(low - 0.001 <= ratio && ratio <= high + 0.001, "{line}: {limits:?}");
            }
        }
    }
}

#[test]
fn dd_works_in_the_data_directory() {
    // Proves: what is measured is the program dd, without the user's language, with units of 1 MiB,
    // as many bytes as a case has, a file in the first data directory of the instance, and fsync
    // where that is said; the file is gone afterwards and the instance as it was.
    let place = Place::new();
    let data = place.path("disk");
    place.start(&["--servers", "1", "--data", data.to_str().unwrap()]);
    let mut bench = place.command(&["bench", "--limits", "--size", "1504KiB", "--repeat", "1"]);
    let log = place.path("log");
    let script = format!(
        "echo \"$LC_ALL $*\" >> {}; PATH=/usr/bin:/bin; exec dd \"$@\"",
        log.to_str().unwrap()
    );
    with_dd(&place, &mut bench, Some(&script));
    run(bench).done();
    let log = std::fs::read_to_string(log).unwrap();
    let file = data.join(".unisono-dd-");
    let common = "count=1540096";
    let kinds = ["of=/dev/null", "conv=fsync", ""];
    let mut runs = [0; 3];
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], "C", "{line}");
        for word in [common, "bs=1M", "iflag=count_bytes"] {
            assert!(words.contains(&word), "{line}");
        }
        let end = if words.contains(&kinds[0]) { "if=" } else { "of=" };
        let named = words.iter().find_map(|word| word.strip_prefix(end)).unwrap();
        assert!(named.starts_with(file.to_str().unwrap()), "{line}");
        let kind = kinds.iter().position(|kind| kind.is_empty() || words.contains(kind));
        assert!(end == "if=" || words.contains(&"if=/dev/zero"), "{line}");
        runs[kind.unwrap()] += 1;
    }
    assert_eq!(runs, [3, 3, 3], "{log}");
    assert_eq!(strange_names(&data), [""; 0]);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_dd_that_cannot_be_used_is_named() {
    // Proves: a missing dd, and one that fails, are told in three parts with what it said; nothing
    // is left.
    let place = Place::new();
    let mut missing = bench(&place, WORDS);
    with_dd(&place, &mut missing, None);
    run(missing).refused(FAILED, &["dd", "No such file"]);
    let mut failing = bench(&place, WORDS);
    with_dd(&place, &mut failing, Some("echo 'dd: bad luck' >&2; echo more >&2; exit 1"));
    run(failing)
        .refused(USAGE, &["bad luck", "exit status: 1", place.path("disk").to_str().unwrap()]);
    assert_eq!(strange_names(&place.path("disk")), [""; 0]);
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
}

#[test]
fn an_interrupted_dd_leaves_nothing() {
    // Proves: Ctrl-C while dd runs ends it and the bench with code 130, and removes its file.
    let place = Place::new();
    let mut bench = bench(&place, WORDS);
    with_dd(&place, &mut bench, Some("exec /bin/sleep 86399"));
    let bench = Running::start(bench);
    let dd = until("dd runs", || children_of(bench.pid(), "86399").first().copied());
    assert_eq!(strange_names(&place.path("disk")).len(), 1);
    signal(bench.pid(), Signal::INT);
    let ended = bench.end().code(INTERRUPTED);
    assert!(ended.error.contains("interrupted"), "{}", ended.error);
    gone(dd);
    assert_eq!(strange_names(&place.path("disk")), [""; 0]);
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
}
