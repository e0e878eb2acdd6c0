//! Proves: whatever dies, vanishes or talks nonsense in the middle of a real transfer, those who
//! are left are told who it was, in bounded time, and the rest goes on.

use crate::{preloaded, support};
use rustix::process::Signal;
use support::{
    COLLECTIVE, ENDLESS, INTERRUPTED, NO_SERVER, Place, Running, children_of, gone, group,
    others_learn_of_client_2, processes_naming, run, signal, unisono, until, until_moving,
};

/// The words of a bench of a running instance that never ends by itself.
const ENDLESS_BENCH: [&str; 15] = [
    "bench",
    "--clients",
    "4",
    "--pattern",
    "wbc",
    "--record",
    "8",
    "--size",
    "16MiB",
    "--repeat",
    "1000000",
    "--strategy",
    "disk-directed",
    "--block",
    "256KiB",
];

#[test]
fn clients_learn_which_of_them_was_killed() {
    // Proves: in every strategy and direction, when client 2 of 4 is killed in mid-collective, the
    // others fail with its number and the code 5, and the servers hold nothing any more.
    let place = Place::with_servers(2);
    for (number, case) in ENDLESS.iter().enumerate() {
        let clients = group(&place, 4);
        others_learn_of_client_2(&place, clients, case, &format!("killed-{number}"));
    }
    assert_eq!(place.files(), [""; 0], "client 0 removes the file of a failed case");
}

#[test]
fn clients_learn_which_server_was_killed() {
    // Proves: in every strategy and direction, when server 1 is killed in mid-transfer, every
    // client fails with its number and the code 3; after a restart the instance works.
    for case in &ENDLESS {
        let place = Place::with_servers(3);
        let mut clients = group(&place, 4);
        clients.iter_mut().for_each(|client| client.order(case, "killed"));
        until_moving(&place, 2 * case.file_bytes);
        signal(place.server_pids()[1], Signal::KILL);
        for client in &clients {
            let refusal = client.answer().expect_err("the transfer cannot be completed");
            assert_eq!(refusal.code, i64::from(NO_SERVER), "{case:?}: {refusal:?}");
            assert!(refusal.cause.contains("server 1 disconnected"), "{case:?}: {refusal:?}");
        }
        drop(clients);
        place.run(&["stop"]).done();
        place.start(&["--servers", "3"]);
        let words = ["bench", "--size", "1MiB", "--repeat", "1", "--clients", "2", "--json"];
        assert_eq!(place.run(&words).done().json()["results"][0]["verified"], true);
    }
}

#[test]
fn a_bench_whose_client_is_killed_ends_and_names_it() {
    // Proves: a bench ends with code 5 and the number of the client that was killed, first or
    // last, leaves no process and no file, and the next bench of the instance succeeds.
    for rank in [0, 3] {
        let place = Place::with_servers(2);
        let bench = Running::start(place.command(&ENDLESS_BENCH));
        until_moving(&place, 32 << 20);
        let clients = children_of(bench.pid(), "rank");
        assert_eq!(clients.len(), 4);
        signal(clients[rank], Signal::KILL);
        let ended = bench.end();
        ended.failed(COLLECTIVE, &[&format!("client {rank} ")]);
        clients.into_iter().for_each(gone);
        place.assert_nothing_held();
        assert_eq!(place.files(), [""; 0]);
        let words = ["bench", "--size", "1MiB", "--repeat", "1", "--clients", "4", "--json"];
        assert_eq!(place.run(&words).done().json()["results"][0]["verified"], true);
    }
}

#[test]
fn a_bench_whose_server_is_killed_ends_and_names_it() {
    // Proves: a bench ends with code 3 and the number of the server that was killed, and leaves no
    // process.
    let place = Place::with_servers(2);
    let bench = Running::start(place.command(&ENDLESS_BENCH));
    until_moving(&place, 32 << 20);
    let clients = children_of(bench.pid(), "rank");
    signal(place.server_pids()[1], Signal::KILL);
    bench.end().failed(NO_SERVER, &["server 1"]);
    clients.into_iter().for_each(gone);
}

#[test]
fn clients_do_not_outlive_a_killed_bench() {
    // Proves: when the bench itself is killed, its clients end, and the servers hold nothing.
    let place = Place::with_servers(2);
    let bench = Running::start(place.command(&ENDLESS_BENCH));
    until_moving(&place, 32 << 20);
    let clients = children_of(bench.pid(), "rank");
    assert_eq!(clients.len(), 4);
    signal(bench.pid(), Signal::KILL);
    clients.into_iter().for_each(gone);
    place.assert_nothing_held();
}

#[test]
fn an_interrupted_bench_leaves_nothing() {
    // Proves: Ctrl-C to the process group of a bench that started its own servers, like SIGTERM to
    // the bench alone, ends it with code 130, all its processes, and removes its files.
    use std::os::unix::process::CommandExt;
    for to_the_group in [true, false] {
        let place = Place::new();
        let mut command = unisono(&ENDLESS_BENCH);
        command.args(["--servers", "2", "--directory"]).arg(place.path(""));
        command.process_group(0);
        let bench = Running::start(command);
        let family = until("all clients and servers run", || {
            let mut family = children_of(bench.pid(), "rank");
            family.extend(children_of(bench.pid(), "serve"));
            (family.len() == 6).then_some(family)
        });
        if to_the_group {
            let group = rustix::process::Pid::from_raw(bench.pid() as i32).expect("a process");
            rustix::process::kill_process_group(group, Signal::INT).expect("the group is there");
        } else {
            signal(bench.pid(), Signal::TERM);
        }
        let ended = bench.end().code(INTERRUPTED);
        assert!(ended.error.contains("interrupted"), "{}", ended.error);
        family.into_iter().for_each(gone);
        assert_eq!(processes_naming(&place.path("")), [0; 0]);
        let left = std::fs::read_dir(place.path("")).expect("the directory is there").count();
        assert_eq!(left, 0, "temporary files must go");
    }
}

#[test]
fn a_server_told_to_end_ends_well() {
    // Proves: on SIGTERM in mid-transfer a server ends with code 0, says why, and removes its
    // socket; what was there before is there after a restart.
    let place = Place::with_servers(2);
    let content = support::bytes(5 << 20);
    let local = place.file("local", &content);
    place.run(&["put".as_ref(), local.as_os_str(), "kept".as_ref()]).done();
    let first = place.server_pids()[1];
    signal(first, Signal::TERM);
    gone(first);
    // In its place one whose end can be seen.
    let mut command = unisono(&["serve", "--id", "1", "--instance"]);
    command.arg(place.instance());
    let server = Running::start(command);
    until("the server answers", || place.status()[1]["running"].as_bool().filter(|is| *is));
    let mut clients = group(&place, 2);
    clients.iter_mut().for_each(|client| client.order(&ENDLESS[0], "endless"));
    until_moving(&place, 16 << 20);
    signal(server.pid(), Signal::TERM);
    let ended = server.end().done();
    assert_eq!(ended.error, "server 1 was asked to end by SIGTERM\n");
    assert!(!place.instance().join("server-1.sock").exists());
    for client in &clients {
        assert!(client.answer().is_err());
    }
    drop(clients);
    place.run(&["stop"]).done();
    place.start(&["--servers", "2"]);
    assert_eq!(place.run(&["get", "kept", "-"]).done().output, content);
}

#[test]
fn what_was_acknowledged_survives_killed_servers() {
    // Proves: when a server is killed while others write, the one with the catalogue or another,
    // then after a restart every name that was made is there, and every file that was copied in,
    // byte for byte; the half of the bench's file that is left can be removed.
    for victim in [0, 1] {
        let place = Place::with_servers(2);
        let content = support::bytes((5 << 20) + 1);
        let local = place.file("local", &content);
        let local = local.to_str().expect("a path in UTF-8");
        place.run(&["put", local, "before"]).done();
        let bench = Running::start(place.command(&ENDLESS_BENCH));
        until_moving(&place, 32 << 20);
        let names: Vec<String> = (0..10).map(|i| format!("d/{i}")).collect();
        for name in &names {
            place.run(&["mkdir", "-p", name]).done();
        }
        place.run(&["cp", local, "unisono://d/0/during"]).done();
        place.run(&["mv", "before", "d/1/moved"]).done();
        signal(place.server_pids()[victim], Signal::KILL);
        bench.end().failed(NO_SERVER, &[&format!("server {victim}")]);
        place.run(&["stop"]).done();
        place.start(&["--servers", "2"]);
        for name in ["d/0/during", "d/1/moved"] {
            assert!(place.run(&["get", name, "-"]).done().output == content, "{name}");
        }
        let found = place.run(&["find", "d", "--type", "directory", "--json"]).done().json();
        let found = found["entries"].as_array().expect("find lists them").len();
        assert_eq!(found, 1 + names.len());
        for name in place.files() {
            place.run(&["rm", &name]).done();
        }
    }
}

#[test]
fn numbers_are_given_once_also_after_the_catalogue_could_not_be_written() {
    // Proves: what is made after a catalogue failed to store something keeps its number, whatever
    // is made after the next start.
    let place = Place::new();
    let Some(library) = preloaded::build(&place.path("")) else { return };
    let start = || {
        let mut start = place.command(&["start", "--servers", "1"]);
        start.env("LD_PRELOAD", &library).env(preloaded::FAULTS, place.path(""));
        run(start).done();
    };
    start();
    let trigger = place.path("refuse-writes");
    std::fs::write(&trigger, b"").expect("a test may write");
    assert_ne!(place.run(&["mkdir", "refused"]).exit_code(), Some(0));
    std::fs::remove_file(&trigger).expect("it is there");
    place.run(&["mkdir", "before"]).done();
    place.run(&["stop"]).done();
    start();
    for name in ["first", "second", "third"] {
        place.run(&["mkdir", name]).done();
    }
    place.run(&["stop"]).done();
    start();
    assert_eq!(place.run(&["ls"]).done().text().lines().count(), 4);
    place.run(&["stat", "before"]).done();
}
