//! Proves: with `--protect parity`, what one server has lost or holds damaged is made from the rest
//! of its rows and repaired, and a protection that is too wide is refused before anything begins.

use crate::mirrored::{check, check_without_each_of, damage, data, sum, with_files_of};
use crate::support;
use serde_json::json;
use std::fs;
use support::{DATA_CHECK, Place, USAGE, bytes};

#[test]
fn what_a_lost_server_had_is_made_from_the_rest_of_the_rows() {
    let (place, files) = with_files_of("parity:2");
    let record = place.run(&["layout", "get", "large", "--json"]).done().json();
    assert_eq!(record["protection"], "parity:2");
    let shown = place.run(&["layout", "get", "large"]).done();
    assert!(shown.text().contains("each row of 2 blocks has a parity block"), "{}", shown.text());
    place.run(&["stop"]).done();
    check_without_each_of(&place, &files, [1, 2]);
    // Two pieces of a row are lost.
    for server in [1, 2] {
        fs::remove_dir_all(data(&place, server)).expect("it is there");
    }
    let started = place.start(&["--degraded", "--servers", "3"]);
    let lost = started["degraded"]["files_with_lost_bytes"].as_array().expect("a list");
    assert!(lost.iter().any(|file| file["name"] == "large"), "{started}");
    place.run(&["get", "large", "-"]).failed(DATA_CHECK, &["of \"large\""]);
}

#[test]
fn damage_of_data_and_of_parity_is_repaired() {
    let (place, files) = with_files_of("parity");
    place.run(&["stop"]).done();
    let damaged = damage(&place, 1, "01234567");
    assert!(damaged >= 1, "it has a part of the large file");
    place.start(&["--servers", "3"]);
    check(&place, &files, "with damaged bytes");
    assert_eq!(sum(&place, "repaired"), damaged as u64);
    place.run(&["stop"]).done();
    assert!(damage(&place, 2, "89") >= 1, "it has parity of the large file");
    place.start(&["--servers", "3"]);
    let found = place.run(&["scrub", "--json"]).done().json();
    assert!(found["repaired_copies"].as_u64() >= Some(1), "{found}");
    let sound = place.run(&["scrub", "--json"]).done().json();
    let faults = ["repaired", "repaired_copies", "bytes_behind"].map(|key| sound[key].clone());
    assert_eq!((faults, &sound["damaged"]), ([0, 0, 0].map(|it| json!(it)), &json!([])), "{sound}");
    check(&place, &files, "when all is repaired");
}

#[test]
fn a_row_is_no_wider_than_the_instance() {
    let place = Place::new();
    let refused = ["start", "--servers", "3", "--protect", "parity:3"];
    let told = ["rows of 3 blocks and a parity block need 4 servers"];
    place.run(&refused).refused(USAGE, &told);
    place.start(&["--servers", "3"]);
    place.run(&["layout", "set", "/", "--protect", "parity:3"]).refused(USAGE, &told);
    place.file("local", &bytes(3_000_000));
    place.run(&["put", "local", "file"]).done();
    // A file that is there, also one that is mirrored, can have parity.
    for protection in ["mirror", "parity", "none"] {
        place.run(&["layout", "set", "file", "--protect", protection]).done();
        let record = place.run(&["layout", "get", "file", "--json"]).done().json();
        assert_eq!(record["protection"], protection);
    }
    let got = place.run(&["get", "file", "-"]).done().output;
    assert!(got == bytes(3_000_000));
}
