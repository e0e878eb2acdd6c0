//! Proves: files in memory outlive crashes and stops of their servers, are never taken for others,
//! and go when the user says so; what cannot be reserved is refused; nothing is left.

use crate::hosts::Site;
use crate::support;
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{
    NO_SERVER, Place, USAGE, bytes, gone, processes_naming, run, signal, unisono, until,
};

const MEMORY: [&str; 4] = ["--servers", "2", "--memory", "64MiB"];

/// Processes that hold the memory of servers.
fn keepers(place: &Path) -> Vec<u32> {
    let is_keeper = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"keep-memory")
    };
    processes_naming(place).into_iter().filter(is_keeper).collect()
}

#[track_caller]
fn assert_has(place: &Place, name: &str, content: &[u8]) {
    assert!(place.run(&["get", name, "-"]).done().output == content, "{name} is as it was");
}

#[test]
fn files_in_memory_outlive_crashes_and_stops() {
    let (place, content) = (Place::new(), bytes(30 << 20));
    place.start(&MEMORY);
    place.file("local", &content);
    place.run(&["put", "local", "field"]).done();
    let servers = place.run(&["df", "--json"]).done().json()["servers"].clone();
    let free = |server: &Value| {
        let disk = &server["disks"][0];
        assert_eq!(disk["capacity_bytes"], 64 << 20, "its own memory: {disk}");
        disk["free_bytes"].as_u64().expect("a number")
    };
    let all: u64 = servers.as_array().expect("a list").iter().map(free).sum();
    assert_eq!(all, (128 - 30) << 20);
    for pid in place.server_pids() {
        signal(pid, Signal::KILL);
        gone(pid);
    }
    let stopped = place.run(&["stop"]).done();
    let again = "to use them: unisono start --memory 64MiB --servers 2 --instance ";
    assert!(stopped.text().contains("the files remain in memory"), "{}", stopped.text());
    assert!(stopped.text().contains(again), "{}", stopped.text());
    assert_eq!(keepers(&place.path("")).len(), 2);
    // Not as memory of another size, nor by fewer servers.
    let start = |words: &[&str]| place.run(&[&["start"], words].concat());
    start(&["--servers", "2", "--memory", "32MiB"])
        .refused(USAGE, &["other memory", "it has 64MiB"]);
    let fewer = start(&["--servers", "1", "--memory", "64MiB"]);
    assert_ne!(fewer.exit_code(), Some(0), "{}", fewer.text());
    start(&MEMORY).done();
    assert_has(&place, "field", &content);
    // One server alone is found again too, with what was written since.
    place.run(&["put", "local", "second"]).done();
    let first = place.server_pids()[0];
    signal(first, Signal::KILL);
    gone(first);
    place.run(&["stop"]).done();
    start(&MEMORY).done();
    assert_has(&place, "field", &content);
    assert_has(&place, "second", &content);
    let stopped = place.run(&["stop", "--discard"]).done();
    assert!(stopped.text().contains("the memory is free again"), "{}", stopped.text());
    until("the memory is given back", || keepers(&place.path("")).is_empty().then_some(()));
    start(&MEMORY).done();
    assert_eq!(place.files(), [""; 0]);
    // Without files, a stop gives it back by itself.
    let stopped = place.run(&["stop"]).done();
    assert!(stopped.text().contains("the memory is free again"), "{}", stopped.text());
    until("the memory is given back", || keepers(&place.path("")).is_empty().then_some(()));
}

#[test]
fn memory_that_is_gone_is_not_taken_for_empty_files() {
    let place = Place::new();
    place.start(&MEMORY);
    place.file("local", &bytes(5 << 20));
    place.run(&["put", "local", "field"]).done();
    let keeper = keepers(&place.path("")).into_iter().min().expect("it is there");
    signal(keeper, Signal::KILL);
    gone(keeper);
    place.run(&["stop"]).refused(NO_SERVER, &["memory of 1 server are lost"]);
    let start = || place.run(&[&["start"], &MEMORY[..]].concat());
    start().refused(NO_SERVER, &["the memory of server", "is gone"]);
    start().refused(NO_SERVER, &["the memory of server", "is gone"]);
    place.run(&["stop", "--discard"]).done();
    start().done();
    assert_eq!(place.files(), [""; 0]);
    place.run(&["put", "local", "field"]).done();
    // After a crash of everything, without a stop.
    for pid in processes_naming(&place.path("")) {
        signal(pid, Signal::KILL);
        gone(pid);
    }
    start().refused(NO_SERVER, &["the memory of server", "is gone"]);
    let discarded = place.run(&["stop", "--discard"]).done();
    assert!(discarded.text().contains("free again"), "{}", discarded.text());
    start().done();
    place.run(&["stop", "--discard"]).done();
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let place = Place::new();
    let start = |words: &[&str]| place.run(&[&["start", "--servers", "2"], words].concat());
    start(&["--memory", "100TiB"]).refused(NO_SERVER, &["cannot reserve 102400GiB", "available"]);
    start(&["--memory", "1EiB"]).refused(NO_SERVER, &["cannot reserve", "available"]);
    assert_eq!(processes_naming(&place.path("")), [0_u32; 0]);
    start(&["--memory", "0"]).refused(USAGE, &["at least 1MiB"]);
    for other in [&["--data", "d"][..], &["--direct"], &["--degraded"]] {
        start(&[&["--memory", "1MiB"], other].concat()).refused(USAGE, &["--memory"]);
    }
    start(&["--memory", "many"]).refused(USAGE, &["--memory"]);
    // Memory that is taken by earlier servers is not there for the next.
    start(&["--memory", "1MiB"]).done();
    place.run(&["stop"]).done();
}

#[test]
fn a_start_that_fails_takes_no_memory_and_another_size_can_follow() {
    let place = Place::new();
    place.start(&MEMORY);
    place.run(&["stop"]).done();
    // The second server cannot begin: its records are no directory.
    let sizes = place.instance().join("data/memory-1/sizes");
    std::fs::remove_dir_all(&sizes).expect("it is there");
    place.file("instance/data/memory-1/sizes", b"");
    let start = |size| place.run(&["start", "--servers", "2", "--memory", size]);
    assert_ne!(start("64MiB").exit_code(), Some(0));
    until("the memory is given back", || keepers(&place.path("")).is_empty().then_some(()));
    std::fs::remove_file(&sizes).expect("it is there");
    start("32MiB").done();
    place.run(&["stop", "--discard"]).done();
}

#[test]
fn the_memory_of_an_instance_is_not_that_of_its_copy() {
    let place = Place::new();
    let content = bytes(5 << 20);
    place.start(&MEMORY);
    place.file("local", &content);
    place.run(&["put", "local", "field"]).done();
    let copy = place.path("copy");
    let copied = Command::new("cp").arg("-r").arg(place.instance()).arg(&copy).status();
    // Sockets may not be copied.
    copied.expect("there is a cp");
    let on_copy = |words: &[&str]| {
        let mut command = unisono(words);
        command.arg("--instance").arg(&copy);
        run(command)
    };
    std::fs::remove_file(copy.join("instance.json")).expect("it is there");
    on_copy(&[&["start"], &MEMORY[..]].concat()).refused(NO_SERVER, &["is gone", "a copy"]);
    on_copy(&["stop", "--discard"]).done();
    assert_eq!(keepers(&place.path("")).len(), 2, "those of the original");
    assert_has(&place, "field", &content);
    // Nor does a start without memory forget it.
    place.run(&["stop"]).done();
    place.run(&["start", "--servers", "2"]).refused(USAGE, &["are in memory", "--memory"]);
    place.run(&[&["start"], &MEMORY[..]].concat()).done();
    assert_has(&place, "field", &content);
    place.run(&["stop", "--discard"]).done();
}

#[test]
fn servers_on_hosts_have_memory_of_their_own() {
    let site = Site::becoming();
    let (place, content) = (site.place(), bytes(9 << 20));
    site.start(&["--memory", "64MiB"]).done();
    place.file("local", &content);
    place.run(&["put", "local", "field"]).done();
    assert_has(place, "field", &content);
    assert_eq!(keepers(&place.path("scratch")).len(), 2);
    place.run(&["stop", "--discard"]).done();
    until("the memory is given back", || keepers(&place.path("")).is_empty().then_some(()));
    site.start(&["--memory", "64MiB"]).done();
    place.run(&["put", "local", "field"]).done();
    place.run(&["stop"]).done();
    assert_eq!(keepers(&place.path("scratch")).len(), 2, "the files remain");
    site.start(&["--memory", "64MiB"]).done();
    assert_has(place, "field", &content);
    place.run(&["stop", "--discard"]).done();
    until("the memory is given back", || keepers(&place.path("")).is_empty().then_some(()));
}

#[test]
fn a_run_in_memory_copies_its_files_out_or_keeps_them() {
    let place = Place::new();
    let content = bytes((3 << 20) + 5);
    place.file("input", &content);
    std::fs::create_dir(place.path("tmp")).expect("a test must have room");
    let command = |options: &[&str], script: &str| {
        let words = [&["run", "--no-preload"], &MEMORY[..], options, &["--", "sh", "-c", script]];
        let mut command: Command = unisono(&words.concat());
        command.current_dir(place.path("")).env("TMPDIR", place.path("tmp"));
        command.env("UNISONO", env!("CARGO_BIN_EXE_unisono"));
        command
    };
    let write = "$UNISONO put input runs/field >/dev/null";
    run(command(&["--stage-out", "out"], write)).done();
    assert!(std::fs::read(place.path("out/runs/field")).expect("it is there") == content);
    assert_eq!(processes_naming(&place.path("")), [0_u32; 0]);
    assert_eq!(support::entries(&place.path("tmp")), [""; 0]);
    let full = format!("{write} && mkdir -p full/runs && ln -s /dev/full full/runs/field");
    let options = ["--stage-out", "full", "--overwrite", "--json"];
    let ended = run(command(&options, &full)).code(7);
    let instance = PathBuf::from(ended.json()["instance"].as_str().expect("a path"));
    let again = format!("--memory 64MiB --servers 2 --instance {}", instance.display());
    assert!(ended.error.contains(&again), "{}", ended.error);
    let command = |words: &[&str]| {
        let mut command = unisono(words);
        command.current_dir(place.path("")).arg("--instance").arg(&instance);
        run(command)
    };
    command(&[&["start"], &MEMORY[..]].concat()).done();
    command(&["get", "runs/field", "saved"]).done();
    assert!(std::fs::read(place.path("saved")).expect("it is there") == content);
    command(&["stop", "--discard"]).done();
    until("the memory is given back", || keepers(&place.path("")).is_empty().then_some(()));
}
