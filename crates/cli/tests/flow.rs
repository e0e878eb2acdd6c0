//! Proves: a server's memory stays within what it was given, however many clients write to it at
//! once and however much each of them brings.

#[path = "../../world-real/tests/support/preloaded.rs"]
mod preloaded;
mod support;

use support::{Place, Running, run};

const MIB: u64 = 1 << 20;

/// The most memory that a process has had, in bytes.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|word| word.parse::<u64>().ok()).expect("Linux tells it in KiB") << 10
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
    for strategy in ["caching", "noncollective"] {
        let place = Place::new();
        let Some(library) = preloaded::build(&place.path("")) else { return };
        let mut start = place.command(&["start", "--servers", "1", "--cache", "64MiB"]);
        start.env("LD_PRELOAD", library).env("UNISONO_DEVICE_RATE", (80 * MIB).to_string());
        start.env(preloaded::FAULTS, place.path(""));
        run(start).done();
        let pid = place.server_pids()[0];
        let idle = peak_memory(pid);
        let words = "bench --clients 32 --size 256MiB --pattern wb --record 8MiB --outstanding 8 \
                     --repeat 1 --sync --json";
        let words: Vec<&str> = words.split(' ').chain(["--strategy", strategy]).collect();
        place.run(&words).done();
        let used = peak_memory(pid) - idle;
        assert!(used < CACHE + CLIENTS * MIB / 2, "{strategy}: {} MiB", used / MIB);
    }
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
