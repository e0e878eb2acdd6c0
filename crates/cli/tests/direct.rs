//! Proves: servers told to move data past the page cache do, or say why they cannot.

use crate::support;
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
fn some_disks_do_and_others_do_not() {
    // Proves: with `start --direct=DIR` the disks in that data directory move their data past the
    // page cache and the others do not, as the pages say that the system holds of their files.
    let place = Place::new();
    let [past, held] = ["past", "held"].map(|name| place.path(name).display().to_string());
    let direct = format!("--direct={past}");
    let start = ["--servers", "1", "--data", &past, "--data", &held, &direct];
    place.start(&start);
    let local = place.file("f", &support::bytes(8 << 20));
    place.run(&["cp".as_ref(), local.as_os_str(), "unisono://f".as_ref()]).done();
    let cached = |directory: &str| {
        let found = Command::new("find").args([directory, "-size", "+2000k"]).output();
        let found = String::from_utf8(found.expect("find is there").stdout).expect("text");
        let [file] = &found.lines().collect::<Vec<_>>()[..] else { panic!("one file: {found}") };
        let pages = Command::new("fincore").args(["-n", "-o", "PAGES", file]).output();
        let pages = String::from_utf8(pages.expect("fincore is there").stdout).expect("text");
        pages.trim().parse::<u64>().expect("a number")
    };
    assert!(cached(&held) >= 1000, "half of the file is in the page cache");
    assert!(cached(&past) < 100, "of the other half there are {} pages", cached(&past));
    assert!(place.run(&["get", "f", "-"]).done().output == support::bytes(8 << 20));
    place.run(&["stop"]).done();
    place
        .run(&["start", "--servers", "1", "--data", &held, &direct])
        .refused(support::USAGE, &["past", "--data"]);
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
    let refused = refused.failed(NO_SERVER, &[&shown, "does not support O_DIRECT"]);
    assert!(refused.error.contains("help:  start without --direct"), "{}", refused.error);
    started.done();
    stopped.done();
}
