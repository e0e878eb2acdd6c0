//! Proves: a program is carried out on real servers by every strategy and leaves nothing behind; a
//! what-if crosses its lists, puts the fastest point first and gives the same result each time;
//! both refuse what makes no sense.

use crate::support;
use serde_json::Value;
use std::path::PathBuf;
use support::{Ended, FAILED, Place, USAGE, run, unisono};
use trace::PatternProgram;

fn pattern(place: &Place, name: &str, pattern: &str, record_bytes: u64, sync: bool) -> PathBuf {
    let directory = place.path(name);
    let program = PatternProgram {
        pattern: pattern.parse().unwrap(),
        record_bytes,
        file_bytes: 1 << 20,
        ranks: 3,
        files: 1,
        repeat: 4,
        computed_ns: 1_000_000,
        is_independent: pattern == "wbc",
        sync,
    };
    program.write(&directory).unwrap();
    directory
}

fn command(place: &Place, what: &str, trace: &PathBuf, words: &str) -> Ended {
    let mut command = unisono(&[what]);
    command.arg(trace).args(words.split_whitespace());
    if what == "replay" && !words.contains("--instance") {
        command.arg("--directory").arg(place.path(""));
    }
    run(command)
}

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.exit_code(), Some(0), "{}", ended.error);
    serde_json::from_slice(&ended.output).expect("one JSON object")
}

#[test]
fn a_replay_moves_what_the_program_moved() {
    let place = Place::with_servers(2);
    let instance = format!("--instance {}", place.instance().display());
    for (name, sync) in [("rc", false), ("wc", true), ("wbc", false), ("rb", false)] {
        let bytes = if name == "wbc" { 8192 } else { 512 };
        let trace = pattern(&place, name, name, bytes, sync);
        for strategy in ["disk-directed", "two-phase", "caching"] {
            let words = format!("{instance} --strategy {strategy} --repeat 2 --json");
            let report = json(&command(&place, "replay", &trace, &words));
            assert_eq!(report["schema"], "unisono.replay/1");
            let runs = report["runs"].as_array().unwrap();
            assert_eq!(runs.len(), 2);
            for run in runs {
                let ranks = run["ranks"].as_array().unwrap();
                let sum = |key: &str| ranks.iter().map(|rank| rank[key].as_u64().unwrap()).sum();
                let moved: (u64, u64) = (sum("read_bytes"), sum("written_bytes"));
                let all = 4 << 20;
                assert_eq!(moved, if name.starts_with('r') { (all, 0) } else { (0, all) });
                // Each of three ranks computes for 4 ms.
                let computed: u64 = sum("computing");
                assert!(computed >= 12_000_000, "{computed} ns");
                assert!(run["seconds"].as_f64().unwrap() > 0.004);
            }
        }
    }
    let left = run(unisono(&["ls", "--instance", place.instance().to_str().unwrap()]));
    assert!(left.output.is_empty(), "nothing is left");
}

#[test]
fn a_replay_starts_servers_of_its_own() {
    let place = Place::new();
    let trace = pattern(&place, "trace", "wc", 512, false);
    let ended = command(&place, "replay", &trace, "--servers 2 --repeat 2");
    assert_eq!(ended.exit_code(), Some(0), "{}", ended.error);
    let shown = String::from_utf8(ended.output).unwrap();
    assert_eq!(shown.lines().count(), 4, "{shown}");
    assert!(shown.lines().last().unwrap().starts_with("median "));
}

#[test]
fn a_what_if_crosses_its_lists() {
    let place = Place::new();
    let trace = pattern(&place, "trace", "rc", 512, false);
    let words = "--machine tr94 --block 8KiB --servers 1,4 --disk hp97560,nvme --json";
    let first = json(&command(&place, "what-if", &trace, words));
    assert_eq!(first["schema"], "unisono.what-if/2");
    let points = first["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    // A range is stated for machines that were measured, and the 1994 machine was not here.
    assert!(points.iter().all(|point| point["range"].is_null() && point["kind"] == "directed"));
    let seconds: Vec<f64> = points.iter().map(|point| point["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.is_sorted() && seconds[0] > 0.004, "{seconds:?}");
    let point = |servers: &str, disk: &str| {
        let is_it = |point: &&Value| {
            point["values"]["servers"] == servers && point["values"]["disk"] == disk
        };
        points.iter().find(is_it).unwrap()["seconds"].as_f64().unwrap()
    };
    assert!(point("4", "hp97560") < 0.6 * point("1", "hp97560"), "four disks are faster than one");
    assert_eq!(points.last().unwrap()["values"]["disk"], "hp97560");
    let gain = points[0]["gain"].as_f64().unwrap();
    let expected = point("1", "hp97560") / seconds[0];
    assert!((gain / expected - 1.0).abs() < 1e-9, "{gain} and {expected}");
    assert!(first["error"].as_str().unwrap().contains("not calibrated"));
    assert_eq!(first, json(&command(&place, "what-if", &trace, words)), "the same each time");
    let half = format!("{words} --compute-speed 0.1");
    let slower = json(&command(&place, "what-if", &trace, &half));
    let computing = slower["points"][0]["computing_seconds"].as_f64().unwrap();
    assert!((computing - 0.04).abs() < 1e-6, "{computing}");
}

#[test]
fn a_calibrated_machine_has_ranges_and_says_what_was_not_checked() {
    let place = Place::new();
    let trace = pattern(&place, "trace", "rc", 512, false);
    place.file("disk.toml", include_bytes!("../../../docs/disks/page-cache.toml"));
    let scenario = "machine = \"this-machine\"\ndisk = \"disk.toml\"\n\
                    [parameters]\ncalibrated-at = 1\n";
    place.file("measured.toml", scenario.as_bytes());
    let file = place.path("measured.toml");
    let words = format!("--scenario {} --servers 2,64 --json", file.display());
    let said = json(&command(&place, "what-if", &trace, &words));
    for point in said["points"].as_array().unwrap() {
        let seconds = |place: usize| point["range"][place].as_f64().unwrap();
        assert!(0.0 < seconds(0) && seconds(0) < seconds(1), "{point}");
    }
    let error = said["error"].as_str().unwrap();
    for part in ["checked cases", "64 servers", "3 ranks", "files that no cache holds"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let warm = json(&command(&place, "what-if", &trace, &format!("{words} --warm-files")));
    assert!(!warm["error"].as_str().unwrap().contains("no cache"), "{warm}");
    let other = json(&command(&place, "what-if", &trace, &format!("{words} --disk nvme")));
    assert!(other["error"].as_str().unwrap().starts_with("not calibrated"), "{other}");
}

#[test]
fn a_scenario_that_is_no_calibration_is_not_checked() {
    let place = Place::new();
    place.file("plain.toml", b"machine = \"this-machine\"\n");
    let (plain, none) = (place.path("plain.toml"), place.path("none.toml"));
    for (file, said) in [(plain, "is no calibration"), (none, "cannot read the scenario file")] {
        let ended = run(unisono(&["sim", "calibrate", "--check", file.to_str().unwrap()]));
        assert_eq!(ended.exit_code(), Some(USAGE), "{}", ended.error);
        assert!(ended.error.contains(said) && ended.error.contains("\nhelp:"), "{}", ended.error);
    }
}

#[test]
fn a_what_if_draws_and_records() {
    let place = Place::new();
    let trace = pattern(&place, "trace", "wc", 512, true);
    let (plot, timeline) = (place.path("plot.svg"), place.path("timeline.json"));
    let mut command = unisono(&["what-if", "--servers", "1,2", "--plot"]);
    command.arg(&plot).arg("--timeline").arg(&timeline).arg(&trace);
    let ended = run(command);
    assert_eq!(ended.exit_code(), Some(0), "{}", ended.error);
    assert!(ended.output.starts_with(b"best: "));
    let drawn = std::fs::read_to_string(plot).unwrap();
    assert!(drawn.contains("<svg") && drawn.contains("servers"));
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(timeline).unwrap()).expect("it is JSON");
    let events = recorded["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    assert_eq!(named("MPI_File_write_all"), 3 * 4, "each call of each rank");
    assert_eq!(named("MPI_File_sync"), 3 * 4);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    let trace = pattern(&place, "trace", "wc", 512, false);
    let ended = command(&place, "what-if", &trace, "--plot /nowhere/picture.svg");
    assert!(ended.error.contains("/nowhere/picture.svg") && ended.error.contains("\nhelp:"));
    assert_eq!(ended.exit_code(), Some(FAILED));
    for (words, said) in [
        ("--servers 0", "--servers cannot be \"0\""),
        ("--strategy fast", "--strategy cannot be \"fast\""),
        ("--set qeue=cscan", "--set cannot change \"qeue\""),
        ("--compute-speed 0", "the speed 0"),
        ("--compute-speed 1e-15", "years"),
        ("--set queue=fcfs --set queue=cscan", "queue is given twice"),
    ] {
        let ended = command(&place, "what-if", &trace, words);
        assert_eq!(ended.exit_code(), Some(USAGE), "{words}: {}", ended.error);
        assert!(ended.error.contains(said), "{words}: {}", ended.error);
        assert!(ended.error.contains("\nhelp:"), "{words}: {}", ended.error);
    }
    for what in ["replay", "what-if"] {
        let ended = command(&place, what, &place.path("nothing"), "");
        assert_ne!(ended.exit_code(), Some(0));
        assert!(ended.error.contains("\nhelp:"), "{what}: {}", ended.error);
    }
    // A rank that was killed leaves a stream without an end.
    let stream = trace.join("rank-00001.events");
    let bytes = std::fs::read(&stream).unwrap();
    std::fs::write(&stream, &bytes[..bytes.len() / 2]).unwrap();
    for what in ["replay", "what-if"] {
        let ended = command(&place, what, &trace, "");
        assert_eq!(ended.exit_code(), Some(USAGE), "{what}: {}", ended.error);
        assert!(ended.error.contains("rank 1"), "{what}: {}", ended.error);
    }
}
