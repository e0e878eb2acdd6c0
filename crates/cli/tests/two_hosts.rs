//! Proves: clients on another host than the servers, and on different hosts, work together over
//! TCP with a copy of the instance's directory. The hosts are loopback addresses: a process that
//! listens on 127.0.0.2 cannot be reached at 127.0.0.1.

use crate::support;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use support::{
    COLLECTIVE, Case, DONE, ENDLESS, Home, NO_SERVER, Place, Running, USAGE, bytes, children_of,
    gone, group_of, others_learn_of_client_2, processes_naming, run, signal, unisono, until_moving,
};

/// Host of the servers. Next to it are two hosts of clients.
const SERVERS: &str = "127.0.0.1";
const HOSTS: [&str; 2] = ["127.0.0.2", "127.0.0.3"];

/// An instance whose servers listen by TCP.
fn place_of(servers: u32) -> Place {
    let place = Place::new();
    place.start(&["--servers", &servers.to_string(), "--tcp", SERVERS]);
    place
}

/// Copies the files of the instance that a user takes to another machine.
fn copy(place: &Place, name: &str) -> PathBuf {
    let directory = place.path(name);
    std::fs::DirBuilder::new().mode(0o700).create(&directory).expect("a test must have room");
    for file in ["instance.json", "key"] {
        let copied = std::fs::copy(place.instance().join(file), directory.join(file));
        copied.expect("a started instance has both");
    }
    directory
}

/// A command about the instance whose directory, or a copy of it, is `directory`.
fn command(directory: &Path, words: &[&str]) -> std::process::Command {
    let mut command = unisono(words);
    command.arg("--instance").arg(directory);
    command
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("it is there");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Both ends, own first, of the TCP connections of a process.
fn connections(pid: u32) -> BTreeSet<(SocketAddrV4, SocketAddrV4)> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs");
    let links = descriptors.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
    let inode = |link: PathBuf| Some(link.to_str()?.strip_prefix("socket:[")?.to_owned());
    let sockets: BTreeSet<String> =
        links.filter_map(inode).map(|rest| rest.trim_end_matches(']').to_owned()).collect();
    // The columns of proc_net(5): number, own end, far end, state, …, inode as the tenth. A row may
    // be read twice while others, of any process, come and go.
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("it runs");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let established = rows.filter(|row| row[3] == "01" && sockets.contains(row[9]));
    established.map(|row| (end(row[1]), end(row[2]))).collect()
}

/// An end as the kernel shows it: the address in the processor's order of bytes, then the port.
fn end(shown: &str) -> SocketAddrV4 {
    let (address, port) = shown.split_once(':').expect("an end has a port");
    let address = u32::from_str_radix(address, 16).expect("Linux shows 8 digits").to_ne_bytes();
    let port = u16::from_str_radix(port, 16).expect("Linux shows 4 digits");
    SocketAddrV4::new(Ipv4Addr::from(address), port)
}

/// The end at which somebody listens.
fn listening(address: &str) -> SocketAddrV4 {
    let end = address.strip_prefix("tcp:").expect("it listens by TCP");
    end.parse().expect("a host and a port")
}

#[test]
fn a_group_on_two_hosts_moves_every_byte_by_tcp() {
    // Proves: clients that listen on two hosts, neither that of the servers, with copies of the
    // instance's directory in two places, move every byte in every strategy and direction, while
    // their only connections are by TCP: two to each server and one to each other member, each at
    // the host that it chose, and nobody makes a socket file.
    let place = place_of(2);
    let copies = [copy(&place, "first"), copy(&place, "second")];
    let home = |at: usize| Home { instance: &copies[at], host: Some(HOSTS[at]) };
    let homes = [home(0), home(1), home(1), home(0)];
    let mut clients = group_of(&homes);
    for (number, case) in ENDLESS.into_iter().enumerate() {
        let case = Case { repeat: 2, ..case };
        clients.iter_mut().for_each(|client| client.order(&case, &format!("file-{number}")));
        for client in &clients {
            client.answer().unwrap_or_else(|refusal| panic!("{case:?}: {refusal:?}"));
        }
    }
    let servers: Vec<SocketAddrV4> =
        place.status().iter().map(|one| listening(one["address"].as_str().unwrap())).collect();
    for (rank, client) in clients.iter().enumerate() {
        let found = connections(client.pid());
        // To the servers: one of the program, and one of the group that exchanges data.
        for server in &servers {
            let calls = found.iter().filter(|(_, far)| far == server).count();
            assert_eq!(calls, 2, "client {rank} to {server}: {found:?}");
        }
        assert_eq!(found.len(), 2 * 2 + 3, "client {rank}: {found:?}");
        let is_at =
            |end: &SocketAddrV4, rank: usize| end.ip().to_string() == homes[rank].host.unwrap();
        for called in 0..rank {
            assert!(found.iter().any(|(_, far)| is_at(far, called)), "client {rank} to {called}");
        }
        let callers = found.iter().filter(|(own, _)| is_at(own, rank)).count();
        assert_eq!(callers, 3 - rank, "client {rank} is called by those of higher rank");
    }
    for directory in &copies {
        assert_eq!(names(directory), ["instance.json", "key"]);
    }
    assert_eq!(names(&place.instance().join("clients")), [""; 0]);
    let sockets = names(&place.instance()).into_iter().filter(|name| name.ends_with(".sock"));
    assert_eq!(sockets.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_bench_from_another_host_checks_every_byte() {
    // Proves: with a copy of the directory, bench measures servers of another host in every
    // strategy and direction, with clients at the host named, or without one at the address that
    // reaches the servers; so do the other commands; the servers keep nothing. What it cannot know
    // of the servers' processes it does not tell.
    let place = place_of(2);
    let copied = copy(&place, "copy");
    for host in [Some(HOSTS[0]), None] {
        let words = "bench --json --size 768KiB --clients 4 --repeat 2 --block 64KiB \
                     --pattern rbc,wbc,wcn --record 48,8KiB";
        let mut bench = command(&copied, &words.split_whitespace().collect::<Vec<_>>());
        if let Some(host) = host {
            bench.args(["--client-host", host]);
        }
        let report = run(bench).done().json();
        let rows = report["results"].as_array().unwrap();
        assert_eq!(rows.len(), 3 * 2 * 3);
        for row in rows {
            assert_eq!((&row["verified"], &row["servers"]), (&true.into(), &2.into()), "{row}");
            assert!(row["client_peak_bytes"].as_u64() > Some(0), "{row}");
            assert!(row.get("server_peak_bytes").is_none(), "{row}");
        }
    }
    assert_eq!(names(&copied), ["instance.json", "key"]);
    let (content, local) = (bytes(300_000), place.file("local", &bytes(300_000)));
    run(command(&copied, &["put", local.to_str().unwrap(), "from afar"])).done();
    assert_eq!(place.files(), ["from afar"]);
    assert!(run(command(&copied, &["get", "from afar", "-"])).done().output == content);
    run(command(&copied, &["status"])).done();
    place.assert_nothing_held();
}

#[test]
fn a_bench_of_its_own_servers_by_tcp_checks_every_byte() {
    // Proves: bench --tcp measures every strategy with servers and clients that listen by TCP, on
    // one host and on two, and leaves nothing.
    let place = Place::new();
    for host in [None, Some(HOSTS[1])] {
        let words = "bench --json --size 1MiB --clients 3 --servers 2 --repeat 1 --record 8 \
                     --pattern rbc,wcb --tcp localhost";
        let mut bench = unisono(&words.split_whitespace().collect::<Vec<_>>());
        bench.arg("--directory").arg(place.path(""));
        if let Some(host) = host {
            bench.args(["--client-host", host]);
        }
        let report = run(bench).done().json();
        for row in report["results"].as_array().unwrap() {
            assert_eq!(row["verified"], true, "{row}");
            assert!(row["server_peak_bytes"].as_u64() > Some(0), "{row}");
        }
    }
    assert_eq!(names(&place.path("")), [""; 0]);
}

#[test]
fn clients_on_two_hosts_learn_which_of_them_was_killed() {
    // Proves: in every strategy and direction, when client 2 of 4 is killed in mid-collective,
    // those on its host and on the others fail with its number and the code 5, and the servers
    // hold nothing any more.
    let place = place_of(2);
    let copied = copy(&place, "copy");
    let home = |host| Home { instance: &copied, host: Some(host) };
    for (number, case) in ENDLESS.iter().enumerate() {
        let homes = [HOSTS[0], HOSTS[1], HOSTS[1], SERVERS].map(home);
        let clients = group_of(&homes);
        others_learn_of_client_2(&place, clients, case, &format!("killed-{number}"));
    }
    assert_eq!(place.files(), [""; 0], "client 0 removes the file of a failed case");
}

#[test]
fn a_bench_from_another_host_names_the_client_that_was_killed() {
    // Proves: it ends with code 5 and the number of that client, leaves no process and no file, and
    // the next one succeeds.
    let place = place_of(2);
    let copied = copy(&place, "copy");
    let words = "bench --clients 4 --pattern wbc --record 8 --size 16MiB --repeat 1000000 \
                 --strategy disk-directed --block 256KiB --client-host 127.0.0.2";
    let bench = Running::start(command(&copied, &words.split_whitespace().collect::<Vec<_>>()));
    until_moving(&place, 32 << 20);
    let clients = children_of(bench.pid(), "rank");
    assert_eq!(clients.len(), 4);
    signal(clients[3], rustix::process::Signal::KILL);
    bench.end().failed(COLLECTIVE, &["client 3 "]);
    clients.into_iter().for_each(gone);
    place.assert_nothing_held();
    assert_eq!(place.files(), [""; 0]);
    let words = ["bench", "--size", "1MiB", "--repeat", "1", "--clients", "2"];
    run(command(&copied, &words)).done();
}

#[test]
fn a_copy_says_what_is_wrong_with_it() {
    // Proves: with a copy, a key that is open to others, missing, or another's is refused with code
    // 3 before or instead of any transfer; stop, which can only end processes of its own machine,
    // says so, and the servers go on.
    let place = place_of(1);
    let copied = copy(&place, "copy");
    let key = copied.join("key");
    let named = key.to_str().unwrap();
    let small = ["bench", "--size", "1MiB", "--clients", "2", "--repeat", "1"];
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    run(command(&copied, &small)).refused(NO_SERVER, &[named, "644"]);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&key, [7; 32]).unwrap();
    run(command(&copied, &small)).refused(NO_SERVER, &["server 0"]);
    std::fs::remove_file(&key).unwrap();
    run(command(&copied, &small)).refused(NO_SERVER, &[named]);
    std::fs::copy(place.instance().join("key"), &key).unwrap();
    run(command(&copied, &["stop"])).refused(USAGE, &["server 0", copied.to_str().unwrap()]);
    run(command(&copied, &["bench", "--size", "1MiB", "--limits"]))
        .refused(USAGE, &["disk", "server 0"]);
    run(command(&copied, &small)).done();
    assert_eq!(place.run(&["stop", "--json"]).done().json()["stopped"], 1);
    run(command(&copied, &["stop"])).code(DONE);
}

#[test]
fn a_host_that_cannot_be_is_refused() {
    // Proves: a host that is not of this machine, that stands for all of them, or that cannot be
    // because servers use socket files, is named in three parts, and no process is left.
    let place = Place::new();
    let alone = |words: &str| {
        let mut bench = unisono(&["bench", "--size", "1MiB", "--servers", "1", "--directory"]);
        bench.arg(place.path("")).args(words.split(' '));
        run(bench)
    };
    // 192.0.2.0/24 is for documentation (RFC 5737): no machine has such an address.
    let there = "192.0.2.1";
    alone(&format!("--tcp {there}")).refused(USAGE, &["cannot listen", there]);
    alone("--tcp 0.0.0.0").refused(USAGE, &["0.0.0.0", "all addresses"]);
    alone(&format!("--tcp {SERVERS} --client-host {there}"))
        .refused(USAGE, &["cannot listen", there]);
    alone(&format!("--tcp {SERVERS} --client-host 0.0.0.0")).refused(USAGE, &["all addresses"]);
    alone(&format!("--client-host {SERVERS}")).refused(USAGE, &["--tcp"]);
    assert_eq!(names(&place.path("")), [""; 0]);
    place.start(&["--servers", "1"]);
    let words = ["bench", "--size", "1MiB", "--client-host", SERVERS];
    place.run(&words).refused(USAGE, &["socket files"]);
    let status: Vec<Value> = place.status();
    assert_eq!(status[0]["clients"], 0);
    place.run(&["stop"]).done();
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
}
