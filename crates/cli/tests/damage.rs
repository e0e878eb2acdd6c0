//! Proves: bytes that a server's disk does not give back as they were written are told to the user,
//! with file, place and disk, and never handed out.

use crate::support;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use support::{DATA_CHECK, Place};

/// The object of file `number` on the disk of `server`.
fn object_file(place: &Place, server: u32, number: u64) -> PathBuf {
    place.instance().join(format!("data/server-{server}/objects/{number:016x}"))
}

/// Inverts the bits of a byte of a file.
fn flip(path: &PathBuf, offset: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("the byte is there");
    file.write_all_at(&[!byte[0]], offset).expect("a test may write");
}

#[test]
fn a_damaged_file_is_refused_with_its_place() {
    // Proves: when a byte of a file is flipped in a server's directory, `get` fails with code 4,
    // names the file, the bytes of it and the disk, and says what to do; it leaves no local file,
    // and one that was there before is untouched. Other files are as they were. A file that is put
    // again is whole.
    let place = Place::with_servers(2);
    let content = support::bytes((5 << 20) + 77);
    let local = place.file("local", &content);
    let put = |name: &str| {
        place.run(&["put".as_ref(), local.as_os_str(), name.as_ref(), "--json".as_ref()]).done()
    };
    let made = put("results").json();
    let number = made["file"].as_u64().expect("a file has a number");
    let server = made["pool"][1].as_u64().expect("it is on two servers") as u32;
    put("other");
    place.run(&["stop"]).done();
    // Block 3 of 1 MiB is the second one of the second server; its fifth piece of 64 KiB.
    let object = object_file(&place, server, number);
    flip(&object, (1 << 20) + 4 * 65_536 + 9);
    place.start(&["--servers", "2"]);
    let start = 3 * (1 << 20) + 4 * 65_536;
    let told: [&str; 2] = [
        &format!(
            "bytes {start} to {} of \"results\" are damaged on server {server}",
            start + 65_536
        ),
        &place.instance().join(format!("data/server-{server}")).display().to_string(),
    ];
    let refused = place.run(&["get", "results", "copy"]).failed(DATA_CHECK, &told);
    assert!(refused.error.contains("put the file again"), "{}", refused.error);
    assert!(!place.path("copy").exists(), "no local file may be left");
    let mine = place.file("mine", b"mine");
    place.run(&["get", "results", "mine"]).failed(DATA_CHECK, &told);
    assert_eq!(std::fs::read(mine).expect("it was there"), b"mine");
    assert_eq!(place.run(&["get", "other", "-"]).done().output, content);
    place.assert_nothing_held();
    place.run(&["rm", "results"]).done();
    assert!(!object.exists() && !object.with_extension("sums").exists(), "both files are removed");
    put("results");
    assert_eq!(place.run(&["get", "results", "-"]).done().output, content);
}

#[test]
fn the_damage_is_told_of_a_tree() {
    // Proves: when one of many files that are copied at the same time is damaged, the damage is
    // told, each time, and never that the others were stopped for it.
    let place = Place::with_servers(2);
    let tree = place.path("tree");
    std::fs::create_dir(&tree).expect("a test must have room");
    for number in 0..40 {
        place.file(&format!("tree/{number:02}"), &support::bytes(300 << 10));
    }
    place.run(&["cp", "-r", "tree", "unisono://tree"]).done();
    let record = place.run(&["stat", "--json", "tree/22"]).done().json();
    let number = record["file"].as_u64().expect("a file has a number");
    let server = record["pool"][0].as_u64().expect("it is on a server") as u32;
    place.run(&["stop"]).done();
    flip(&object_file(&place, server, number), 2 * 65_536 + 9);
    place.start(&["--servers", "2"]);
    for _ in 0..10 {
        let told = ["bytes 131072 to 196608 of \"tree/22\" are damaged"];
        place.run(&["cp", "-r", "unisono://tree", "out"]).refused(DATA_CHECK, &told);
    }
}

#[test]
fn an_object_of_another_disk_is_damage() {
    // Proves: when the object of a file on one server stands in for the one on another, with its
    // checksums, none of its bytes is given out there; what the first server has is as it was.
    let place = Place::with_servers(2);
    let content = support::bytes(2 << 20);
    let local = place.file("local", &content);
    let put = ["put".as_ref(), local.as_os_str(), "results".as_ref(), "--json".as_ref()];
    let made = place.run(&put).done().json();
    let number = made["file"].as_u64().expect("a file has a number");
    let server = |at: usize| made["pool"][at].as_u64().expect("it is on two servers") as u32;
    place.run(&["stop"]).done();
    let [from, to] = [0, 1].map(|at| object_file(&place, server(at), number));
    for extension in ["", "sums"] {
        let [from, to] = [&from, &to].map(|object| object.with_extension(extension));
        std::fs::copy(from, to).expect("a test may copy");
    }
    place.start(&["--servers", "2"]);
    let told = format!("are damaged on server {}", server(1));
    place.run(&["get", "results", "copy"]).failed(DATA_CHECK, &["of \"results\"", &told]);
    assert!(!place.path("copy").exists(), "no local file may be left");
}
