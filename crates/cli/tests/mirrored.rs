//! Proves: with `--protect mirror`, what one server has lost or holds damaged is read from the copy
//! at another server, byte for byte; and copies that were behind are made equal again.

use crate::support;
use client::{Connection, ConnectionOptions, Instance};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;
use support::{DATA_CHECK, Place, Running, USAGE, bytes, gone, program, signal, until};

pub(crate) const MIB: usize = 1 << 20;

/// Names and contents of some files.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// An instance of three servers with mirrored files: large and small ones, one of which was changed
/// in place and one cut.
pub(crate) fn with_files() -> (Place, Files) {
    with_files_of("mirror")
}

/// As [`with_files`], with another protection.
pub(crate) fn with_files_of(protection: &str) -> (Place, Files) {
    let place = Place::new();
    place.start(&["--servers", "3", "--protect", protection]);
    let content = bytes(7 * MIB + 4321);
    let mut files = Files::new();
    for (name, length) in [("large", content.len()), ("middle", MIB + 1), ("small", 100)] {
        place.file("local", &content[..length]);
        place.run(&["put", "local", name]).done();
        files.push((name.to_owned(), content[..length].to_vec()));
    }
    let library = Connection::open(&Instance::at(place.instance())).expect("it runs");
    let large = library.open_file("large").expect("it is there");
    large.write_at(&[9; 3 * MIB], 1_234_567).expect("it has room");
    large.flush(true).expect("it is stored");
    files[0].1[1_234_567..][..3 * MIB].fill(9);
    let middle = library.open_file("middle").expect("it is there");
    middle.set_size(700_001).expect("it can be cut");
    files[1].1.truncate(700_001);
    (place, files)
}

pub(crate) fn check(place: &Place, files: &Files, when: &str) {
    for (name, content) in files {
        let got = place.run(&["get", name, "-"]).done().output;
        assert!(got == *content, "{name} {when}");
    }
}

pub(crate) fn data(place: &Place, server: u32) -> PathBuf {
    place.instance().join(format!("data/server-{server}"))
}

/// Starts a server again in an instance whose other servers run.
pub(crate) fn serve_again(place: &Place, server: u32, options: &[&str]) -> Running {
    let (id, path) = (server.to_string(), place.instance());
    let words = ["serve", "--id", &id, "--instance", path.to_str().expect("UTF-8")];
    Running::start(program(env!("CARGO_BIN_EXE_unisono"), &[&words, options].concat()))
}

/// Waits until all servers answer.
pub(crate) fn until_all_run(place: &Place) {
    until("all servers are there again", || {
        place.status().iter().all(|server| server["running"] == Value::Bool(true)).then_some(())
    });
}

/// Sum of a number that all servers report.
pub(crate) fn sum(place: &Place, key: &str) -> u64 {
    place.status().iter().map(|server| server[key].as_u64().expect("a number")).sum()
}

/// Checks, with an instance that is stopped, that nothing is lost without the directory of any one
/// of these servers.
pub(crate) fn check_without_each_of(place: &Place, files: &Files, servers: [u32; 2]) {
    for server in servers {
        let (directory, kept) = (data(place, server), place.path("kept"));
        fs::rename(&directory, &kept).expect("a test may move it");
        let started = place.start(&["--degraded", "--servers", "3"]);
        assert_eq!(started["degraded"]["files_with_lost_bytes"], json!([]), "{started}");
        check(place, files, &format!("without server {server}"));
        place.run(&["stop"]).done();
        let _ = fs::remove_dir_all(&directory);
        fs::rename(&kept, &directory).expect("a test may move it");
    }
}

#[test]
fn what_a_lost_server_had_is_read_from_the_copies() {
    let (place, files) = with_files();
    let record = place.run(&["layout", "get", "large", "--json"]).done().json();
    assert_eq!(record["protection"], "mirror");
    place.run(&["stop"]).done();
    check_without_each_of(&place, &files, [1, 2]);
    // Server 0 keeps the catalogue, which has copies too.
    fs::remove_dir_all(data(&place, 0)).expect("it is there");
    place.run(&["doctor", "--rebuild-catalogue"]).done();
    let started = place.start(&["--degraded", "--servers", "3"]);
    assert_eq!(started["degraded"]["files_with_lost_bytes"], json!([]), "{started}");
    check(&place, &files, "without server 0");
    place.run(&["stop"]).done();
    // Two servers hold a part and its copy.
    fs::remove_dir_all(data(&place, 1)).expect("it is there");
    let started = place.start(&["--degraded", "--servers", "3"]);
    let lost = started["degraded"]["files_with_lost_bytes"].as_array().expect("a list");
    assert!(lost.iter().any(|file| file["name"] == "large"), "{started}");
    place.run(&["get", "large", "-"]).failed(DATA_CHECK, &["of \"large\""]);
}

/// Flips a bit of each object of a server whose name begins with one of these digits: copies begin
/// with 8 or 9, and others are files' own parts.
pub(crate) fn damage(place: &Place, server: u32, first: &str) -> usize {
    let mut damaged = 0;
    for entry in fs::read_dir(data(place, server).join("objects")).expect("it is there").flatten() {
        let name = entry.file_name().into_string().expect("ASCII");
        let is_one = name.len() == 16 && name.starts_with(|it| first.contains(it));
        if is_one && entry.metadata().expect("it is there").len() > 50 {
            let object = fs::OpenOptions::new().read(true).write(true).open(entry.path());
            let object = object.expect("a test may change it");
            let mut byte = [0];
            object.read_exact_at(&mut byte, 33).expect("it is there");
            object.write_all_at(&[byte[0] ^ 4], 33).expect("a test may change it");
            damaged += 1;
        }
    }
    damaged
}

#[test]
fn damaged_bytes_are_repaired() {
    let (place, mut files) = with_files();
    place.run(&["stop"]).done();
    let damaged: usize = [0, 1, 2].map(|server| damage(&place, server, "01234567")).iter().sum();
    assert!(damaged >= 3, "each server has a part of the large file");
    place.start(&["--servers", "3"]);
    {
        // A few bytes of a piece whose rest is damaged.
        let library = Connection::open(&Instance::at(place.instance())).expect("it runs");
        let large = library.open_file("large").expect("it is there");
        large.write_at(&[3; 10], 100).expect("it has room");
        large.flush(true).expect("it is stored");
        files[0].1[100..110].fill(3);
    }
    check(&place, &files, "with damaged bytes");
    assert_eq!(sum(&place, "repaired"), damaged as u64);
    let shown = place.run(&["status"]).done();
    assert!(shown.text().contains("damaged range"), "{}", shown.text());
    place.run(&["stop"]).done();
    place.start(&["--servers", "3"]);
    check(&place, &files, "that were repaired");
    assert_eq!(sum(&place, "repaired"), 0, "nothing is damaged any more");
}

#[test]
fn a_scrub_repairs_files_and_copies() {
    let (place, files) = with_files();
    place.file("local", &bytes(200_000));
    place.run(&["layout", "set", "/", "--protect", "none"]).done();
    place.run(&["put", "local", "bare"]).done();
    place.run(&["layout", "set", "/", "--protect", "mirror"]).done();
    let sound = place.run(&["scrub", "--json"]).done().json();
    assert_eq!((&sound["repaired"], &sound["damaged"]), (&json!(0), &json!([])), "{sound}");
    place.run(&["stop"]).done();
    let damaged: usize = [0, 1, 2].map(|server| damage(&place, server, "01234567")).iter().sum();
    let copies: usize = [0, 1, 2].map(|server| damage(&place, server, "89")).iter().sum();
    assert!(damaged > 3 && copies >= 3, "{damaged} and {copies}");
    place.start(&["--servers", "3"]);
    // Where a part and its copy are damaged at the same place, nothing can be repaired: first a
    // mirrored file is written again.
    let found = place
        .run(&["scrub", "bare"])
        .failed(DATA_CHECK, &["files have 1 damaged range", "no copy"]);
    assert!(found.text().contains("bare: damaged: bytes 0 to 65536"), "{}", found.text());
    for (name, content) in &files {
        place.file("local", content);
        place.run(&["rm", name]).done();
        place.run(&["put", "local", name]).done();
    }
    place.run(&["rm", "bare"]).done();
    place.run(&["scrub"]).done();
    place.run(&["stop"]).done();
    let copies: usize = [0, 1, 2].map(|server| damage(&place, server, "89")).iter().sum();
    place.start(&["--servers", "3"]);
    let found = place.run(&["scrub", "--json"]).done().json();
    assert_eq!(found["repaired_copies"], copies, "{found}");
    let again = place.run(&["scrub"]).done();
    assert!(again.text().contains(" 0 ranges of copies"), "{}", again.text());
    check(&place, &files, "after a scrub");
}

#[test]
fn copies_of_a_server_that_was_killed_are_renewed() {
    let (place, mut files) = with_files();
    let options = ConnectionOptions { timeout: Duration::from_secs(60), ..Default::default() };
    let instance = Instance::at(place.instance());
    let library = Connection::open_with(&instance, options).expect("it runs");
    let large = library.open_file("large").expect("it is there");
    let victim = place.server_pids()[2];
    signal(victim, Signal::KILL);
    gone(victim);
    let again = serve_again(&place, 2, &[]);
    drop((large, library));
    until_all_run(&place);
    check(&place, &files, "after a server was killed");
    let library = Connection::open(&instance).expect("it runs");
    let large = library.open_file("large").expect("it is there");
    large.write_at(&[5; 2 * MIB], 77).expect("it has room");
    large.flush(true).expect("it is stored");
    files[0].1[77..][..2 * MIB].fill(5);
    until("all copies are equal", || (sum(&place, "files_behind") == 0).then_some(()));
    drop((large, library));
    let stopped = place.run(&["stop"]).done();
    assert!(stopped.text().contains("3 servers stopped"), "{}", stopped.text());
    again.end();
    fs::remove_dir_all(data(&place, 1)).expect("it is there");
    place.start(&["--degraded", "--servers", "3"]);
    check(&place, &files, "from the copies at the server that was killed");
}

#[test]
fn a_file_is_protected_later_or_no_more() {
    let place = Place::new();
    place.start(&["--servers", "3"]);
    let content = bytes(5 * MIB + 7);
    place.file("local", &content);
    place.run(&["put", "local", "file"]).done();
    place.file("local", &content[..1]);
    place.run(&["put", "local", "tiny"]).done();
    let files = vec![("file".to_owned(), content)];
    let library = Connection::open(&Instance::at(place.instance())).expect("it runs");
    let open = library.open_file("file").expect("it is there");
    place.run(&["layout", "set", "file", "--protect", "mirror"]).done();
    // A client that had it open before protects it too.
    let mut files = files;
    open.write_at(&[7; 100_000], 999_999).expect("it has room");
    open.flush(true).expect("it is stored");
    files[0].1[999_999..][..100_000].fill(7);
    until("all copies are equal", || (sum(&place, "files_behind") == 0).then_some(()));
    drop((open, library));
    let record = place.run(&["layout", "get", "file", "--json"]).done().json();
    assert_eq!(record["protection"], "mirror");
    let else_set = ["layout", "set", "file", "--protect", "mirror", "--block", "64KiB"];
    place.run(&else_set).refused(USAGE, &["only --protect"]);
    let alone = ["layout", "set", "tiny", "--protect", "mirror"];
    place.run(&alone).refused(USAGE, &["needs 2 servers"]);
    place.run(&["rm", "tiny"]).done();
    place.run(&["stop"]).done();
    let (directory, kept) = (data(&place, 1), place.path("kept"));
    fs::rename(&directory, &kept).expect("a test may move it");
    place.start(&["--degraded", "--servers", "3"]);
    check(&place, &files, "without a server");
    place.run(&["stop"]).done();
    fs::rename(&kept, &directory).expect("a test may move it");
    place.start(&["--servers", "3"]);
    place.run(&["layout", "set", "file", "--protect", "none"]).done();
    check(&place, &files, "without copies");
    place.run(&["stop"]).done();
    for server in 0..3 {
        let objects = fs::read_dir(data(&place, server).join("objects")).expect("it is there");
        let names = objects.flatten().map(|object| object.file_name().into_string().unwrap());
        let copies: Vec<String> = names.filter(|name| name.starts_with(['8', '9'])).collect();
        assert_eq!(copies, Vec::<String>::new(), "server {server}");
    }
}

#[test]
fn one_server_cannot_mirror() {
    let place = Place::new();
    let refused = ["start", "--servers", "1", "--protect", "mirror"];
    place.run(&refused).refused(USAGE, &["needs 2 servers"]);
    place.run(&["start", "--protect", "copies"]).refused(USAGE, &["none, mirror, parity"]);
    place.start(&["--servers", "1"]);
    let refused = ["layout", "set", "/", "--protect", "mirror"];
    place.run(&refused).refused(USAGE, &["needs 2 servers"]);
    place.file("local", &bytes(10));
    place.run(&["put", "local", "name"]).done();
}
