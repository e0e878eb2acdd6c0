//! Proves: servers told to move data past the page cache do, or say why they cannot.

mod support;

use std::process::Command;
use support::{NO_SERVER, Place};

#[test]
fn files_move_past_the_page_cache() {
    // Proves: with `start --direct` files of odd lengths come back, also through a bench of every
    // strategy, and after a restart without it.
    let place = Place::new();
    place.start(&["--servers", "2", "--direct"]);
    let contents = [0, 1, 4095, (3 << 20) + 77].map(support::bytes);
    for (number, content) in contents.iter().enumerate() {
        let local = place.file(&format!("local-{number}"), content);
        place.run(&["put".as_ref(), local.as_os_str()]).done();
    }
    let words = ["bench", "--size", "3000000", "--repeat", "1", "--clients", "2", "--json"];
    let bench = place.run(&[&words[..], &["--pattern", "wbc,rbc", "--record", "1000"]].concat());
    let results = bench.done().json()["results"].as_array().expect("a list").clone();
    assert!(!results.is_empty() && results.iter().all(|result| result["verified"] == true));
    for direct in [true, false] {
        for (number, content) in contents.iter().enumerate() {
            let name = format!("local-{number}");
            assert!(place.run(&["get", &name, "-"]).done().output == *content, "direct {direct}");
        }
        place.run(&["stop"]).done();
        place.start(&["--servers", "2"]);
    }
}

#[test]
fn a_file_system_that_cannot_is_named() {
    // Proves: where the file system has no way past the page cache, `start --direct` fails with the
    // directory and what to do, and `start` succeeds.
    let place = Place::new();
    let disk = place.path("disk");
    std::fs::create_dir(&disk).expect("a test must have room");
    let mount = Command::new("mount").args(["-t", "ramfs", "ramfs"]).arg(&disk).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        println!("skipped: this process may not mount a small file system");
        return;
    }
    let shown = disk.display().to_string();
    let start = ["start", "--servers", "1", "--data", &shown];
    let refused = place.run(&[&start[..], &["--direct"]].concat());
    let unmounted = || Command::new("umount").arg("-l").arg(&disk).output();
    let started = place.run(&start);
    let stopped = place.run(&["stop"]);
    let _ = unmounted();
    refused.failed(NO_SERVER, &[&shown, "past the page cache", "start without --direct"]);
    started.done();
    stopped.done();
}
