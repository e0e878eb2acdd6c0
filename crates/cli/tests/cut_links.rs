//! Proves: when all packets between two hosts are dropped in the middle of a transfer, each process
//! that waits for the other side fails within bounded time and names who is missing, and no other.
//! The hosts are network namespaces, connected by a bridge in another one.

use crate::support;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::{
    BenchClient, COLLECTIVE, Case, ENDLESS, Home, NO_SERVER, Place, group_started_by, run,
    some_at_once, until,
};

/// Time-out of the clients in seconds, and how much longer an error may take.
const TIMEOUT_S: &str = "4";
const LIMIT: Duration = Duration::from_secs(4 + 10);

/// Hosts: servers 0 and 1, clients 0 and 1, clients 2 and 3.
const HOSTS: usize = 4;

/// Network namespaces that a bridge connects; removed when dropped.
struct Hosts(String);

impl Hosts {
    /// Makes the hosts; `None`, with a note, if this process may not.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let hosts = Self(format!("unisono-{}-{number}", std::process::id()));
        let bridge = hosts.bridge();
        let mut steps = vec![
            format!("netns add {bridge}"),
            format!("-n {bridge} link add br0 type bridge"),
            format!("-n {bridge} link set br0 up"),
        ];
        for number in 0..HOSTS {
            let (host, address) = (hosts.name(number), Self::address(number));
            steps.extend([
                format!("netns add {host}"),
                format!("-n {bridge} link add p{number} type veth peer name e0 netns {host}"),
                format!("-n {bridge} link set p{number} master br0 up"),
                format!("-n {host} address add {address}/24 dev e0"),
                format!("-n {host} link set e0 up"),
                format!("-n {host} link set lo up"),
            ]);
        }
        if steps.iter().all(|step| ip(step)) {
            return Some(hosts);
        }
        println!("skipped: this process may not make network namespaces");
        None
    }

    fn bridge(&self) -> String {
        format!("{}-bridge", self.0)
    }

    fn name(&self, host: usize) -> String {
        format!("{}-{host}", self.0)
    }

    fn address(host: usize) -> String {
        format!("10.213.7.{}", host + 1)
    }

    /// Drops all packets from and to a host, or no longer.
    fn cut(&self, host: usize, is_cut: bool) {
        let state = if is_cut { "down" } else { "up" };
        assert!(ip(&format!("-n {} link set p{host} {state}", self.bridge())));
    }

    /// A command that runs on a host.
    fn on(&self, host: usize, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there.args(["netns", "exec", &self.name(host)]).arg(command.get_program());
        there.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => there.env(name, value),
                None => there.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            there.current_dir(directory);
        }
        there
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        (0..HOSTS).for_each(|host| _ = ip(&format!("netns delete {}", self.name(host))));
        ip(&format!("netns delete {}", self.bridge()));
    }
}

fn ip(words: &str) -> bool {
    let done = Command::new("ip").args(words.split(' ')).output();
    done.is_ok_and(|done| done.status.success())
}

/// An instance with a server on each of the first two hosts, and four clients on the others.
struct Site {
    place: Place,
    clients: Vec<BenchClient>,
}

impl Site {
    fn new(hosts: &Hosts) -> Self {
        let place = Place::new();
        let [first, second] = [0, 1].map(Hosts::address);
        place.file("hosts", format!("{first}\n{second}\n").as_bytes());
        let launcher = format!(
            "#!/bin/sh\nhost=$1; shift\ncase $host in {first}) n=0;; {second}) n=1;; esac\ncd / && \
             exec ip netns exec {}-$n env TMPDIR=%/server-$n \"$@\"\n",
            hosts.0
        );
        let launcher = place.script("launcher", &launcher);
        for server in [0, 1] {
            std::fs::create_dir(place.path(&format!("server-{server}"))).expect("it has room");
        }
        let mut start = place.command(&["start", "--hostfile", "hosts"]);
        start.arg("--launcher").arg(launcher);
        run(hosts.on(0, &start)).done();
        let instance = place.instance();
        let addresses: Vec<String> = (0..HOSTS).map(Hosts::address).collect();
        let homes: Vec<Home<'_>> = [2, 2, 3, 3]
            .map(|host| Home { instance: &instance, host: Some(&addresses[host]) })
            .into();
        let start = |rank: usize, client: &mut Command| {
            client.env("UNISONO_TIMEOUT", TIMEOUT_S);
            *client = hosts.on([2, 2, 3, 3][rank], client);
        };
        let clients = group_started_by(&homes, &start);
        Self { place, clients }
    }

    /// Begins a transfer at all clients, and returns when bytes move.
    fn begin(&mut self, hosts: &Hosts, case: &Case) {
        self.clients.iter_mut().for_each(|client| client.order(case, "cut"));
        let status = self.place.command(&["status", "--json"]);
        let moved = || {
            let servers = run(hosts.on(0, &status)).done().json()["servers"].clone();
            let servers = servers.as_array().cloned().unwrap_or_default();
            servers.iter().filter_map(|one| one["bytes_moved"].as_u64()).sum::<u64>()
        };
        until("bytes move", || (moved() > 2 * case.file_bytes).then_some(()));
    }

    fn end(self, hosts: &Hosts) {
        drop(self.clients);
        run(hosts.on(0, &self.place.command(&["stop"]))).done();
    }
}

/// Proves of one transfer that its clients fail in time with one of these names, and none of the
/// others, and this code.
#[track_caller]
fn clients_name(
    site: &Site,
    ranks: &[usize],
    (names, others): (&[&str], &[&str]),
    code: i32,
    case: &Case,
) {
    let begun = Instant::now();
    for rank in ranks {
        let refusal = site.clients[*rank].answer().expect_err("the transfer cannot be completed");
        assert!(begun.elapsed() < LIMIT, "{rank}, {case:?}: {:?}", begun.elapsed());
        assert_eq!(refusal.code, i64::from(code), "{rank}, {case:?}: {refusal:?}");
        let cause = &refusal.cause;
        assert!(names.iter().any(|name| cause.contains(name)), "{rank}, {case:?}: {cause}");
        assert!(!others.iter().any(|name| cause.contains(name)), "{rank}, {case:?}: {cause}");
    }
}

#[test]
fn a_server_behind_a_cut_link_is_named() {
    some_at_once(ENDLESS.iter(), |case| {
        let Some(hosts) = Hosts::new() else { return };
        let mut site = Site::new(&hosts);
        site.begin(&hosts, case);
        hosts.cut(1, true);
        let names: (&[&str], &[&str]) =
            (&["server 1"], &["server 0", "rank", "client 0", "client 1", "client 2", "client 3"]);
        clients_name(&site, &[0, 1, 2, 3], names, NO_SERVER, case);
        hosts.cut(1, false);
        site.end(&hosts);
    });
}

#[test]
fn clients_behind_a_cut_link_are_named() {
    some_at_once(ENDLESS.iter(), |case| {
        let Some(hosts) = Hosts::new() else { return };
        let mut site = Site::new(&hosts);
        site.begin(&hosts, case);
        hosts.cut(3, true);
        let names: (&[&str], &[&str]) = (
            &["client 2", "client 3", "rank 2", "rank 3", "ranks 2 and 3"],
            &["server 0", "server 1", "client 0", "client 1", "rank 0", "rank 1"],
        );
        clients_name(&site, &[0, 1], names, COLLECTIVE, case);
        hosts.cut(3, false);
        site.end(&hosts);
    });
}
