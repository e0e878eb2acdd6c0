//! Proves: when a server or a client stops (SIGSTOP) in the middle of a transfer, every other
//! client fails within bounded time with the number of the one that has stopped, and no other is
//! named.

use crate::support;
use rustix::process::Signal;
use support::{
    COLLECTIVE, Case, ENDLESS, NO_SERVER, Place, Running, children_of, gone, impatient_group,
    signal, some_at_once, until_moving,
};

const CLIENTS: usize = 4;
const SERVERS: usize = 2;

/// Process that stops.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Victim {
    Server(usize),
    Client(usize),
}

/// Runs `check` with every victim and transfer, several at the same time.
fn for_each_case(victims: [Victim; 2], check: impl Fn(Victim, &Case) + Sync) {
    let cases = ENDLESS.iter().enumerate();
    let cases = cases.map(|(number, case)| (victims[number % 2], case));
    some_at_once(cases, |(victim, case)| check(victim, case));
}

/// Names of a client in errors.
fn names_of(rank: usize) -> [String; 2] {
    [format!("client {rank}"), format!("rank {rank} ")]
}

fn place(listen: &[&str]) -> Place {
    let place = Place::new();
    place.start(&[&["--servers", &SERVERS.to_string()], listen].concat());
    place
}

/// Proves of one transfer that the clients that are left name the victim and no other.
#[track_caller]
fn others_name(victim: Victim, case: &Case, listen: &[&str]) {
    let place = place(listen);
    let mut clients = impatient_group(&place, CLIENTS);
    clients.iter_mut().for_each(|client| client.order(case, "stopped"));
    until_moving(&place, 2 * case.file_bytes);
    let (pid, names, code) = match victim {
        Victim::Server(number) => {
            (place.server_pids()[number], vec![format!("server {number}")], NO_SERVER)
        }
        // Between two calls it is missing, and within one it does not answer.
        Victim::Client(rank) => (clients[rank].pid(), names_of(rank).into(), COLLECTIVE),
    };
    signal(pid, Signal::STOP);
    let servers = (0..SERVERS).map(|number| format!("server {number}"));
    let others = servers.chain((0..CLIENTS).flat_map(names_of));
    let others: Vec<String> = others.filter(|other| !names.contains(other)).collect();
    for (rank, client) in clients.iter().enumerate() {
        if victim == Victim::Client(rank) {
            continue;
        }
        let refusal = client.answer().expect_err("the transfer cannot be completed");
        assert_eq!(refusal.code, i64::from(code), "{victim:?}, {rank}, {case:?}: {refusal:?}");
        let is_named = names.iter().any(|name| refusal.cause.contains(name));
        assert!(is_named, "{victim:?}, {rank}, {case:?}: {refusal:?}");
        for other in &others {
            assert!(!refusal.cause.contains(other), "{victim:?}, {rank}, {case:?}: {refusal:?}");
        }
    }
    drop(clients);
    signal(pid, Signal::CONT);
    place.assert_nothing_held();
}

#[test]
fn a_stopped_server_is_named_with_every_strategy_by_sockets() {
    let victims = [Victim::Server(0), Victim::Server(1)];
    for_each_case(victims, |victim, case| others_name(victim, case, &[]));
}

#[test]
fn a_stopped_server_is_named_with_every_strategy_by_tcp() {
    let victims = [Victim::Server(1), Victim::Server(0)];
    for_each_case(victims, |victim, case| others_name(victim, case, &["--tcp", "127.0.0.1"]));
}

#[test]
fn a_stopped_client_is_named_with_every_strategy_by_sockets() {
    let victims = [Victim::Client(2), Victim::Client(0)];
    for_each_case(victims, |victim, case| others_name(victim, case, &[]));
}

#[test]
fn a_stopped_client_is_named_with_every_strategy_by_tcp() {
    let victims = [Victim::Client(0), Victim::Client(2)];
    for_each_case(victims, |victim, case| others_name(victim, case, &["--tcp", "127.0.0.1"]));
}

#[test]
fn a_bench_whose_client_stops_ends_and_names_it() {
    // Proves: a bench ends with code 5 and the number of the client that has stopped, first or
    // last, by the servers or by the members, and leaves no process and no file.
    for_each_case([Victim::Client(0), Victim::Client(1)], |victim, case| {
        let Victim::Client(rank) = victim else { return };
        let place = place(&[]);
        let mut bench = place.command(&["bench", "--clients", "4", "--repeat", "1000000"]);
        bench.args(["--strategy", case.strategy, "--pattern", case.pattern]);
        bench.args(["--record", &case.record_bytes.to_string(), "--size", "8MiB"]);
        bench.env("UNISONO_TIMEOUT", "4");
        let bench = Running::start(bench);
        until_moving(&place, 2 * case.file_bytes);
        let clients = children_of(bench.pid(), "rank");
        assert_eq!(clients.len(), 4);
        signal(clients[rank], Signal::STOP);
        let ended = bench.end().code(COLLECTIVE);
        let is_named = names_of(rank).iter().any(|name| ended.error.contains(name));
        assert!(is_named, "{case:?}: {}", ended.error);
        clients.into_iter().for_each(gone);
        place.assert_nothing_held();
        assert_eq!(place.files(), [""; 0]);
    });
}
