//! Proves: clients that are killed, in the midst of a collective, of writes, or while they look at
//! pages in a server's memory, leave nothing behind there: no descriptor, no memory, no pinned
//! page. What one was told is written behind the end of a file is there, though the catalogue never
//! heard of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use client::{Buffering, Connection, ConnectionOptions, Instance};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use support::{ENDLESS, Place, bytes, group, signal, until, until_moving};

const MIB: u64 = 1 << 20;

/// Size of each server's cache, half of which can be pinned, and of the file.
const CACHE: u64 = 16 * MIB;

/// Clients of each kind that are killed in a round.
const VICTIMS: usize = 4;

/// Variable that names the instance to a process of this test that is to be killed.
const INSTANCE: &str = "UNISONO_TEST_INSTANCE";

/// Line that the victim prints when it holds its pages.
const HOLDS: &str = "it holds its pages";

#[test]
fn a_client_that_is_to_be_killed() {
    // Proves nothing by itself: with an instance in its environment, this is the client that
    // another test kills.
    let Some(instance) = std::env::var_os(INSTANCE) else { return };
    let library =
        Connection::open_with(&Instance::at(instance), ConnectionOptions::with_pool(8 * MIB))
            .unwrap();
    let file = library.open_file("f").unwrap();
    let pages = file.page_range(0..CACHE / MIB).unwrap();
    println!("\n{HOLDS}");
    let content = vec![pages[0][0]; (4 * MIB + 77) as usize];
    loop {
        file.write_at(&content, 5 * MIB + 3).unwrap();
    }
}

/// Starts a process of this test in the role of a client, and waits until it holds its pages.
fn victim(place: &Place) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_client_that_is_to_be_killed", "--nocapture"]);
    command.env(INSTANCE, place.instance()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == HOLDS), "it ended before it held its pages");
    process
}

fn kill(mut victims: Vec<Child>) {
    victims.iter().for_each(|victim| signal(victim.id(), Signal::KILL));
    for victim in &mut victims {
        victim.wait().unwrap();
    }
}

/// Kills clients of each kind while they are at work.
fn kill_some(place: &Place) {
    let victims: Vec<Child> = (0..VICTIMS).map(|_| victim(place)).collect();
    until_moving(place, 32 * MIB);
    kill(victims);
    for case in &ENDLESS {
        let mut clients = group(place, VICTIMS);
        clients.iter_mut().for_each(|client| client.order(case, "killed"));
        until_moving(place, 2 * case.file_bytes);
        clients[1..].iter_mut().for_each(|client| client.kill());
        assert!(clients[0].answer().is_err(), "{case:?}");
    }
    place.assert_nothing_held();
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Value of `/proc/PID/status` that is in KiB there, in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Proves that a client can pin as much of each cache as ever, and that all of it can be used.
fn others_have_the_whole_cache(place: &Place) {
    let library =
        Connection::open_with(&Instance::at(place.instance()), ConnectionOptions::with_pool(MIB))
            .unwrap();
    let file = library.open_file("f").unwrap();
    let before = memory(std::process::id(), "RssShmem:");
    let pages = file.page_range(0..CACHE / MIB).unwrap();
    assert!(pages.iter().all(|page| page.iter().map(|byte| u64::from(*byte)).sum::<u64>() > 0));
    let seen = memory(std::process::id(), "RssShmem:") - before;
    assert!(seen >= CACHE, "only {seen} bytes are seen where they are, the rest was copied");
    drop(pages);
    let large = library.open_file("large").unwrap();
    let mut read = vec![0; (4 * CACHE) as usize];
    large.read_at(&mut read, 0).unwrap();
    assert!(read == bytes(read.len()));
    let cached: Vec<_> = place.status().iter().map(|one| one["cache_bytes"].as_u64()).collect();
    assert_eq!(cached, [Some(CACHE); 2], "all of each cache is used");
}

#[test]
fn killed_clients_leave_nothing() {
    let place = Place::new();
    place.start(&["--servers", "2", "--cache", "16MiB"]);
    place.assert_nothing_held();
    let servers = place.server_pids();
    let baseline: Vec<usize> = servers.iter().map(|pid| descriptors(*pid)).collect();
    let library =
        Connection::open_with(&Instance::at(place.instance()), ConnectionOptions::with_pool(MIB))
            .unwrap();
    let file = library.create("f", CACHE, MIB, Buffering::default()).unwrap();
    file.write_at(&bytes(CACHE as usize), 0).unwrap();
    file.flush(true).unwrap();
    drop((file, library));
    let large = place.file("large", &bytes((4 * CACHE) as usize));
    place.run(&["put".as_ref(), large.as_os_str(), "large".as_ref()]).done();
    place.assert_nothing_held();
    others_have_the_whole_cache(&place);
    let mut after_first = Vec::new();
    for round in 0..3 {
        kill_some(&place);
        others_have_the_whole_cache(&place);
        until("all descriptors are closed", || {
            let mut servers = servers.iter().zip(&baseline);
            servers.all(|(pid, baseline)| descriptors(*pid) <= *baseline).then_some(())
        });
        let used: Vec<u64> = servers.iter().map(|pid| memory(*pid, "VmRSS:")).collect();
        if round == 0 {
            after_first = used;
            continue;
        }
        for (now, first) in used.iter().zip(&after_first) {
            assert!(*now < first + CACHE / 2, "{now} bytes, {first} after the first round");
        }
    }
}

/// Prefix of the number of bytes written, as printed by a client that makes a file longer.
const WRITTEN: &str = "written: ";

#[test]
fn a_client_that_makes_a_file_longer_and_is_to_be_killed() {
    // Proves nothing by itself, as `a_client_that_is_to_be_killed`.
    let Some(instance) = std::env::var_os(INSTANCE) else { return };
    let library =
        Connection::open_with(&Instance::at(instance), ConnectionOptions::with_pool(8 * MIB))
            .unwrap();
    let file = library.open_file("log").unwrap();
    let content = bytes(MIB as usize);
    for (number, line) in content.chunks(1777).enumerate() {
        file.write_at(line, number as u64 * 1777).unwrap();
        println!("\n{WRITTEN}{}", number * 1777 + line.len());
    }
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// Has such a client write at least so many bytes to a new file, and kills it. Returns the number
/// of bytes that were acknowledged.
fn killed_after(place: &Place, least: usize) -> usize {
    let library =
        Connection::open_with(&Instance::at(place.instance()), ConnectionOptions::with_pool(MIB))
            .unwrap();
    library.create("log", 0, 4096, Buffering::default()).unwrap().close().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_client_that_makes_a_file_longer_and_is_to_be_killed"]);
    command.arg("--nocapture").env(INSTANCE, place.instance()).stdout(Stdio::piped());
    let mut writer = command.spawn().unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told = |line: String| line.strip_prefix(WRITTEN).map(|bytes| bytes.parse().unwrap());
    let mut written: usize = 0;
    while written < least {
        written = lines.by_ref().find_map(told).expect("it goes on until it is killed");
    }
    for listing in [&["ls", "--json"][..], &["ls", "log", "--json"]] {
        let listed = place.run(listing).json();
        let bytes = listed["entries"][0]["bytes"].as_u64().unwrap() as usize;
        assert!(bytes >= written, "{listing:?}: {bytes} bytes are seen of {written}");
    }
    signal(writer.id(), Signal::KILL);
    written = lines.filter_map(told).last().unwrap_or(written);
    writer.wait().unwrap();
    written
}

#[test]
fn what_a_killed_client_was_told_is_written_is_there() {
    for (options, restarts) in
        [(&["--servers", "3"][..], true), (&["--direct"], true), (&[], false)]
    {
        let place = Place::new();
        place.start(options);
        let written = killed_after(&place, 300_000);
        if restarts {
            place.run(&["stop"]).done();
            place.start(options);
        }
        // The last write may be there without an acknowledgement.
        let stat = place.run(&["stat", "log", "--json"]).json();
        let found = stat["bytes"].as_u64().unwrap() as usize;
        assert!((written..=written + 1777).contains(&found), "{found} bytes for {written}");
        let copy = place.path("copy");
        place.run(&["get".as_ref(), "log".as_ref(), copy.as_os_str()]).done();
        assert!(std::fs::read(copy).unwrap()[..written] == bytes(MIB as usize)[..written]);
        // Closing the file has told the catalogue.
        let listed = place.run(&["ls", "--json"]).json();
        assert_eq!(listed["entries"][0]["bytes"], found, "{listed}");
    }
}
