//! Proves: a server's memory stays within what it was given, however many clients write to it at
//! once and however much each of them brings.

use crate::{preloaded, support};
use client::{Buffering, Connection, ConnectionOptions, Instance};
use rustix::process::Signal;
use std::path::Path;
use support::{Place, Running, bytes, run, signal, until, until_moving};

const MIB: u64 = 1 << 20;

/// The most memory that a process has had, in bytes.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|word| word.parse::<u64>().ok()).expect("Linux tells it in KiB") << 10
}

/// Starts one server whose disk takes so many bytes a second.
fn start_slow(place: &Place, library: &Path, rate: u64, words: &[&str]) {
    let words: Vec<&str> = ["start", "--servers", "1"].iter().chain(words).copied().collect();
    let mut start = place.command(&words);
    start.env("LD_PRELOAD", library).env("UNISONO_DEVICE_RATE", rate.to_string());
    start.env(preloaded::FAULTS, place.path(""));
    run(start).done();
}

#[test]
fn many_writers_do_not_fill_a_server() {
    const CACHE: u64 = 8 * MIB;
    for strategy in ["caching", "noncollective"] {
        let place = Place::new();
        place.start(&["--servers", "1", "--cache", "8MiB"]);
        let pid = place.server_pids()[0];
        let idle = peak_memory(pid);
        let bench = [
            "bench",
            "--json",
            "--clients",
            "16",
            "--size",
            "128MiB",
            "--pattern",
            "wb",
            "--record",
            "8MiB",
            "--outstanding",
            "8",
            "--repeat",
            "1",
            "--sync",
            "--strategy",
            strategy,
        ];
        place.run(&bench).done();
        let used = peak_memory(pid) - idle;
        // What is held, what is on its way to the disk or from a client for each block of it, and
        // the program's own.
        assert!(used < 3 * CACHE + 8 * MIB, "{strategy}: {} MiB", used / MIB);
    }
}

#[test]
fn writers_are_held_back_by_a_slow_disk() {
    // Proves: 32 clients that write four times a server's buffers to a disk of 80 MiB/s, each with
    // all it has at once, wait; the server has no more than its buffers and half a megabyte for
    // each client, besides what it had when it began.
    const CACHE: u64 = 64 * MIB;
    const CLIENTS: u64 = 32;
    let cases = [("caching", "8MiB"), ("caching", "64KiB"), ("noncollective", "8MiB")];
    for (strategy, record) in cases {
        let place = Place::new();
        let Some(library) = preloaded::build(&place.path("")) else { return };
        start_slow(&place, &library, 80 * MIB, &["--cache", "64MiB"]);
        let pid = place.server_pids()[0];
        let idle = peak_memory(pid);
        let words = "bench --clients 32 --size 256MiB --pattern wb --outstanding 128 --repeat 1 \
                     --sync --json --strategy";
        let words: Vec<&str> = words.split(' ').chain([strategy, "--record", record]).collect();
        place.run(&words).done();
        let used = peak_memory(pid) - idle;
        assert!(used < CACHE + CLIENTS * MIB / 2, "{strategy} {record}: {} MiB", used / MIB);
    }
}

#[test]
fn many_small_writes_do_not_fill_a_server() {
    // Proves: of 64 MiB in writes of 64 KiB that 16 clients have under way at once, a server keeps
    // what its cache holds and a quarter as much that waits for room; and all is written. Besides
    // these there are blocks that change while they go to the disk, what has just come in from each
    // client, and the program's own.
    const CACHE: u64 = 8 * MIB;
    const CLIENTS: u64 = 16;
    const WRITES: u64 = 64;
    const WRITE: u64 = 64 << 10;
    let place = Place::new();
    let Some(library) = preloaded::build(&place.path("")) else { return };
    start_slow(&place, &library, 40 * MIB, &["--cache", "8MiB"]);
    let pid = place.server_pids()[0];
    let content = bytes((WRITES * WRITE) as usize);
    let idle = peak_memory(pid);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (instance, content) = (Instance::at(place.instance()), &content);
            scope.spawn(move || {
                let library =
                    Connection::open_with(&instance, ConnectionOptions::with_pool(WRITES * WRITE))
                        .expect("it runs");
                let file = library.create(&format!("f{client}"), 0, MIB, Buffering::default());
                let file = file.expect("there is none");
                let writes = content.chunks(WRITE as usize).zip(0..).map(|(part, number)| {
                    let mut buffer = library.buffer(WRITE).expect("the pool has all of them");
                    buffer.copy_from_slice(part);
                    file.start_write(buffer, number * WRITE)
                });
                let writes: Vec<_> = writes.collect();
                for write in writes {
                    write.wait().expect("it is written");
                }
                file.flush(true).expect("it is stored");
            });
        }
    });
    let used = peak_memory(pid) - idle;
    assert!(used < 2 * CACHE + CLIENTS * MIB + 8 * MIB, "{} MiB", used / MIB);
    for client in [0, CLIENTS - 1] {
        let back = place.run(&["get", &format!("f{client}"), "-"]).done();
        assert!(back.output == content);
    }
}

#[test]
fn clients_that_stop_keep_nothing_from_others() {
    // Proves: clients that stop in the midst of a transfer and keep the buffers that others wait
    // for are let go, and told so; meanwhile the server has no more buffers than it was given.
    const CACHE: u64 = 16 * MIB;
    const BLOCK: u64 = 4 * MIB;
    // So slow that copies are under way for long enough.
    const RATE: u64 = 64 * MIB;
    let place = Place::new();
    let Some(library) = preloaded::build(&place.path("")) else { return };
    start_slow(&place, &library, RATE, &["--cache", "16MiB", "--tcp", "127.0.0.1"]);
    place.run(&["layout", "set", "/", "--block", "4MiB"]).done();
    let pid = place.server_pids()[0];
    let idle = peak_memory(pid);
    let content = bytes((48 * BLOCK) as usize);
    let local = place.file("local", &content);
    let copy = |name: &str| {
        let to = format!("unisono://{name}");
        place.command(&["cp", local.to_str().expect("a test has a plain name"), &to])
    };
    let stopped: Vec<Running> = ["first", "second"]
        .into_iter()
        .map(|name| {
            let running = Running::start(copy(name));
            until_moving(&place, BLOCK);
            signal(running.pid(), Signal::STOP);
            running
        })
        .collect();
    run(copy("third")).done();
    let used = peak_memory(pid) - idle;
    assert!(used < CACHE + 3 * BLOCK + 16 * MIB, "{} MiB", used / MIB);
    for running in stopped {
        signal(running.pid(), Signal::CONT);
        // Whoever kept nothing that others needed goes on.
        let ended = running.end();
        if ended.exit_code() != Some(0) {
            ended.failed(3, &["server 0 disconnected"]);
        }
    }
    assert!(place.run(&["get", "third", "-"]).done().output == content);
}

#[test]
fn directed_transfers_share_the_buffers_of_a_server() {
    // Proves: of many clients whose transfers the server directs, each in blocks half as large as
    // its cache, those wait for which there are no buffers. Besides the cache there are two such
    // blocks, one on its way to the disk, and the program's own.
    const CACHE: u64 = 16 * MIB;
    const BLOCK: u64 = 8 * MIB;
    const WRITERS: usize = 16;
    let place = Place::new();
    place.start(&["--servers", "1", "--cache", "16MiB"]);
    place.run(&["layout", "set", "/", "--block", "8MiB"]).done();
    let pid = place.server_pids()[0];
    let idle = peak_memory(pid);
    let content = vec![5; 2 * BLOCK as usize];
    let local = place.file("local", &content);
    let copies = (0..WRITERS).map(|number| {
        let (from, to) = (local.to_str().expect("a test has a plain name"), number);
        Running::start(place.command(&["cp", "--no-verify", from, &format!("unisono://f{to}")]))
    });
    let copies: Vec<Running> = copies.collect();
    copies.into_iter().for_each(|copy| _ = copy.end().done());
    let used = peak_memory(pid) - idle;
    assert!(used < CACHE + 3 * BLOCK + 8 * MIB, "{} MiB", used / MIB);
    let back = place.run(&["get", "f7", "-"]).done();
    assert!(back.output == content);
}

#[test]
fn a_disk_that_has_stopped_holds_up_nobody_else() {
    // Proves: while one of a server's two disks takes nothing and two copies wait for it, whatever
    // needs only the other one is done, also by its files' making, replacing and removal; and when
    // the disk goes on, so do the copies, of which every byte is there.
    let place = Place::new();
    let Some(library) = preloaded::build(&place.path("")) else { return };
    let (sound, held) = (place.path("sound"), place.path("held"));
    let mut start = place.command(&["start", "--servers", "1", "--cache", "16MiB"]);
    start.arg("--data").arg(&sound).arg("--data").arg(&held);
    run({
        start.env("LD_PRELOAD", library).env(preloaded::FAULTS, &held);
        start
    })
    .done();
    let (small, large) = (bytes(700_000), bytes(48 * MIB as usize));
    place.file("small", &small);
    let large_file = place.file("large", &large);
    place.run(&["cp", "small", "unisono://before"]).done();
    place.run(&["cp", "small", "unisono://replaced"]).done();
    let hold = held.join("hold");
    std::fs::write(&hold, "").expect("a test may write");
    let copies = ["first", "second"].map(|name| {
        let from = large_file.to_str().expect("a test has a plain name");
        Running::start(place.command(&["cp", from, &format!("unisono://{name}")]))
    });
    until("the disk waits", || held.join("waits").exists().then_some(()));
    for turn in 0..3 {
        let name = format!("unisono://small{turn}");
        let directory = format!("unisono://directory{turn}");
        place.run(&["cp", "small", &name]).done();
        place.run(&["cp", "small", "unisono://replaced"]).done();
        assert!(place.run(&["cat", &name]).done().output == small);
        assert!(place.run(&["cat", "unisono://before"]).done().output == small);
        place.run(&["stat", &name]).done();
        place.run(&["mkdir", &directory]).done();
        place.run(&["mv", &name, &directory]).done();
        place.run(&["ls", &directory]).done();
        place.run(&["rm", "-r", &directory]).done();
        place.run(&["df"]).done();
        place.run(&["status"]).done();
    }
    std::fs::remove_file(&hold).expect("it is there");
    for copy in copies {
        copy.end().done();
    }
    for name in ["first", "second"] {
        assert!(place.run(&["cat", name]).done().output == large);
    }
}
