//! Proves: `bench tops` measures every point that it is asked for and the limits beside them, as a
//! table, JSON, CSV and plots, with a page that is the right one at each read; and refuses what
//! makes no sense. Not here: how fast anything is.

use crate::support;
use serde_json::Value;
use std::collections::BTreeMap;
use support::{Place, USAGE, run, unisono};

fn tops(place: &Place, words: &str) -> std::process::Command {
    let mut command = unisono(&["bench", "tops", "--directory"]);
    command.arg(place.path("")).args(words.split_whitespace());
    command
}

#[test]
fn every_point_is_measured_and_drawn() {
    let place = Place::new();
    let out = place.path("out");
    let words = "--servers 1,2 --clients 1,3 --time 20 --page 64KiB --disk-size 8MiB --json";
    let mut command = tops(&place, words);
    command.arg("--out").arg(&out);
    let report = run(command).done().json();
    assert_eq!(report["schema"], "unisono.tops/3");
    let mut points: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
    for point in report["points"].as_array().expect("points") {
        assert!(point["mib_s"].as_f64().is_some_and(|rate| rate > 0.0), "{point}");
        let number = |key: &str| point[key].as_u64().expect("a number");
        let line = point["line"].as_str().expect("a name").to_owned();
        let figure = point["figure"].as_str().expect("a name").to_owned();
        points.entry(figure).or_default().push((number("servers"), number("clients"), line));
    }
    let figures: Vec<&str> = points.keys().map(String::as_str).collect();
    let all = ["figure10", "figure5", "figure6", "figure7", "figure8", "figure9", "table1"];
    assert_eq!(figures, all);
    assert_eq!(points["table1"].len(), 10, "five patterns, read and written");
    for (figure, points) in points.iter().filter(|(figure, _)| *figure != "table1") {
        let lines = if figure == "figure10" { vec!["no prefetch", "prefetch"] } else { vec![""] };
        let mut expected = Vec::new();
        for servers in [1, 2] {
            for clients in [1, 3] {
                expected.extend(lines.iter().map(|line| (servers, clients, (*line).to_owned())));
            }
        }
        assert_eq!(*points, expected, "{figure}");
    }
    for limit in ["memory_copy_mib_s", "unix_stream_mib_s", "tcp_stream_mib_s", "disk_read_mib_s"] {
        assert!(report["limits"][limit].as_f64().is_some_and(|rate| rate > 0.0), "{limit}");
    }
    let goals: &Vec<Value> = report["goals"].as_array().expect("goals");
    assert_eq!(goals.len(), 7);
    assert_eq!(goals.iter().filter(|goal| goal["wanted"].is_number()).count(), 5);
    for goal in goals {
        let number = |key: &str| goal[key].as_f64().expect("a number");
        assert!(number("mib_s") > 0.0 && number("limit_mib_s") > 0.0, "{goal}");
        let ratios = [0.0, number("ratio_min"), number("ratio"), number("ratio_max")];
        assert!(ratios[1] > 0.0 && ratios.is_sorted(), "{goal}");
    }
    let table = std::fs::read_to_string(out.join("tops.csv")).expect("it was written");
    let measured: usize = points.values().map(Vec::len).sum();
    assert_eq!(table.lines().count(), 1 + measured);
    for figure in &all[..6] {
        let drawn = std::fs::read_to_string(out.join(format!("{figure}.svg"))).expect("drawn");
        assert!(drawn.contains("2 servers") && drawn.ends_with("</svg>\n"), "{figure}");
    }
    // Nothing of the instances is left beside what was asked for.
    let left = std::fs::read_dir(place.path("")).expect("it is there").count();
    assert_eq!(left, 1, "only the results remain");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (words, cause) in [
        ("--page 5000", "page size from 4KiB"),
        ("--disk-page 1KiB", "page size from 4KiB"),
        ("--servers 0", "--servers"),
        ("--clients 1,x", "--clients"),
    ] {
        run(tops(&place, words)).refused(USAGE, &[cause]);
    }
    run(tops(&place, "--out /proc/none")).refused(USAGE, &["cannot write", "/proc/none"]);
}
