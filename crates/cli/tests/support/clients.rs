//! Client processes of a bench, given their orders by a test, so that it knows which is which.

use super::{PATIENCE, Place, signal, unisono};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// Bytes of a block of the files that these clients make.
const BLOCK_BYTES: u64 = 1 << 20;

/// What clients are told to transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) strategy: &'static str,
    pub(crate) pattern: &'static str,
    pub(crate) record_bytes: u64,
    pub(crate) file_bytes: u64,
    pub(crate) repeat: u32,
}

/// What a client answered: what went wrong, or nothing.
pub(crate) type Answer = Result<(), Refusal>;

/// What went wrong at a client.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The exit code of a bench that hears it first.
    pub(crate) code: i64,
    /// Why.
    pub(crate) cause: String,
}

/// One client process; killed when dropped.
pub(crate) struct BenchClient {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

/// Starts `clients` clients that work as one group, by rank.
pub(crate) fn group(place: &Place, clients: u32) -> Vec<BenchClient> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let group = NEXT.fetch_add(1, Ordering::Relaxed);
    (0..clients).map(|rank| BenchClient::start(place, group, rank, clients)).collect()
}

impl BenchClient {
    fn start(place: &Place, group: u64, rank: u32, clients: u32) -> Self {
        let mut command = unisono(&["bench-client"]);
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
            "instance": place.instance(), "group": group, "rank": rank, "clients": clients,
            "block_bytes": BLOCK_BYTES,
        }));
        client
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Lets it take part in a case that is about `file`.
    pub(crate) fn order(&mut self, case: &Case, file: &str) {
        let Case { strategy, pattern, record_bytes, file_bytes, repeat } = case;
        self.tell(&json!({
            "case": {
                "strategy": strategy, "pattern": pattern, "record_bytes": record_bytes,
                "file_bytes": file_bytes, "repeat": repeat, "sync": false,
                "outstanding_per_disk": 4,
            },
            "file": file, "source": { "Generated": 1 }, "life": "Fresh", "dump": null,
        }));
    }

    /// Kills it, as nothing else would end it: at once.
    pub(crate) fn kill(&mut self) {
        signal(self.pid(), Signal::KILL);
        let _ = self.process.wait();
    }

    /// Waits for its answer to an order, which must come in time.
    pub(crate) fn answer(&self) -> Answer {
        let line = self.answers.recv_timeout(PATIENCE).expect("a client answers its order");
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
