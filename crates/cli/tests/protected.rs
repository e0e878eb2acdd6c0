//! Proves: `status` and `stat` say how much of protected files is protected now: less while bytes
//! are in a cache only, a server is away, its copies are renewed, or a directory is filled again;
//! and everything after a sync, and in the end.

use crate::mirrored::{MIB, data, serve_again, until_all_run};
use crate::support;
use client::{Connection, File, Instance};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use support::{Place, bytes, gone, signal, until};

/// Bytes of the file: a block of each server.
const FILE_BYTES: u64 = 3 * MIB as u64;

/// An instance of three servers with a stored file, which is open.
fn with_file(protection: &str) -> (Place, Connection, File) {
    let place = Place::new();
    place.start(&["--servers", "3", "--protect", protection]);
    let library = Connection::open(&Instance::at(place.instance())).expect("it runs");
    let file = library.create_by_default("file", client::NewFileOptions::default());
    let file = file.expect("it is new");
    file.write_at(&bytes(FILE_BYTES as usize), 0).expect("it has room");
    file.flush(true).expect("it is stored");
    (place, library, file)
}

/// Sum of all files, also when a server does not answer.
fn protection(place: &Place) -> Value {
    place.run(&["status", "--json"]).json()["protection"].take()
}

fn counts(bytes: u64, protected_bytes: u64) -> Value {
    json!({ "bytes": bytes, "protected_bytes": protected_bytes })
}

fn until_whole(place: &Place) {
    let whole = counts(FILE_BYTES, FILE_BYTES);
    until("everything is protected", || (protection(place) == whole).then_some(()));
}

#[test]
fn what_was_written_is_protected_after_a_sync() {
    for protected_by in ["mirror", "parity"] {
        let (place, _library, file) = with_file(protected_by);
        let stat = || place.run(&["stat", "file", "--json"]).done().json()["protection"].take();
        let with = |mut counts: Value| {
            counts["by"] = protected_by.into();
            counts
        };
        assert_eq!(stat(), with(counts(FILE_BYTES, FILE_BYTES)));
        let shown = place.run(&["stat", "file"]).done();
        let words = format!("protection {protected_by}: protected 100 %");
        assert!(shown.text().contains(&words), "{}", shown.text());
        let quiet = place.run(&["status"]).done();
        assert!(!quiet.text().contains("protected"), "{}", quiet.text());
        // A part of a block stays in the cache of its server.
        file.write_at(&bytes(300 << 10), 1234).expect("it has room");
        let left = FILE_BYTES - (300 << 10);
        assert_eq!(stat(), with(counts(FILE_BYTES, left)));
        assert_eq!(protection(&place), counts(FILE_BYTES, left));
        let shown = place.run(&["stat", "file"]).done();
        let words = format!("protection {protected_by}: protected 90 %");
        assert!(shown.text().contains(&words), "{}", shown.text());
        let shown = place.run(&["status"]).done();
        let words = "protected 90 % of 3 MiB in files with --protect";
        assert!(shown.text().contains(words), "{}", shown.text());
        file.flush(true).expect("it is stored");
        assert_eq!(stat(), with(counts(FILE_BYTES, FILE_BYTES)));
        // The catalogue learns of the size at the close.
        assert_eq!(protection(&place), counts(0, 0));
        file.close().expect("it is stored");
        assert_eq!(protection(&place), counts(FILE_BYTES, FILE_BYTES));
    }
}

#[test]
fn a_file_without_protection_says_nothing() {
    let (place, _library, file) = with_file("none");
    file.write_at(&[1; 1000], 5).expect("it has room");
    assert_eq!(protection(&place), counts(0, 0));
    let shown = place.run(&["stat", "file"]).done();
    assert!(!shown.text().contains("protect"), "{}", shown.text());
    let stat = place.run(&["stat", "file", "--json"]).done().json();
    assert_eq!(stat["protection"], Value::Null);
    let shown = place.run(&["status"]).done();
    assert!(!shown.text().contains("protected"), "{}", shown.text());
}

#[test]
fn a_server_that_was_away_counts_again_when_its_copies_are_equal() {
    let (place, library, file) = with_file("mirror");
    file.close().expect("it is stored");
    drop(library);
    let part = FILE_BYTES / 3;
    until_whole(&place);
    let victim = place.server_pids()[2];
    signal(victim, Signal::KILL);
    gone(victim);
    // Of its part nobody knows whether the copy has all.
    assert_eq!(protection(&place), counts(FILE_BYTES, FILE_BYTES - part));
    let shown = place.run(&["stat", "file"]).done();
    assert!(shown.text().contains("protection mirror: protected 66 %"), "{}", shown.text());
    let _again = serve_again(&place, 2, &[]);
    until_all_run(&place);
    until_whole(&place);
}

#[test]
fn a_directory_that_is_filled_again_counts_when_it_is_full() {
    for protected_by in ["mirror", "parity"] {
        let (place, library, file) = with_file(protected_by);
        file.close().expect("it is stored");
        drop(library);
        place.run(&["stop"]).done();
        fs::remove_dir_all(data(&place, 1)).expect("it is there");
        place.start(&["--degraded", "--servers", "3"]);
        assert_eq!(protection(&place), Value::Null, "nobody knows what is lost");
        place.run(&["stop"]).done();
        place.start(&["--servers", "3", "--refill", "--refill-rate", "512KiB"]);
        let known = until("it is known what is lacking", || {
            Some(protection(&place)).filter(|known| *known != Value::Null)
        });
        let protected = known["protected_bytes"].as_u64().expect("a number");
        assert_eq!(known["bytes"], json!(FILE_BYTES));
        assert!(protected < FILE_BYTES, "{known}");
        until_whole(&place);
    }
}
