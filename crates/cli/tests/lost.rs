//! Proves: what a data directory has lost, or has from an earlier time, is told with file and place
//! and never read as zeros or as old bytes; what lies on the others stays readable.

use crate::support;
use client::Connection;
use interface::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{DATA_CHECK, FAILED, Place, USAGE};

const MIB: usize = 1 << 20;

/// An instance that was started twice, with a large file on both servers and a small one on each.
struct Instance {
    place: Place,
    content: Vec<u8>,
    /// Small file of each server.
    small: [String; 2],
    /// Server of the first block of the large file.
    first: usize,
}

impl Instance {
    fn new() -> Self {
        let place = Place::with_servers(2);
        let content = support::bytes(4 * MIB + 77);
        place.file("large", &content);
        place.file("little", &content[..700_000]);
        server_of(&place, "large", "large");
        let mut small = [String::new(), String::new()];
        let mut names = (0..).map(|number| format!("little-{number}"));
        while small.iter().any(String::is_empty) {
            let name = names.next().expect("there are many");
            let server = server_of(&place, "little", &name);
            small[server] = name;
        }
        place.run(&["stop"]).done();
        let mut instance = Self { place, content, small, first: 0 };
        for server in [0, 1] {
            copy(&instance.data(server), &instance.older(server));
        }
        instance.place.start(&["--servers", "2"]);
        instance.rewrite("large", &instance.content);
        let record = instance.place.run(&["stat", "large", "--json"]).done().json();
        instance.first = record["pool"][0].as_u64().expect("it is on a server") as usize;
        instance.place.run(&["stop"]).done();
        instance
    }

    fn data(&self, server: usize) -> PathBuf {
        self.place.instance().join(format!("data/server-{server}"))
    }

    /// A copy of the directory of a server from before the last start.
    fn older(&self, server: usize) -> PathBuf {
        self.place.path(&format!("older-{server}"))
    }

    fn rewrite(&self, name: &str, content: &[u8]) {
        let local = self.place.file("changed", content);
        let words = ["cp".as_ref(), local.as_os_str(), "unisono://changed".as_ref()];
        self.place.run(&words).done();
        self.place.run(&["mv", "changed", name]).done();
    }

    fn get(&self, name: &str) -> support::Ended {
        self.place.run(&["get", name, "-"])
    }

    /// Proves: reads of each block of the large file on this server, and of its last byte alone,
    /// fail with its bytes and `told`.
    fn tells_every_block_of(&self, server: usize, told: &str) {
        let library = Connection::open(&client::Instance::at(self.place.instance())).unwrap();
        let large = library.open_file("large").unwrap();
        let size = large.size().unwrap() as usize;
        let is_lost = |start: &usize| (start / MIB + self.first) % 2 == server;
        for start in (0..size).step_by(MIB).filter(is_lost) {
            let end = size.min(start + MIB);
            let error = large.read_at(&mut vec![0; end - start], start as u64).unwrap_err();
            // Of the last block, which an older copy had in part, the first damage is told.
            let whole = self.content.len() / MIB * MIB;
            let told_end = if end <= whole { end.to_string() } else { String::new() };
            let range = format!("bytes {start} to {told_end}");
            assert!(error.cause.contains(&range) && error.cause.contains(told), "{error}");
            let last = large.read_at(&mut [0], end as u64 - 1).unwrap_err();
            for error in [error, last] {
                assert_eq!(error.code as i32, DATA_CHECK, "{error}");
                assert!(error.cause.contains("of \"large\""), "{error}");
            }
        }
        // Which of them a copy meets first depends on the disks.
        self.get("large").failed(DATA_CHECK, &["of \"large\"", told]);
    }

    /// Number of a server without the file of this server.
    fn other(server: usize) -> usize {
        1 - server
    }
}

/// Puts a file; returns the server of its first block.
fn server_of(place: &Place, local: &str, name: &str) -> usize {
    let made = place.run(&["put", local, name, "--json"]).done().json();
    made["pool"][0].as_u64().expect("it is on a server") as usize
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp runs").success());
}

fn remove(directory: &Path) {
    std::fs::remove_dir_all(directory).expect("it is there");
}

/// A way to lose the directory of a server, given an older copy of it.
struct Loss {
    server: usize,
    /// Part of the cause that is told.
    cause: &'static str,
    lose: fn(&Path, &Path),
}

const LOSSES: [Loss; 4] = [
    Loss {
        server: 1,
        cause: "has lost what it held",
        lose: |data, _| {
            let label = std::fs::read(data.join("unisono-disk.json")).expect("it has a label");
            remove(data);
            std::fs::create_dir(data).expect("a test has room");
            std::fs::write(data.join("unisono-disk.json"), label).expect("a test has room");
        },
    },
    // Server 0, which keeps the catalogue.
    Loss {
        server: 0,
        cause: "has lost what it held",
        lose: |data, _| std::fs::remove_file(data.join("stored")).expect("it has a log"),
    },
    Loss {
        server: 1,
        cause: "is of generation 2",
        lose: |data, older| {
            remove(data);
            copy(older, data);
        },
    },
    Loss { server: 1, cause: "No such file", lose: |data, _| remove(data) },
];

#[test]
fn what_is_left_can_be_read_without_a_lost_directory() {
    // Proves: when a directory has only its label, has lost its log, is an older copy, or is not
    // there, `start` refuses it and names it; `start --degraded` names it and the files with bytes
    // there. Files without any are read as they were, reads of the others fail with file and bytes,
    // and nothing can be changed. When the directory is back, all is as it was.
    let instance = Instance::new();
    let place = &instance.place;
    for Loss { server, cause, lose } in LOSSES {
        let (data, kept) = (instance.data(server), place.path("kept"));
        copy(&data, &kept);
        lose(&data, &instance.older(server));
        refuses_to_start(&instance, server, cause);
        if cause.contains("No such file") {
            // The refused start has made it.
            remove(&data);
        }
        names_what_is_lost(&instance, server, cause);
        gives_what_is_left(&instance, server, cause);
        place.run(&["stop"]).done();
        assert_eq!(data.exists(), !cause.contains("No such file"), "nothing is made");
        if data.exists() {
            remove(&data);
        }
        std::fs::rename(&kept, &data).expect("a test may move it");
        place.start(&["--servers", "2"]);
        assert_eq!(instance.get("large").done().output, instance.content);
        place.run(&["stop"]).done();
    }
}

fn refuses_to_start(instance: &Instance, server: usize, cause: &str) {
    let name = instance.data(server).display().to_string();
    let exists = instance.data(server).exists();
    let refused = instance.place.run(&["start", "--servers", "2"]);
    let refused = match exists {
        true => refused.failed(DATA_CHECK, &["1 of 2 data directories", &name, cause]),
        false => refused.failed(USAGE, &[&name]),
    };
    assert!(refused.error.contains("start --degraded"), "{}", refused.error);
}

fn names_what_is_lost(instance: &Instance, server: usize, cause: &str) {
    let started = instance.place.start(&["--degraded", "--servers", "2"]);
    let shown = &started["degraded"];
    assert_eq!(shown["lost"].as_array().map(Vec::len), Some(1), "{shown}");
    assert_eq!(shown["lost"][0]["server"], server as u64, "{shown}");
    let told = shown["lost"][0]["cause"].as_str().expect("it has a cause");
    assert!(told.contains(cause), "{told}");
    let listed = shown["files_with_lost_bytes"].as_array().expect("it lists files");
    let names: Vec<&str> = listed.iter().filter_map(|file| file["name"].as_str()).collect();
    let lost = ["large", instance.small[server].as_str()];
    assert!(lost.iter().all(|name| names.contains(name)), "{names:?}");
    assert!(!names.contains(&instance.small[Instance::other(server)].as_str()), "{names:?}");
    let status = instance.place.run(&["status"]).done();
    assert!(String::from_utf8_lossy(&status.output).contains("lost"));
}

fn gives_what_is_left(instance: &Instance, server: usize, cause: &str) {
    let whole = &instance.small[Instance::other(server)];
    assert_eq!(instance.get(whole).done().output, instance.content[..700_000]);
    instance.tells_every_block_of(server, cause);
    instance.get(&instance.small[server]).failed(DATA_CHECK, &["bytes 0 to 700000", cause]);
    let changes: [&[&str]; 4] =
        [&["put", "little", "new"], &["rm", whole], &["mv", whole, "new"], &["mkdir", "new"]];
    for change in changes {
        instance.place.run(change).failed(FAILED, &["--degraded"]);
    }
    assert_eq!(instance.get(whole).done().output, instance.content[..700_000]);
}

#[test]
fn objects_that_are_missing_or_older_are_told() {
    // Proves: when objects of one server are replaced by copies from before a later start, or are
    // removed, and its log stays, the instance starts; reads of these objects fail with file and
    // bytes, and others do not.
    let instance = Instance::new();
    let place = &instance.place;
    let objects = instance.data(1).join("objects");
    let kept = place.path("kept");
    copy(&objects, &kept);
    place.start(&["--servers", "2"]);
    let changed = vec![7; 5 * MIB];
    {
        let library = Connection::open(&client::Instance::at(place.instance())).unwrap();
        // In place, so that the file keeps its objects.
        library.open_file("large").unwrap().write_at(&changed, 0).unwrap();
    }
    assert_eq!(instance.get("large").done().output, changed);
    place.run(&["stop"]).done();
    for entry in std::fs::read_dir(&kept).expect("it is there").flatten() {
        std::fs::copy(entry.path(), objects.join(entry.file_name())).expect("a test may copy");
    }
    place.start(&["--servers", "2"]);
    instance.tells_every_block_of(1, "from an older copy");
    let whole = |server: usize| {
        let content = instance.get(&instance.small[server]).done().output;
        assert_eq!(content, instance.content[..700_000]);
    };
    [0, 1].into_iter().for_each(whole);
    place.run(&["stop"]).done();
    for entry in std::fs::read_dir(&objects).expect("it is there").flatten() {
        std::fs::remove_file(entry.path()).expect("a test may remove it");
    }
    place.start(&["--servers", "2"]);
    instance.tells_every_block_of(1, "are missing");
    instance.get(&instance.small[1]).failed(DATA_CHECK, &["bytes 0 to 700000", "are missing"]);
    whole(0);
    place.run(&["stop"]).done();
}

#[test]
fn a_copy_of_a_running_server_is_older_than_its_directory() {
    // Proves: when the directory of a server is replaced, after a stop, by a copy that was made
    // while the servers ran, the start refuses it.
    let instance = Instance::new();
    let place = &instance.place;
    place.start(&["--servers", "2"]);
    instance.rewrite("large", &support::bytes(3 * MIB));
    let (data, copied) = (instance.data(1), place.path("copied"));
    copy(&data, &copied);
    instance.rewrite("large", &instance.content);
    place.run(&["stop"]).done();
    remove(&data);
    std::fs::rename(&copied, &data).expect("a test may move it");
    let refused = place.run(&["start", "--servers", "2"]);
    refused.failed(DATA_CHECK, &["is of generation 5, and the catalogue of generation 6"]);
}

#[test]
fn nothing_is_degraded_without_its_catalogue() {
    // Proves: without the directory that has the catalogue, `start --degraded` says so, and what is
    // to be put back.
    let instance = Instance::new();
    remove(&instance.data(0));
    let degraded = ["start", "--degraded", "--servers", "2"];
    let name = instance.data(0).display().to_string();
    instance.place.run(&degraded).failed(DATA_CHECK, &["there is no catalogue", &name]);
    assert!(!instance.data(0).exists(), "nothing was made");
}

#[test]
fn a_degraded_instance_changes_nothing() {
    // Proves: programs that write to a file get an error of their own, also when all data is there;
    // a server that was killed takes its place again; the next start has everything.
    let instance = Instance::new();
    let place = &instance.place;
    place.start(&["--degraded", "--servers", "2"]);
    let library = Connection::open(&client::Instance::at(place.instance())).unwrap();
    let file = library.open_file("large").unwrap();
    let mut read = vec![0; MIB];
    assert_eq!(file.read_at(&mut read, 5).unwrap(), MIB);
    assert_eq!(read, instance.content[5..][..MIB]);
    for refused in [file.write_at(&[1; 10], 0), file.set_size(5)] {
        let refused = refused.and_then(|()| file.flush(true)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ReadOnly, "{refused}");
    }
    drop(file);
    drop(library);
    assert_eq!(instance.get("large").done().output, instance.content);
    place.run(&["stop"]).done();
    place.start(&["--servers", "2"]);
    assert_eq!(instance.get("large").done().output, instance.content);
    place.run(&["put", "little", "new"]).done();
}
