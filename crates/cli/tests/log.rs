//! Proves: with `UNISONO_LOG`, the logs of servers and of clients say who joined a collective call,
//! what each transfer took, and why something failed; without it they say nothing of these; a level
//! that does not exist is refused.

use crate::support;
use client::{Connection, Group, Instance, NewFileOptions, OwnPart};
use support::{Place, run};

const MEMBERS: u32 = 3;
const PART_BYTES: u64 = 1 << 20;

/// Logs of both servers of an instance that was started with this variable, after a collective
/// write and a command that failed; and what that command wrote to stderr.
fn logs(level: Option<&str>) -> (String, String) {
    let place = Place::new();
    let command = |words: &[&str]| {
        let mut command = place.command(words);
        match level {
            Some(level) => command.env("UNISONO_LOG", level),
            None => command.env_remove("UNISONO_LOG"),
        };
        command
    };
    run(command(&["start", "--servers", "2"])).done();
    write_together(&Instance::at(place.instance()));
    let missing = run(command(&["stat", "missing"]));
    let log = |server: u32| {
        let path = place.instance().join(format!("server-{server}.log"));
        std::fs::read_to_string(path).expect("each server has a log")
    };
    let servers = log(0) + &log(1);
    run(command(&["stop"])).done();
    (servers, missing.error)
}

/// Writes a file by a group, whose members are threads of this process.
fn write_together(instance: &Instance) {
    let write = |rank: u32| {
        let connection = Connection::open(instance).expect("the servers are there");
        let group = Group::form(&connection, "writers", rank, MEMBERS).expect("all are there");
        if rank == 0 {
            let file = connection
                .create_by_default("together", NewFileOptions::default())
                .expect("a new file");
            file.close().expect("it is not changed");
        }
        group.all_gather(&[]).expect("all are there");
        let file = connection.open_file("together").expect("rank 0 has made it");
        let part = OwnPart::contiguous(u64::from(rank) * PART_BYTES, PART_BYTES);
        group.write(&file, &part, &vec![7; PART_BYTES as usize]).expect("all members write");
    };
    std::thread::scope(|scope| {
        let writing: Vec<_> = (0..MEMBERS).map(|rank| scope.spawn(move || write(rank))).collect();
        writing.into_iter().for_each(|member| member.join().expect("a member writes"));
    });
}

#[test]
fn logs_say_who_joined_and_what_transfers_took() {
    let (servers, client) = logs(Some("debug"));
    for event in [
        "a client has connected",
        "members have registered",
        "members join",
        "ranks=\"2\"",
        "all members have joined",
        "a transfer begins",
        "a disk is done",
        "the transfer is done",
        "seconds=",
        "call=\"collective write 0 of \\\"together\\\"\"",
        "a request failed",
        "a client has left",
    ] {
        assert!(servers.contains(event), "no {event:?} in the logs of servers:\n{servers}");
    }
    assert!(client.contains("this client begins to use the servers"), "{client}");
}

#[test]
fn parts_of_the_program_have_levels_of_their_own() {
    let (servers, _) = logs(Some("filesystem::collective=debug"));
    assert!(servers.contains("a disk is done"), "{servers}");
    assert!(!servers.contains("members join"), "{servers}");
}

#[test]
fn logs_are_empty_unless_they_are_asked_for() {
    let (servers, client) = logs(None);
    assert!(!servers.contains("a client has connected"), "{servers}");
    assert!(!client.contains("this client begins"), "{client}");
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    let place = Place::new();
    let mut start = place.command(&["start", "--servers", "1"]);
    start.env("UNISONO_LOG", "filesystem=loud");
    run(start).refused(2, &["UNISONO_LOG is \"filesystem=loud\""]);
}
