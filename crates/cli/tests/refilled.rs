//! Proves: with `start --refill`, empty data directories take the places of lost ones and are
//! filled from copies, while files are read and written; what has no copy is named, and never read
//! as zeros.

use crate::mirrored::{
    Files, MIB, check, data, serve_again, sum, until_all_run, with_files, with_files_of,
};
use crate::rebuilt::until_copied;
use crate::support;
use client::{Connection, Instance};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use support::{DATA_CHECK, Place, USAGE, bytes, gone, signal, until};

/// Number of files that a server has still to fill, when it knows.
pub(crate) fn to_fill(place: &Place, server: usize) -> Option<u64> {
    let refill = &place.status()[server]["refill"];
    let is_listed = refill["unlisted_disks"] == json!(0);
    is_listed.then(|| refill["files"].as_u64().expect("a number"))
}

fn until_filled(place: &Place) {
    until("all is filled again", || {
        (0..3).all(|server| to_fill(place, server) == Some(0)).then_some(())
    });
    until("all copies are equal", || (sum(place, "files_behind") == 0).then_some(()));
    until_copied(place, &[1, 2]);
}

/// Overwrites a part of the large file.
fn overwrite(place: &Place, files: &mut Files, value: u8, offset: usize) {
    let library = Connection::open(&Instance::at(place.instance())).expect("it runs");
    let large = library.open_file("large").expect("it is there");
    large.write_at(&vec![value; 2 * MIB], offset as u64).expect("it has room");
    large.flush(true).expect("it is stored");
    files[0].1[offset..offset + 2 * MIB].fill(value);
}

#[test]
fn each_directory_is_filled_after_its_loss() {
    fill_each_directory("mirror");
}

#[test]
fn each_directory_is_filled_from_the_rest_of_the_rows() {
    fill_each_directory("parity");
}

fn fill_each_directory(protection: &str) {
    let (place, mut files) = with_files_of(protection);
    for server in [1, 2, 0] {
        place.run(&["stop"]).done();
        fs::remove_dir_all(data(&place, server)).expect("it is there");
        let plain = place.run(&["start", "--servers", "3"]).refused(USAGE, &["has no label"]);
        assert!(plain.error.contains("start --refill"), "{}", plain.error);
        place.start(&["--servers", "3", "--refill", "--refill-rate", "4MiB"]);
        let shown = place.run(&["status"]).done().text().to_owned();
        check(&place, &files, &format!("while server {server} is filled"));
        overwrite(&place, &mut files, 10 + server as u8, 1_000_003 * (1 + server as usize));
        check(&place, &files, &format!("when server {server} has been written"));
        until_filled(&place);
        let words = ["fills", "finds out"];
        assert!(words.iter().any(|words| shown.contains(words)), "{shown}");
        check(&place, &files, &format!("when server {server} is filled"));
    }
    let sound = place.run(&["scrub", "--json"]).done().json();
    let faults = ["repaired", "repaired_copies", "bytes_behind"].map(|key| sound[key].clone());
    assert_eq!((faults, &sound["damaged"]), ([0, 0, 0].map(Value::from), &json!([])), "{sound}");
    place.run(&["stop"]).done();
    // As any other directory.
    place.start(&["--servers", "3"]);
    check(&place, &files, "after the next start");
    assert_eq!(sum(&place, "files_behind"), 0);
}

#[test]
fn a_refill_goes_on_after_a_stop_and_a_crash() {
    let (place, mut files) = with_files();
    place.run(&["stop"]).done();
    fs::remove_dir_all(data(&place, 1)).expect("it is there");
    place.start(&["--servers", "3", "--refill", "--refill-rate", "1MiB"]);
    until("it is known what is lacking", || to_fill(&place, 1));
    place.run(&["stop"]).done();
    place.start(&["--servers", "3", "--degraded"]);
    check(&place, &files, "when nothing can be changed");
    place.run(&["stop"]).done();
    place.start(&["--servers", "3", "--refill", "--refill-rate", "1MiB"]);
    overwrite(&place, &mut files, 77, 123);
    for pid in place.server_pids() {
        signal(pid, Signal::KILL);
        gone(pid);
    }
    // It is remembered what is lacking.
    place.start(&["--servers", "3"]);
    check(&place, &files, "after a crash");
    until_filled(&place);
    check(&place, &files, "in the end");
}

#[test]
fn a_server_is_replaced_while_the_others_serve() {
    let (place, mut files) = with_files();
    let victim = place.server_pids()[1];
    signal(victim, Signal::KILL);
    gone(victim);
    fs::remove_dir_all(data(&place, 1)).expect("it is there");
    let again = serve_again(&place, 1, &["--refill"]);
    until_all_run(&place);
    check(&place, &files, "while it is filled");
    overwrite(&place, &mut files, 9, 55);
    place.run(&["status", "--wait"]).done();
    assert!((0..3).all(|server| to_fill(&place, server) == Some(0)));
    assert_eq!(sum(&place, "files_behind"), 0);
    place.run(&["stop"]).done();
    again.end();
    // What it had filled is all that is left of its neighbour's part.
    fs::remove_dir_all(data(&place, 2)).expect("it is there");
    place.start(&["--degraded", "--servers", "3"]);
    check(&place, &files, "without another server");
}

#[test]
fn what_has_no_copy_is_named() {
    let (place, files) = with_files();
    place.run(&["layout", "set", "/", "--protect", "none"]).done();
    let content = bytes(5 * MIB);
    place.file("local", &content);
    for name in ["bare", "again", "gone"] {
        place.run(&["put", "local", name]).done();
    }
    place.run(&["stop"]).done();
    fs::remove_dir_all(data(&place, 1)).expect("it is there");
    let started = ["start", "--servers", "3", "--refill"];
    place.run(&started).done();
    until_filled(&place);
    check(&place, &files, "with copies");
    assert_eq!(place.status()[1]["refill"]["lost_files"], 3);
    let shown = place.run(&["status"]).done();
    assert!(shown.text().contains("3 files without a copy lost bytes"), "{}", shown.text());
    let lost = ["of \"bare\"", "no copy is sure"];
    place.run(&["get", "bare", "-"]).failed(DATA_CHECK, &lost);
    let found = place.run(&["scrub"]).failed(DATA_CHECK, &["damaged range"]);
    assert!(found.text().contains("bare: damaged: bytes"), "{}", found.text());
    // A file that is written anew, or removed, has lost nothing any more.
    let library = Connection::open(&Instance::at(place.instance())).expect("it runs");
    let again = library.open_file("again").expect("it is there");
    again.set_size(0).expect("it can be cut");
    again.write_at(&content, 0).expect("it has room");
    again.flush(true).expect("it is stored");
    drop(again);
    place.run(&["rm", "gone"]).done();
    assert!(place.run(&["get", "again", "-"]).done().output == content);
    assert_eq!(place.status()[1]["refill"]["lost_files"], 1);
}

#[test]
fn older_data_is_not_filled_over() {
    let (place, files) = with_files();
    place.run(&["stop"]).done();
    let (directory, older) = (data(&place, 1), place.path("older"));
    let copied = Command::new("cp").arg("-a").args([&directory, &older]).status();
    assert!(copied.expect("cp runs").success());
    place.start(&["--servers", "3"]);
    place.run(&["stop"]).done();
    fs::remove_dir_all(&directory).expect("it is there");
    fs::rename(&older, &directory).expect("a test may move it");
    let refused = ["start", "--servers", "3", "--refill"];
    place.run(&refused).failed(DATA_CHECK, &["cannot fill", "not what it held last"]);
    fs::rename(&directory, &older).expect("a test may move it");
    place.start(&["--servers", "3", "--refill"]);
    until_filled(&place);
    check(&place, &files, "in the end");
}
