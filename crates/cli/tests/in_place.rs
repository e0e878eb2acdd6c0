//! Proves: servers that are killed and started again work on in the ordinary files that clients
//! have open, and give no file a second number; clients that are killed at any moment leave no file
//! open or locked.

use crate::support;
use client::{Connection, ConnectionOptions, File, InPlaceOptions, Instance};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Place, bytes, gone, signal, until};

const MIB: usize = 1 << 20;

/// Variable that names the instance to a process of this test that is to be killed, and that for
/// the file.
const INSTANCE: &str = "UNISONO_TEST_INSTANCE_IN_PLACE";
const FILE: &str = "UNISONO_TEST_FILE_IN_PLACE";

/// Line that the process prints with each open of the file.
const OPENED: &str = "opened";

fn connection(instance: &Path) -> Connection {
    let options = ConnectionOptions::with_pool(MIB as u64);
    Connection::open_with(&Instance::at(instance), options).expect("it runs")
}

fn open(place: &Place, path: &Path) -> File {
    let options = InPlaceOptions { create: true, ..InPlaceOptions::default() };
    connection(&place.instance()).open_in_place(path, options).expect("it can be opened")
}

fn read(file: &File, length: usize) -> Vec<u8> {
    let mut found = vec![0; length];
    assert_eq!(file.read_at(&mut found, 0).expect("servers come back"), length);
    found
}

#[test]
fn files_in_place_outlive_servers() {
    let (place, home) = (Place::new(), tempfile::tempdir().expect("a test has room"));
    place.start(&["--servers", "2", "--restart=60"]);
    let path = home.path().join("file");
    let (file, mut content) = (open(&place, &path), bytes(5 * MIB));
    file.write_at(&content, 0).expect("it has room");
    file.flush(true).expect("it is stored");
    for server in 0..2 {
        let pid = place.server_pids()[server];
        signal(pid, Signal::KILL);
        gone(pid);
        assert!(read(&file, content.len()) == content, "server {server} finds the file");
        // Another program gets the same number: each sees what the other one writes.
        let other = open(&place, &path);
        content[..3].copy_from_slice(&[server as u8 + 7; 3]);
        other.write_at(&content[..3], 0).expect("it is there");
        assert_eq!(read(&file, 3), content[..3]);
        file.write_at(&[9; 3], 2 * MIB as u64).expect("it is there");
        content[2 * MIB..][..3].fill(9);
        assert!(read(&other, content.len()) == content);
        file.flush(true).expect("it is stored");
        other.close().expect("all is there");
    }
    file.close().expect("all is there");
    assert!(std::fs::read(&path).expect("it is there") == content);
    assert_eq!(std::fs::read_dir(home.path()).expect("it is there").count(), 1);
}

#[test]
fn direct_transfers_have_any_offset_and_length() {
    // Proves: with --direct, pieces of any offset and length are written beside what is there, and
    // read as other programs have written them; the file is as long as what was written.
    let (place, home) = (Place::new(), tempfile::tempdir().expect("a test has room"));
    place.start(&["--servers", "2", "--direct"]);
    let path = home.path().join("file");
    let (file, mut content) = (open(&place, &path), Vec::new());
    let mut number = 1_u64;
    let mut below = |end: usize| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 33) as usize % end
    };
    for round in 0..60 {
        let (offset, length) = (below(5 * MIB), 1 + below([100, 300_000, 3 * MIB][round % 3]));
        let new = vec![round as u8 + 1; length];
        content.resize(content.len().max(offset + length), 0);
        content[offset..][..length].copy_from_slice(&new);
        file.write_at(&new, offset as u64).expect("it has room");
        if round % 4 == 0 {
            file.flush(true).expect("it is stored");
            assert!(std::fs::read(&path).expect("it is there") == content, "round {round}");
        }
        let from = below(content.len());
        let mut found = vec![0; below(content.len() - from) + 1];
        assert_eq!(file.read_at(&mut found, from as u64).expect("it is there"), found.len());
        assert!(found == content[from..][..found.len()], "round {round}");
    }
    file.close().expect("all is there");
    // Another program changes what no server has any more.
    let others = std::fs::OpenOptions::new().write(true).open(&path).expect("it is there");
    others.write_all_at(&[200; 777], 123_456).expect("it has room");
    content[123_456..][..777].fill(200);
    assert!(read(&open(&place, &path), content.len()) == content);
}

#[test]
fn a_client_that_opens_and_closes() {
    // Proves nothing by itself: with an instance in its environment, this is the client that
    // another test kills.
    let Some(instance) = std::env::var_os(INSTANCE) else { return };
    let path = std::env::var_os(FILE).expect("the test names it");
    let connection = connection(Path::new(&instance));
    loop {
        let file = connection.open_in_place(path.as_ref(), InPlaceOptions::default());
        let file = file.expect("it is there");
        println!("\n{OPENED}");
        file.write_at(&[1; 100], 0).expect("it is there");
        file.close().expect("all is there");
    }
}

#[test]
fn killed_clients_leave_no_file_open() {
    let (place, other) = (Place::with_servers(2), Place::with_servers(2));
    let home = tempfile::tempdir().expect("a test has room");
    let path = home.path().join("file");
    std::fs::write(&path, [0; 100]).expect("there is room");
    let descriptors = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
        let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        targets.filter(|target| *target == path).count()
    };
    for round in 0..10 {
        let mut command = Command::new(std::env::current_exe().expect("it runs"));
        command.args(["--exact", "in_place::a_client_that_opens_and_closes", "--nocapture"]);
        command.env(INSTANCE, place.instance()).env(FILE, &path).stdout(Stdio::piped());
        let mut victim = command.spawn().expect("it can start");
        let mut lines = BufReader::new(victim.stdout.take().expect("it is piped")).lines();
        let is_open = |line: std::io::Result<String>| line.is_ok_and(|line| line == OPENED);
        assert!((0..=round).all(|_| lines.by_ref().any(is_open)), "it ended");
        signal(victim.id(), Signal::KILL);
        victim.wait().expect("it was killed");
        until("the servers have closed the file", || {
            place.server_pids().iter().all(|pid| descriptors(pid) == 0).then_some(())
        });
    }
    // It is not locked.
    let file = open(&other, &path);
    assert_eq!(read(&file, 100), [1; 100]);
    assert!(other.server_pids().iter().all(|pid| descriptors(pid) > 0));
}
