//! Proves: a catalogue that is lost is made again of its copies at other servers, with all names as
//! they were, and never in place of one that is there.

use crate::support;
use client::{Connection, ConnectionOptions, Instance};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;
use support::{DATA_CHECK, Place, Running, USAGE, bytes, gone, program, signal, until};

/// Names of all entries of an instance.
pub(crate) fn names(place: &Place) -> Value {
    let listed = place.run(&["find", "--json"]).done().json();
    let entries = listed["entries"].as_array().expect("a list").iter();
    entries.map(|entry| entry["name"].clone()).collect()
}

/// Servers that have the last change of the catalogue.
fn copies(place: &Place) -> Value {
    place.status()[0]["catalogue_copies"].clone()
}

/// Waits until these servers have copies of the catalogue as it is.
#[track_caller]
pub(crate) fn until_copied(place: &Place, servers: &[u32]) {
    let wanted = serde_json::json!(servers);
    until("the catalogue is copied", || (copies(place) == wanted).then_some(()));
}

/// Makes files and directories, and gives some other names.
fn make_names(place: &Place) {
    place.file("local", &bytes((5 << 20) + 3));
    let run = |words: &[&str]| _ = place.run(words).done();
    run(&["mkdir", "--parents", "runs/one"]);
    run(&["put", "local", "runs/one/field.tmp"]);
    run(&["mv", "runs/one/field.tmp", "runs/one/field"]);
    run(&["put", "local", "old"]);
    run(&["rm", "old"]);
    run(&["mv", "runs", "results"]);
    run(&["put", "local", "second"]);
}

#[test]
fn a_lost_catalogue_is_made_again() {
    let place = Place::with_servers(3);
    until_copied(&place, &[1, 2]);
    make_names(&place);
    let before = names(&place);
    place.run(&["doctor", "--rebuild-catalogue"]).refused(USAGE, &["that runs", "server 0"]);
    place.run(&["stop"]).done();
    place.run(&["doctor", "--rebuild-catalogue"]).refused(USAGE, &["there is a catalogue"]);
    let catalogue = place.instance().join("data/server-0/catalogue");
    std::fs::remove_dir_all(&catalogue).expect("it is there");
    let refused =
        place.run(&["start", "--servers", "3"]).refused(DATA_CHECK, &["catalogue is lost"]);
    assert!(refused.error.contains("doctor --rebuild-catalogue"), "{}", refused.error);
    let made = place.run(&["doctor", "--rebuild-catalogue"]).done();
    assert!(made.text().contains("of the copy at server 1"), "{}", made.text());
    place.start(&["--servers", "3"]);
    assert_eq!(names(&place), before);
    let content = bytes((5 << 20) + 3);
    for name in ["results/one/field", "second"] {
        assert!(place.run(&["get", name, "-"]).done().output == content, "{name}");
    }
    place.run(&["put", "local", "third"]).done();
    until_copied(&place, &[1, 2]);
    place.run(&["stop"]).done();
}

#[test]
fn names_survive_the_loss_of_a_whole_directory() {
    let place = Place::with_servers(3);
    until_copied(&place, &[1, 2]);
    make_names(&place);
    let before = names(&place);
    place.run(&["stop"]).done();
    std::fs::remove_dir_all(place.instance().join("data/server-0")).expect("it is there");
    // Without the copy that answers wait for, nobody takes another one unasked.
    let (copy, kept) = (place.instance().join("data/server-1/catalogue-copy"), place.path("kept"));
    std::fs::rename(&copy, &kept).expect("a test may move it");
    let refill = ["start", "--servers", "3", "--refill"];
    let refused = place.run(&refill).refused(DATA_CHECK, &["catalogue is lost"]);
    assert!(refused.error.contains("doctor --rebuild-catalogue"), "{}", refused.error);
    std::fs::remove_dir_all(&copy).ok();
    std::fs::rename(&kept, &copy).expect("a test may move it");
    place.run(&["doctor", "--rebuild-catalogue"]).done();
    let started = place.run(&["start", "--servers", "3", "--degraded"]).done();
    assert!(started.text().contains("lost"), "{}", started.text());
    assert_eq!(names(&place), before);
    place.run(&["stop"]).done();
}

#[test]
fn a_server_that_was_away_gets_all_names() {
    let place = Place::with_servers(3);
    until_copied(&place, &[1, 2]);
    let [_, first, _] = place.server_pids()[..] else { panic!("there are three") };
    let instance = place.instance();
    make_names(&place);
    // A client of before: others would need all servers.
    let options = ConnectionOptions { timeout: Duration::from_secs(60), ..Default::default() };
    let client = Connection::open_with(&Instance::at(&instance), options).expect("it runs");
    signal(first, Signal::KILL);
    gone(first);
    for name in ["while", "it", "was", "away"] {
        client.make_directory(name, false).expect("the catalogue is there");
    }
    drop(client);
    until("status tells of the copy that is missing", || {
        let status = place.run(&["status"]);
        let words = "1 of 2 copies of the catalogue has its last change: that at server 2";
        status.text().contains(words).then_some(())
    });
    let words = ["serve", "--id", "1", "--instance", instance.to_str().expect("UTF-8")];
    let again = Running::start(program(env!("CARGO_BIN_EXE_unisono"), &words));
    until_copied(&place, &[1, 2]);
    let before = names(&place);
    for pid in place.server_pids().into_iter().chain([again.pid()]) {
        signal(pid, Signal::KILL);
    }
    again.end();
    place.server_pids().into_iter().for_each(gone);
    for lost in ["data/server-0/catalogue", "data/server-2/catalogue-copy"] {
        std::fs::remove_dir_all(instance.join(lost)).expect("it is there");
    }
    place.run(&["doctor", "--rebuild-catalogue"]).done();
    place.start(&["--servers", "3"]);
    assert_eq!(names(&place), before);
}

#[test]
fn without_a_copy_nothing_is_made() {
    let place = Place::with_servers(1);
    place.file("local", &bytes(100));
    place.run(&["put", "local", "name"]).done();
    place.run(&["stop"]).done();
    let catalogue = place.instance().join("data/server-0/catalogue");
    std::fs::remove_dir_all(&catalogue).expect("it is there");
    place
        .run(&["doctor", "--rebuild-catalogue"])
        .refused(DATA_CHECK, &["no copy of the catalogue"]);
    assert!(!catalogue.exists());
    let other = Place::new();
    std::fs::create_dir_all(other.instance()).expect("a test must have room");
    other.run(&["doctor", "--rebuild-catalogue"]).refused(USAGE, &["are not known"]);
}
