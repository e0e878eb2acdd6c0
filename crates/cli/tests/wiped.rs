//! Proves: while servers are killed and their data directories removed, one after the other, and
//! empty ones are filled in their places, programs that wait for lost servers go on over the same
//! connections: one that writes and reads by itself, and several that make collective calls.
//! Mirrored files, and files with parity, lose nothing that a sync has acknowledged, and server 0
//! has its names again. The only error that a program meets is that writes are lost which no sync
//! had acknowledged; it never reads others' values.
//!
//! `UNISONO_ROUNDS` sets the number of servers that are lost.

use crate::mirrored::{data, serve_again, sum, until_all_run};
use crate::rebuilt::until_copied;
use crate::refilled::to_fill;
use crate::support;
use client::{
    ClientId, Connection, ConnectionOptions, Dimension, Distribution, ErrorKind, File, Group,
    Instance, OwnPart, UserError,
};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;
use support::{Place, Running, gone, signal, until};

/// Rounds of the suite.
const ROUNDS: u64 = 3;

const SERVERS: u32 = 4;

/// Size of a unit that is written at once.
const UNIT: usize = 150_000;

/// Number of units of a file.
const UNITS: usize = 40;

const MEMBERS: u32 = 3;

/// Ends the loads when dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes that version `version` of a unit, or of a whole file, has from `offset` on.
fn bytes_of(version: u64, offset: usize, length: usize) -> Vec<u8> {
    let byte = |at: usize| match version {
        0 => 0,
        _ => (version.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 7 * 8)) as u8 ^ at as u8,
    };
    (offset..offset + length).map(byte).collect()
}

/// Versions that bytes may have: the one that a sync has acknowledged, and those written since.
#[derive(Clone, Default)]
struct Versions(BTreeSet<u64>);

impl Versions {
    fn written(&mut self, version: u64) {
        if self.0.is_empty() {
            self.0.insert(0);
        }
        self.0.insert(version);
    }

    /// Checks that each byte is one of a version.
    fn check(&self, found: &[u8], offset: usize, what: &str) {
        let versions = if self.0.is_empty() { BTreeSet::from([0]) } else { self.0.clone() };
        let all = versions.iter().map(|version| bytes_of(*version, offset, found.len()));
        let all: Vec<Vec<u8>> = all.collect();
        let strange = (0..found.len()).find(|at| all.iter().all(|one| one[*at] != found[*at]));
        if let Some(at) = strange {
            panic!("byte {} of {what} is {}, of none of {versions:?}", offset + at, found[at]);
        }
    }

    fn synced(&mut self, version: u64) {
        self.0 = BTreeSet::from([version]);
    }
}

/// Connects as a program that waits for lost servers.
fn connect(instance: &Instance) -> Connection {
    let (timeout, reconnect) = (Duration::from_secs(30), Some(Duration::from_secs(120)));
    let options = ConnectionOptions { timeout, reconnect, ..ConnectionOptions::default() };
    Connection::open_with(instance, options).expect("all servers are there")
}

/// Tells if writes are lost that no sync had acknowledged. No other error may reach a program that
/// waits for lost servers.
fn are_writes_lost(outcome: Result<(), UserError>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(error) => {
            let is_loss = error.cause.contains("and no sync had stored may be lost");
            assert!(is_loss && error.kind == ErrorKind::ServerLeft, "{error}");
            true
        }
    }
}

/// A client that writes units of one file by itself, over one connection.
struct Alone {
    file: File,
    units: Vec<Versions>,
    version: u64,
}

impl Alone {
    fn new(instance: &Instance) -> Self {
        let file = connect(instance).open_or_create("alone").expect("it can be created");
        file.grow((UNIT * UNITS) as u64).expect("it has room");
        Self { file, units: vec![Versions::default(); UNITS], version: 0 }
    }

    /// Writes and reads until `is_over`, or until writes are lost.
    fn work(&mut self, is_over: &AtomicBool) -> Result<(), UserError> {
        self.check()?;
        // What was not synced is written again.
        let unsure: Vec<usize> = (0..UNITS).filter(|unit| self.units[*unit].0.len() != 1).collect();
        self.write(&unsure)?;
        while !is_over.load(Ordering::Relaxed) {
            let first = self.version as usize * 7 % UNITS;
            let some: Vec<usize> = (first..first + 5).map(|unit| unit % UNITS).collect();
            self.write(&some)?;
            if self.version.is_multiple_of(3) {
                self.check()?;
            }
        }
        Ok(())
    }

    fn write(&mut self, units: &[usize]) -> Result<(), UserError> {
        self.version += 1;
        for unit in units {
            self.units[*unit].written(self.version);
            let content = bytes_of(self.version, 0, UNIT);
            let start = (unit * UNIT) as u64;
            // As one write, and as many small ones, which other code carries out.
            match (self.version + *unit as u64) % 4 {
                0 => {
                    for (place, small) in content.chunks(3000).enumerate() {
                        self.file.write_at(small, start + (place * 3000) as u64)?;
                    }
                }
                _ => self.file.write_at(&content, start)?,
            }
        }
        self.file.flush(true)?;
        units.iter().for_each(|unit| self.units[*unit].synced(self.version));
        Ok(())
    }

    fn check(&self) -> Result<(), UserError> {
        let mut found = vec![0; UNIT];
        for (unit, versions) in self.units.iter().enumerate() {
            let length = self.file.read_at(&mut found, (unit * UNIT) as u64)?;
            versions.check(&found[..length], 0, &format!("unit {unit}"));
            assert_eq!(length, UNIT, "unit {unit}");
        }
        Ok(())
    }
}

/// The part of a member of the whole file, dealt by a rule.
fn part(rule: Dimension, rank: u32) -> OwnPart {
    let distribution = Distribution {
        shape: vec![(UNIT * UNITS) as u64 / 8],
        record_bytes: 8,
        dimensions: vec![rule],
        grid: vec![MEMBERS],
        clients: MEMBERS,
    };
    OwnPart::Dealt { distribution, client: ClientId(rank), file_offset: 0 }
}

/// Means of the members to meet without the servers, as programs have MPI.
struct Together {
    barrier: Barrier,
    brought: Mutex<Vec<Vec<u8>>>,
    is_over: AtomicBool,
    are_some_lost: AtomicBool,
    done: AtomicU64,
}

impl Together {
    fn new() -> Self {
        Self {
            barrier: Barrier::new(MEMBERS as usize),
            brought: Mutex::new(vec![Vec::new(); MEMBERS as usize]),
            is_over: AtomicBool::new(false),
            are_some_lost: AtomicBool::new(false),
            done: AtomicU64::new(0),
        }
    }

    fn gather(&self, rank: u32, own: &[u8]) -> Vec<Vec<u8>> {
        self.brought.lock().expect("nobody panics")[rank as usize] = own.to_vec();
        self.barrier.wait();
        let all = self.brought.lock().expect("nobody panics").clone();
        self.barrier.wait();
        all
    }
}

/// One member of a program that writes a file version by version, and reads each one that is synced
/// in another distribution.
fn member(instance: &Instance, rank: u32, all: &Together, is_over: &AtomicBool) {
    let connection = connect(instance);
    let file = connection.open_or_create("rows/together").expect("it can be created");
    let mut group = None;
    for version in 1.. {
        if rank == 0 {
            all.is_over.store(is_over.load(Ordering::Relaxed), Ordering::Relaxed);
            all.are_some_lost.store(false, Ordering::Relaxed);
        }
        all.barrier.wait();
        if all.is_over.load(Ordering::Relaxed) {
            return;
        }
        // As a program that opens a file for each few versions.
        if version % 5 == 1 {
            let gather = |own: &[u8]| Ok::<_, Infallible>(all.gather(rank, own));
            let formed = Group::form_with(&connection, rank, MEMBERS, gather);
            group = Some(formed.expect("lost servers are waited for"));
        }
        let group = group.as_ref().expect("the first version forms one");
        let whole = bytes_of(version, 0, UNIT * UNITS);
        let own: Vec<u8> = whole
            .chunks(8)
            .enumerate()
            .filter(|(record, _)| *record as u64 / 11 % u64::from(MEMBERS) == u64::from(rank))
            .flat_map(|(_, record)| record.to_vec())
            .collect();
        let written = group.write(&file, &part(Dimension::Cyclic(11), rank), &own);
        if are_writes_lost(written.and_then(|_| file.flush(true))) {
            all.are_some_lost.store(true, Ordering::Relaxed);
        }
        all.barrier.wait();
        let records = whole.len().div_ceil(8).div_ceil(MEMBERS as usize);
        let start = (rank as usize * records * 8).min(whole.len());
        let expected = &whole[start..(start + records * 8).min(whole.len())];
        let mut found = vec![0; expected.len()];
        let read = group.read(&file, &part(Dimension::Block, rank), &mut found);
        read.expect("lost servers are waited for");
        if !all.are_some_lost.load(Ordering::Relaxed) {
            assert!(found == *expected, "rank {rank} reads another version than {version}");
            all.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Kills a server and removes its data, starts it again without its directory, and waits until a
/// new one is filled.
fn lose(place: &Place, server: u32, servers: &mut [Option<Running>]) {
    match servers[server as usize].take() {
        Some(running) => {
            signal(running.pid(), Signal::KILL);
            running.end();
        }
        None => {
            let pid = place.server_pids()[server as usize];
            signal(pid, Signal::KILL);
            gone(pid);
        }
    }
    fs::remove_dir_all(data(place, server)).expect("a test may remove it");
    servers[server as usize] = Some(serve_again(place, server, &["--refill"]));
    until_all_run(place);
    until("all is filled again", || {
        let mut all = 0..SERVERS as usize;
        let is_whole = all.all(|server| to_fill(place, server) == Some(0));
        (is_whole && sum(place, "files_behind") == 0).then_some(())
    });
    until_copied(place, &(1..SERVERS).collect::<Vec<_>>());
}

#[test]
fn programs_go_on_when_any_server_is_lost() {
    let rounds = std::env::var("UNISONO_ROUNDS").ok().and_then(|it| it.parse().ok());
    let place = Place::new();
    place.start(&["--servers", &SERVERS.to_string(), "--protect", "mirror"]);
    place.run(&["mkdir", "rows"]).done();
    place.run(&["layout", "set", "rows", "--protect", "parity"]).done();
    let instance = Instance::at(place.instance());
    let (is_over, all) = (AtomicBool::new(false), Together::new());
    let mut alone = Alone::new(&instance);
    let mut servers: Vec<Option<Running>> = (0..SERVERS).map(|_| None).collect();
    std::thread::scope(|scope| {
        // Also when this thread panics.
        let _ends = Ends(&is_over);
        let independent = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                are_writes_lost(alone.work(&is_over));
            }
        });
        let members = (0..MEMBERS).map(|rank| {
            let (instance, all, is_over) = (&instance, &all, &is_over);
            scope.spawn(move || member(instance, rank, all, is_over))
        });
        let mut loads: Vec<_> = members.collect();
        loads.push(independent);
        let mut random = 12345_u64;
        for _ in 0..rounds.unwrap_or(ROUNDS) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_millis(200 + (random >> 33) % 600));
            // Without its load the test would show nothing; the others wait for a member for ever.
            if loads.iter().any(|load| load.is_finished()) {
                eprintln!("a program has ended");
                std::process::abort();
            }
            lose(&place, (random >> 40) as u32 % SERVERS, &mut servers);
        }
    });
    let done = all.done.load(Ordering::Relaxed);
    assert!(alone.version > 5 && done > 2, "too little was written: {} and {done}", alone.version);
    are_writes_lost(alone.work(&AtomicBool::new(true)));
    alone.work(&AtomicBool::new(true)).expect("all servers are there");
    let sound = place.run(&["scrub", "--json"]).done().json();
    assert_eq!((&sound["damaged"], &sound["damaged_copies"]), (&json!([]), &json!([])), "{sound}");
    drop(alone);
    place.run(&["stop"]).done();
    servers.into_iter().flatten().for_each(|running| _ = running.end());
}
