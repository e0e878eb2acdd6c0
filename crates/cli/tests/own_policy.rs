//! Proves: a program that is the command with a replacement policy of its own has it at its
//! servers and in its simulations; the usual command refuses new files with that policy, with the
//! reason, and reads those that are there.

use crate::support;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use support::{Ended, FAILED, Place, USAGE, bytes, program, run, unisono};

/// The program in examples/own_policy.rs, with words.
fn own(words: &[&OsStr]) -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_unisono")).with_file_name("examples/own_policy");
    assert!(
        path.is_file(),
        "{} is missing: build it with `cargo build --workspace --example own_policy`, in this \
         profile",
        path.display()
    );
    program(path, words)
}

/// As [`own`], about the instance.
fn run_own(place: &Place, words: &[&OsStr]) -> Ended {
    let mut command = own(words);
    command.arg("--instance").arg(place.instance());
    run(command)
}

#[test]
fn a_policy_of_ones_own_is_at_the_servers() {
    let place = Place::new();
    let word = OsStr::new;
    let start = ["start", "--servers", "2", "--cache", "1MiB"].map(word);
    run_own(&place, &start).done();
    let set = ["layout", "set", "/", "--replacement", "custom:fifo", "--block", "64KiB"].map(word);
    run_own(&place, &set).done();
    // Four times what the caches hold: blocks must leave.
    let content = bytes(8 << 20);
    let local = place.file("local", &content);
    run_own(&place, &[word("put"), local.as_os_str(), word("f")]).done();
    let copy = place.path("copy");
    run_own(&place, &[word("get"), word("f"), copy.as_os_str()]).done();
    assert!(std::fs::read(&copy).unwrap() == content);
    let shown = run_own(&place, &["layout", "get", "/", "--json"].map(word)).json();
    assert_eq!(shown["buffering"]["replacement"], "custom:fifo", "{shown}");
    run_own(&place, &[word("stop")]).done();
    // The usual command has no such policy, but the file.
    place.start(&["--servers", "2"]);
    place.run(&["get".as_ref(), "f".as_ref(), copy.as_os_str()]).done();
    assert!(std::fs::read(&copy).unwrap() == content);
    let refused = place.run(&["layout", "set", "/", "--replacement", "custom:fifo"]);
    refused.failed(USAGE, &["custom:fifo", "its program adds none"]);
    let refused = place.run(&["put".as_ref(), local.as_os_str(), "g".as_ref()]);
    refused.failed(FAILED, &["custom:fifo"]);
}

#[test]
fn a_policy_of_ones_own_is_simulated() {
    let words = ["sim", "--pattern", "ra", "--strategy", "caching", "--size", "1MiB"];
    let rest = ["--trials", "1", "--json", "--replacement", "custom:fifo"];
    let all = [words.as_slice(), &rest].concat();
    let simulated = run(own(&all.iter().map(OsStr::new).collect::<Vec<_>>())).json();
    assert!(simulated["results"][0]["seconds"].as_f64().unwrap() > 0.0, "{simulated}");
    let refused = run(unisono(&all));
    refused.failed(USAGE, &["custom:fifo", "this program has no"]);
}
