//! Proves: a start that is killed at any instant leaves nothing that the next start or stop does
//! not repair by itself.
//!
//! `UNISONO_TEST_KILLS` is the number of kills (default 120); `UNISONO_TEST_SEED` repeats a
//! failure.

use crate::hosts::Site;
use crate::support;
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{
    DONE, Ended, FAILED, NO_SERVER, Place, Running, USAGE, bytes, children_of, gone, is_running,
    processes_naming, signal, until,
};

/// Kills of all tests together, unless the environment says another number.
const KILLS: usize = 120;

/// Tests that share the kills.
const TESTS: usize = 4;

/// Sequence of numbers that a seed determines.
struct Numbers(u64);

impl Numbers {
    /// A sequence whose seed is printed.
    fn new(name: &str) -> Self {
        let seed = std::env::var("UNISONO_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
        println!("{name}: UNISONO_TEST_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from 0 to `end`, without `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }
}

/// Rounds of one test beyond its kills, if they have not hit every kind of instant.
const EXTRA_MAX: usize = 60;

/// Rounds of one test, and the number of starts killed before, within and after their work.
struct Rounds {
    kills: usize,
    next: usize,
    hit: [usize; 3],
}

impl Rounds {
    fn new() -> Self {
        let kills = std::env::var("UNISONO_TEST_KILLS").ok().and_then(|kills| kills.parse().ok());
        Self { kills: kills.unwrap_or(KILLS) / TESTS, next: 0, hit: [0; 3] }
    }

    /// The next round: its number, and that of its instant. After the last kill, one that aims at
    /// what was not hit.
    fn next(&mut self) -> Option<(usize, usize)> {
        let round = self.next;
        self.next += 1;
        match self.hit.iter().position(|hit| *hit == 0) {
            _ if round < self.kills => Some((round, round)),
            Some(missing) if round < self.kills + EXTRA_MAX => Some((round, AIMS[missing])),
            _ => None,
        }
    }

    /// Proves that every kind of instant was hit.
    fn finish(&self, name: &str) {
        println!("{name}: killed before, within and after the start: {:?}", self.hit);
        assert!(self.hit.iter().all(|kills| *kills > 0), "an instant was not hit: {:?}", self.hit);
    }
}

/// Instants that most likely are before, within and after a start.
const AIMS: [usize; 3] = [0, 1, 3];

/// State that a killed start has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    /// It had not begun.
    Nothing,
    /// It had begun and was not complete.
    Part,
    /// It was complete.
    Instance,
}

/// State of the directory of an instance.
fn left(instance: &Path) -> Left {
    let has = |name: &str| instance.join(name).exists();
    match () {
        () if has("instance.json") => Left::Instance,
        () if has("key") || has("clients") => Left::Part,
        () => Left::Nothing,
    }
}

/// Instant at which a start is killed.
#[derive(Clone, Copy, Debug)]
enum Instants {
    After(Duration),
    /// As soon as this file of the instance is there.
    At(&'static str),
}

/// The instant of round `round`: events in turn, and else a random time in the length of a start.
fn instant(round: usize, numbers: &mut Numbers, length: Duration) -> Instants {
    match round % 12 {
        0 => Instants::After(Duration::ZERO),
        1 => Instants::At("key"),
        2 => Instants::At("server-1.log"),
        3 => Instants::At("instance.json"),
        4 => Instants::At("data/server-1/unisono-disk.json"),
        5 => Instants::At("server-1.sock"),
        _ => Instants::After(Duration::from_nanos(numbers.below(length.as_nanos() as u64 * 5 / 4))),
    }
}

/// Runs a start and sends it a signal at an instant. Returns what it leaves.
fn kill_at(start: Command, instance: &Path, how: Signal, when: Instants) -> Left {
    let begun = Instant::now();
    let start = Running::start(start);
    let has_come = || match when {
        Instants::After(time) => begun.elapsed() >= time,
        Instants::At(name) => instance.join(name).exists(),
    };
    while !has_come() && is_running(start.pid()) {
        std::hint::spin_loop();
    }
    signal(start.pid(), how);
    start.end();
    left(instance)
}

/// Proves that nothing is left of an instance that was stopped.
#[track_caller]
fn assert_nothing_left(place: &Place, context: &str) {
    let processes = processes_naming(&place.path(""));
    assert_eq!(processes, [0; 0], "{context}: processes are left");
    assert_ne!(left(&place.instance()), Left::Instance, "{context}");
    let key = std::fs::metadata(place.instance().join("key"));
    assert!(key.is_err() || key.is_ok_and(|key| key.len() == 32), "{context}: half a key");
}

/// Proves that the next start works: it starts the servers, or they run.
#[track_caller]
fn next_start(ended: Ended, left: Left, context: &str) {
    match left {
        Left::Instance => drop(ended.refused(USAGE, &["is running"])),
        _ => assert_eq!(ended.exit_code(), Some(DONE), "{context}: {}", ended.error),
    }
}

/// Proves that `stop` works when it comes first.
#[track_caller]
fn first_stop(place: &Place, left: Left, context: &str) {
    let stopped = place.run(&["stop"]);
    let code = stopped.exit_code();
    match left {
        Left::Instance => assert_eq!(code, Some(DONE), "{context}: {}", stopped.error),
        // Servers may have been ending, or have ended.
        _ => assert!([Some(DONE), Some(NO_SERVER)].contains(&code), "{context}: {}", stopped.error),
    }
    assert_nothing_left(place, context);
}

/// Kills starts with one signal, at all kinds of instants.
fn starts_are_repaired(how: Signal, name: &str) {
    let mut numbers = Numbers::new(name);
    let length = {
        let (place, begun) = (Place::new(), Instant::now());
        place.start(&["--servers", "2"]);
        begun.elapsed()
    };
    let mut rounds = Rounds::new();
    while let Some((round, aim)) = rounds.next() {
        let place = Place::new();
        let words: &[&str] = match numbers.below(4) {
            0 => &["start", "--servers", "2", "--data", "a", "--data", "b"],
            1 => &["start", "--servers", "2", "--tcp", "127.0.0.1"],
            _ => &["start", "--servers", "2"],
        };
        let when = instant(aim, &mut numbers, length);
        let left = kill_at(place.command(words), &place.instance(), how, when);
        rounds.hit[left as usize] += 1;
        let context = format!("round {round}: {words:?} killed {when:?} left {left:?}");
        let mut next = words;
        match numbers.below(4) {
            0 => {
                first_stop(&place, left, &context);
                next_start(place.run(words), Left::Part, &context);
            }
            // The directories go to other servers, and are of another number of disks.
            1 if left != Left::Instance => {
                next = &["start", "--servers", "1", "--data", "b", "--data", "a"];
                next_start(place.run(next), left, &context);
            }
            _ => next_start(place.run(words), left, &context),
        }
        place.run(&["status"]).done();
        place.run(&["stop"]).done();
        assert_nothing_left(&place, &context);
        if round % 8 == 0 {
            // Directories that were of a complete instance.
            let when = instant(round / 8 + 1, &mut numbers, length);
            let left = kill_at(place.command(next), &place.instance(), how, when);
            next_start(place.run(next), left, &context);
            place.run(&["stop"]).done();
            assert_nothing_left(&place, &context);
        }
    }
    rounds.finish(name);
}

#[test]
fn a_start_that_is_killed_is_repaired() {
    starts_are_repaired(Signal::KILL, "KILL");
}

#[test]
fn a_start_that_is_terminated_is_repaired() {
    starts_are_repaired(Signal::TERM, "TERM");
}

#[test]
fn a_start_that_is_interrupted_is_repaired() {
    starts_are_repaired(Signal::INT, "INT");
}

#[test]
fn a_start_on_hosts_that_is_killed_is_repaired() {
    // Proves the same of servers on hosts, of which the supervisor and the launchers must end.
    let mut numbers = Numbers::new("hosts");
    let length = {
        let (site, begun) = (Site::becoming(), Instant::now());
        site.start(&[]).done();
        begun.elapsed()
    };
    let mut rounds = Rounds::new();
    while let Some((round, aim)) = rounds.next() {
        let site = Site::becoming();
        let place = site.place();
        let when = match instant(aim, &mut numbers, length) {
            // The data is elsewhere.
            Instants::At("data/server-1/unisono-disk.json" | "server-1.sock") => {
                Instants::After(length / 2)
            }
            when => when,
        };
        let how = [Signal::KILL, Signal::TERM, Signal::INT][round % 3];
        let left = kill_at(site.start_command(&[]), &place.instance(), how, when);
        rounds.hit[left as usize] += 1;
        let context = format!("round {round}: killed {when:?} left {left:?}");
        // The supervisor may complete the start before it learns of the kill.
        if numbers.below(4) == 0 {
            let stopped = place.run(&["stop"]);
            let code = stopped.exit_code();
            assert!([Some(DONE), Some(NO_SERVER)].contains(&code), "{context}: {}", stopped.error);
            site.assert_nothing_left();
            site.start(&[]).done();
        } else {
            let ended = site.start(&[]);
            let is_running = ended.exit_code() == Some(USAGE);
            next_start(ended, if is_running { Left::Instance } else { left }, &context);
        }
        place.run(&["status"]).done();
        place.run(&["stop"]).done();
        site.assert_nothing_left();
    }
    rounds.finish("hosts");
}

/// True if a process has a directory open.
fn has_open(pid: u32, directory: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut paths = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    paths.any(|path| path == directory)
}

#[test]
fn a_stopped_process_of_an_interrupted_start_is_ended() {
    // Proves: a server that is stopped by a signal and has lost its start is found by the doctor,
    // and ended by stop, and by the next start.
    for repairs in [&["stop"][..], &["start", "--servers", "1", "--data", "data"]] {
        let place = Place::new();
        let data = place.path("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&data, PermissionsExt::from_mode(0o700)).unwrap();
        // The server waits for the directory, so that it does not see the end of the start.
        let lock = std::fs::File::open(&data).unwrap();
        lock.lock().unwrap();
        let words = ["start", "--servers", "1", "--data", "data"];
        let start = Running::start(place.command(&words));
        let begun = || children_of(start.pid(), "serve").first().copied();
        let server = until("a server begins", begun);
        until("it waits for the directory", || has_open(server, &data).then_some(()));
        signal(start.pid(), Signal::KILL);
        start.end();
        signal(server, Signal::STOP);
        let found = place.run(&["doctor"]).failed(FAILED, &["left processes"]);
        assert!(found.error.contains(&server.to_string()), "{}", found.error);
        drop(lock);
        let repaired = place.run(repairs).done();
        gone(server);
        if repairs[0] == "stop" {
            assert!(repaired.error.contains("1 process of an interrupted"), "{}", repaired.error);
        } else {
            place.run(&["stop"]).done();
        }
        assert_nothing_left(&place, repairs[0]);
        assert!(place.run(&["doctor"]).done().text().contains("there is no instance"));
    }
}

#[test]
fn stopped_servers_can_be_stopped_with_their_data() {
    // Proves: stop ends servers that a signal has stopped, and what was written to them is there
    // after a start.
    let place = Place::with_servers(2);
    let content = bytes(2_500_000);
    let local = place.file("local", &content);
    place.run(&["put", local.to_str().unwrap(), "kept"]).done();
    let pids = place.server_pids();
    pids.iter().for_each(|pid| signal(*pid, Signal::STOP));
    let stopped = place.run(&["stop", "--json"]).done().json();
    assert_eq!(stopped["stopped"], 2);
    pids.into_iter().for_each(gone);
    place.start(&["--servers", "2"]);
    assert!(place.run(&["get", "kept", "-"]).done().output == content);
}

#[test]
fn stopped_supervisors_and_launchers_can_be_stopped() {
    // Proves: stop ends an instance on hosts whose supervisor, launcher, server, or all of them
    // were stopped by a signal; nothing is left.
    let site = Site::waiting();
    for stopped in
        [&["supervisor"][..], &["launcher"], &["server"], &["supervisor", "launcher", "server"]]
    {
        site.start(&[]).done();
        let file = std::fs::read(site.place().instance().join("instance.json")).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        let supervisor = file["keeper"]["pid"].as_u64().unwrap() as u32;
        let pids = stopped.iter().map(|which| match *which {
            "supervisor" => supervisor,
            "launcher" => children_of(supervisor, "127.0.0.2")[0],
            _ => file["servers"][1]["pid"].as_u64().unwrap() as u32,
        });
        pids.for_each(|pid| signal(pid, Signal::STOP));
        let ended = site.place().run(&["stop", "--json"]).done().json();
        assert_eq!(ended["stopped"], 2, "{stopped:?}");
        site.assert_nothing_left();
    }
}

#[test]
fn a_server_that_does_not_answer_on_its_host_is_named() {
    // Proves: where a server on another host listens and does not answer, stop ends all others,
    // and names the host, the process and what to do; when it has ended, stop forgets it. That
    // server is played by a socket of this test.
    let site = Site::becoming();
    site.start(&[]).done();
    let path = site.place().instance().join("instance.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let server = file["servers"][1]["pid"].as_u64().unwrap() as u32;
    signal(server, Signal::KILL);
    gone(server);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    file["servers"][1]["address"] = format!("tcp:127.0.0.1:{port}").into();
    std::fs::write(&path, serde_json::to_vec(&file).unwrap()).unwrap();
    let named = ["server 1 on 127.0.0.3", &format!("process {server} there listens")];
    let refused = site.place().run(&["stop"]).refused(NO_SERVER, &named);
    assert!(refused.error.contains(&format!("kill -CONT {server}")), "{}", refused.error);
    assert_eq!(processes_naming(&site.place().path("")), [0; 0]);
    drop(listener);
    let stopped = site.place().run(&["stop", "--json"]).done().json();
    assert_eq!(stopped["gone"], serde_json::json!([0, 1]));
    site.assert_nothing_left();
}
