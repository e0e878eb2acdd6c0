//! Proves: with `start --restart`, servers that are killed are started again, also without their
//! data, and programs that know nothing of it go on; what no sync had stored is an error, once. A
//! server that does not come back is an error after the time that a program waits. A stop ends all.

use crate::mirrored::{data, until_all_run};
use crate::rebuilt::{names, until_copied};
use crate::support;
use client::{Connection, ConnectionOptions, ErrorKind, File, Instance};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};
use support::{Place, USAGE, bytes, gone, signal, until};

const MIB: usize = 1 << 20;

fn kill(place: &Place, server: usize) {
    let pid = place.server_pids()[server];
    signal(pid, Signal::KILL);
    gone(pid);
}

fn open(place: &Place, name: &str) -> File {
    let connection = Connection::open(&Instance::at(place.instance())).expect("it runs");
    connection.open_or_create(name).expect("it can be created")
}

fn read(file: &File, length: usize) -> Vec<u8> {
    let mut found = vec![0; length];
    assert_eq!(file.read_at(&mut found, 0).expect("servers come back"), length);
    found
}

#[test]
fn a_program_goes_on_when_servers_are_killed() {
    let place = Place::new();
    place.start(&["--servers", "3", "--restart=60"]);
    let (file, content) = (open(&place, "kept"), bytes(5 * MIB));
    file.write_at(&content, 0).expect("it has room");
    file.flush(true).expect("it is stored");
    for server in 0..3 {
        kill(&place, server);
        assert!(read(&file, content.len()) == content, "server {server} has its data");
        let small = [server as u8; 10];
        file.write_at(&small, 3 * MIB as u64).expect("it is there again");
        file.flush(true).expect("it is stored");
        assert_eq!(read(&file, content.len())[3 * MIB..][..10], small);
        file.write_at(&content[3 * MIB..][..10], 3 * MIB as u64).expect("it is there");
        file.flush(true).expect("it is stored");
        // Names too.
        let name = format!("after-{server}");
        drop(file.connection().open_or_create(&name).expect("the catalogue is there"));
    }
    // Written, and not stored when a server is lost.
    file.write_at(&[7; 3 * MIB], 0).expect("it has room");
    kill(&place, 1);
    until_all_run(&place);
    let lost = file.flush(true).expect_err("a server may have lost it");
    assert_eq!(lost.kind, ErrorKind::ServerLeft);
    assert!(lost.cause.contains("no sync had stored may be lost"), "{lost}");
    file.write_at(&[8; 3 * MIB], 0).expect("it was told once");
    file.flush(true).expect("it is stored");
    assert!(read(&file, 3 * MIB) == [8; 3 * MIB]);
    // A program that begins meanwhile waits too.
    kill(&place, 2);
    assert!(read(&open(&place, "kept"), 3 * MIB) == [8; 3 * MIB]);
    let names = place.run(&["ls"]).done().text().to_owned();
    assert!((0..3).all(|server| names.contains(&format!("after-{server}"))), "{names}");
    let (all, keeper) = (place.server_pids(), place.instance().join("keeper.log"));
    let log = fs::read_to_string(keeper).expect("it is there");
    assert_eq!(log.matches("is started again").count(), 5, "{log}");
    place.run(&["stop"]).done();
    all.into_iter().for_each(gone);
    // Nobody waits for an instance that was stopped.
    let begun = Instant::now();
    let stopped = file.read_at(&mut [0; 10], 0).expect_err("it was stopped");
    assert_eq!(stopped.kind, ErrorKind::ServerLeft, "{stopped}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{stopped}");
}

#[test]
fn a_program_goes_on_when_data_is_lost() {
    let place = Place::new();
    place.start(&["--servers", "3", "--protect", "mirror", "--restart", "--refill"]);
    let (file, content) = (open(&place, "kept"), bytes(7 * MIB));
    file.write_at(&content, 0).expect("it has room");
    file.flush(true).expect("it is stored");
    // More names than a message has room for.
    for number in 0..1_500 {
        let name = format!("{number:0>200}");
        file.connection().make_directory(&name, false).expect("the catalogue is there");
    }
    for server in [1, 2, 0] {
        let before = names(&place);
        let pid = place.server_pids()[server];
        // So that it is not started again before its data is gone.
        signal(pid, Signal::STOP);
        fs::remove_dir_all(data(&place, server as u32)).expect("it is there");
        signal(pid, Signal::KILL);
        assert!(read(&file, content.len()) == content, "there is a copy");
        file.write_at(&content[..MIB], 0).expect("it goes on");
        file.flush(true).expect("it goes on");
        // Server 0 has the names again, which no file shows.
        assert!(names(&place) == before, "server {server}");
        file.connection().make_directory(&format!("after-{server}"), false).expect("it goes on");
        until("all is filled again", || {
            let whole = (0..3).all(|one| crate::refilled::to_fill(&place, one) == Some(0));
            (whole && crate::mirrored::sum(&place, "files_behind") == 0).then_some(())
        });
        until_copied(&place, &[1, 2]);
    }
    assert!(read(&file, content.len()) == content);
    place.run(&["stop"]).done();
}

#[test]
fn a_server_that_does_not_come_back_is_an_error_in_time() {
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let reconnect = Some(Duration::from_millis(700));
    let options = ConnectionOptions { reconnect, ..ConnectionOptions::default() };
    let instance = Instance::at(place.instance());
    let connection = Connection::open_with(&instance, options).expect("it runs");
    let file = connection.open_or_create("one").expect("it can be created");
    file.write_at(&[1; 3 * MIB], 0).expect("it has room");
    file.flush(true).expect("it is stored");
    kill(&place, 1);
    for _ in 0..2 {
        let begun = Instant::now();
        let error = file.read_at(&mut vec![0; 3 * MIB], 0).expect_err("server 1 is gone");
        assert_eq!(error.kind, ErrorKind::ServerLeft, "{error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "it must not wait for ever");
    }
    place
        .run(&["start", "--servers", "2", "--restart", "--degraded"])
        .refused(USAGE, &["--degraded"]);
}
