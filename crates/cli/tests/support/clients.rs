//! Client processes of a bench, ordered by a test, so that it knows the rank of each.

use super::{COLLECTIVE, Place, STALL_TIMEOUT, signal, unisono, until_moving};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// Block size of the files that these clients make, in bytes.
const BLOCK_BYTES: u64 = 1 << 20;

/// Transfer that clients are ordered to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) strategy: &'static str,
    pub(crate) pattern: &'static str,
    pub(crate) record_bytes: u64,
    pub(crate) file_bytes: u64,
    pub(crate) repeat: u32,
}

/// Transfers that do not end within a test, of each strategy.
pub(crate) const ENDLESS: [Case; 9] = [
    endless("caching", "wbc", 8192),
    endless("caching", "rbc", 8192),
    endless("two-phase", "wbc", 8),
    endless("two-phase", "rbc", 8),
    endless("disk-directed", "wbc", 8),
    endless("disk-directed", "rbc", 8),
    endless("global-barrier", "wbc", 8192),
    endless("node-grouping", "wbc", 8192),
    endless("node-grouping", "rbc", 8192),
];

/// A transfer in turns of records so small that blocks stay incomplete, and so unwritten, for long.
pub(crate) const FRAGMENTS: Case = Case { file_bytes: 64 << 20, ..endless("caching", "wc", 8) };

const fn endless(strategy: &'static str, pattern: &'static str, record_bytes: u64) -> Case {
    Case { strategy, pattern, record_bytes, file_bytes: 8 << 20, repeat: 1_000_000 }
}

/// Answer of a client to an order.
pub(crate) type Answer = Result<(), Refusal>;

/// Error of a client.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Exit code of a bench that receives this error first.
    pub(crate) code: i64,
    /// Cause of the error.
    pub(crate) cause: String,
}

/// Machine of a client, as far as it matters to the client.
#[derive(Clone, Copy)]
pub(crate) struct Home<'a> {
    /// Directory of the instance on that machine: its own, or a copy of it.
    pub(crate) instance: &'a Path,
    /// Host on which other clients reach the client. `None`: the address by which it reaches the
    /// servers.
    pub(crate) host: Option<&'a str>,
}

/// One client process; killed when dropped.
pub(crate) struct BenchClient {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

/// Proves of a group of four in the midst of a transfer: when client 2 is killed, the others fail
/// with its number and the code of a failed collective, and the servers hold nothing any more.
#[track_caller]
pub(crate) fn others_learn_of_client_2(
    place: &Place,
    mut clients: Vec<BenchClient>,
    case: &Case,
    file: &str,
) {
    clients.iter_mut().for_each(|client| client.order(case, file));
    until_moving(place, 2 * case.file_bytes);
    clients[2].kill();
    for rank in [0, 1, 3] {
        let refusal = clients[rank].answer().expect_err("the collective cannot be completed");
        assert_eq!(refusal.code, i64::from(COLLECTIVE), "{case:?}: {refusal:?}");
        assert!(refusal.cause.contains("client 2 disconnected"), "{case:?}: {refusal:?}");
    }
    drop(clients);
    place.assert_nothing_held();
}

/// Starts `clients` clients of an instance that work as one group, by rank.
pub(crate) fn group(place: &Place, clients: usize) -> Vec<BenchClient> {
    let instance = place.instance();
    group_of(&vec![Home { instance: &instance, host: None }; clients])
}

/// As [`group`], with a time-out of a few seconds.
pub(crate) fn impatient_group(place: &Place, clients: usize) -> Vec<BenchClient> {
    let instance = place.instance();
    let homes = vec![Home { instance: &instance, host: None }; clients];
    group_started_by(&homes, &|_, command| _ = command.env("UNISONO_TIMEOUT", "4"))
}

/// Starts a client at each of these places, all as one group, by rank.
pub(crate) fn group_of(homes: &[Home<'_>]) -> Vec<BenchClient> {
    group_started_by(homes, &|_, _| ())
}

/// As [`group_of`], with commands that are prepared, each with its rank.
pub(crate) fn group_started_by(
    homes: &[Home<'_>],
    prepare: &dyn Fn(usize, &mut Command),
) -> Vec<BenchClient> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let group = NEXT.fetch_add(1, Ordering::Relaxed);
    let start = |(rank, home)| BenchClient::start(home, (group, rank, homes.len()), prepare);
    let mut clients: Vec<BenchClient> = homes.iter().enumerate().map(start).collect();
    clients.iter_mut().for_each(BenchClient::expect_connected);
    clients
}

impl BenchClient {
    fn start(
        home: &Home<'_>,
        (group, rank, clients): (u64, usize, usize),
        prepare: &dyn Fn(usize, &mut Command),
    ) -> Self {
        let mut command = unisono(&["rank"]);
        prepare(rank, &mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("a client starts");
        let input = process.stdin.take().expect("it was given one");
        let output = BufReader::new(process.stdout.take().expect("it was given one"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut client = Self { process, input, answers };
        client.tell(&json!({
            "instance": home.instance, "rank": rank, "block_bytes": BLOCK_BYTES,
            "work": { "Cases": { "group": group, "clients": clients, "host": home.host } },
        }));
        client
    }

    fn expect_connected(&mut self) {
        let line =
            self.answers.recv_timeout(STALL_TIMEOUT).expect("a client says that it is connected");
        assert_eq!(line, "\"Ready\"");
    }

    /// Process id of the client.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Orders the client to take part in a case on `file`.
    pub(crate) fn order(&mut self, case: &Case, file: &str) {
        let Case { strategy, pattern, record_bytes, file_bytes, repeat } = case;
        self.tell(&json!({ "Measure": {
            "case": {
                "strategy": strategy, "pattern": pattern, "record_bytes": record_bytes,
                "file_bytes": file_bytes, "repeat": repeat, "sync": false,
                "outstanding_per_disk": 4,
                "node_group_size": 0,
            },
            "file": file, "source": { "Generated": 1 }, "life": "Fresh", "dump": null,
            "counted": [],
        }}));
    }

    /// Kills the client at once, with SIGKILL.
    pub(crate) fn kill(&mut self) {
        signal(self.pid(), Signal::KILL);
        let _ = self.process.wait();
    }

    /// Waits for the client's answer to an order, which must come in time.
    pub(crate) fn answer(&self) -> Answer {
        let line = self.answers.recv_timeout(STALL_TIMEOUT).expect("a client answers its order");
        let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
        if let Some(measured) = answer.get("Measured") {
            assert!(measured["wrong"].is_null(), "{line}");
            return Ok(());
        }
        let failed = &answer["Failed"];
        let code = failed["code"].as_i64().expect("a failure has a code");
        let cause = failed["cause"].as_str().expect("a failure has a cause").to_owned();
        Err(Refusal { code, cause })
    }

    fn tell(&mut self, line: &Value) {
        let told = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        told.expect("a client listens");
    }
}

impl Drop for BenchClient {
    fn drop(&mut self) {
        self.kill();
    }
}
