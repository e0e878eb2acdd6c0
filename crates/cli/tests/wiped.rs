//! Proves: while servers are killed and their data directories removed, one after the other, and
//! empty ones are filled in their places, mirrored files lose nothing that a sync has acknowledged,
//! whoever writes them: one client, or several by collective calls. Others' values are never read.
//!
//! `UNISONO_ROUNDS` sets the number of servers that are lost.

use crate::mirrored::{data, serve_again, sum, until_all_run};
use crate::refilled::to_fill;
use crate::support;
use client::{
    ClientId, Connection, ConnectionOptions, Dimension, Distribution, File, Group, Instance,
    OwnPart, UserError,
};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

fn connect(instance: &Instance) -> Result<Connection, UserError> {
    let timeout = Duration::from_secs(10);
    Connection::open_with(instance, ConnectionOptions { timeout, ..ConnectionOptions::default() })
}

fn pause() {
    std::thread::sleep(Duration::from_millis(30));
}

/// A client that writes units of one file by itself.
struct Alone {
    units: Vec<Versions>,
    version: u64,
}

impl Alone {
    /// Writes and reads until `is_over`, or until a call fails.
    fn work(&mut self, instance: &Instance, is_over: &AtomicBool) -> Result<(), UserError> {
        let connection = connect(instance)?;
        let file = connection.open_or_create("alone")?;
        file.grow((UNIT * UNITS) as u64)?;
        self.check(&file)?;
        // What was not synced over another connection is written again.
        let unsure: Vec<usize> = (0..UNITS).filter(|unit| self.units[*unit].0.len() != 1).collect();
        self.write(&file, &unsure)?;
        while !is_over.load(Ordering::Relaxed) {
            let first = self.version as usize * 7 % UNITS;
            let some: Vec<usize> = (first..first + 5).map(|unit| unit % UNITS).collect();
            self.write(&file, &some)?;
            if self.version.is_multiple_of(3) {
                self.check(&file)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, file: &File, units: &[usize]) -> Result<(), UserError> {
        self.version += 1;
        for unit in units {
            self.units[*unit].written(self.version);
            let content = bytes_of(self.version, 0, UNIT);
            file.write_at(&content, (unit * UNIT) as u64)?;
        }
        file.flush(true)?;
        units.iter().for_each(|unit| self.units[*unit].synced(self.version));
        Ok(())
    }

    fn check(&self, file: &File) -> Result<(), UserError> {
        let mut found = vec![0; UNIT];
        for (unit, versions) in self.units.iter().enumerate() {
            let length = file.read_at(&mut found, (unit * UNIT) as u64)?;
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

/// One member writes its part of a version of the file, with all others, and reads all of it.
fn member(
    instance: &Instance,
    (version, rank): (u64, u32),
    all: &Barrier,
) -> Result<(), UserError> {
    let write = || {
        let connection = connect(instance)?;
        let group = Group::form(&connection, &format!("together-{version}"), rank, MEMBERS)?;
        let file = connection.open_or_create("together")?;
        let whole = bytes_of(version, 0, UNIT * UNITS);
        let own: Vec<u8> = whole
            .chunks(8)
            .enumerate()
            .filter(|(record, _)| *record as u64 / 11 % u64::from(MEMBERS) == u64::from(rank))
            .flat_map(|(_, record)| record.to_vec())
            .collect();
        group.write(&file, &part(Dimension::Cyclic(11), rank), &own)?;
        file.flush(true)?;
        group.barrier()?;
        let records = whole.len().div_ceil(8).div_ceil(MEMBERS as usize);
        let start = (rank as usize * records * 8).min(whole.len());
        let expected = &whole[start..(start + records * 8).min(whole.len())];
        let mut found = vec![0; expected.len()];
        group.read(&file, &part(Dimension::Block, rank), &mut found)?;
        assert!(found == *expected, "rank {rank} reads another version than {version}");
        Ok(())
    };
    let written = write();
    all.wait();
    written
}

/// Clients that write a file together, version by version.
fn together(instance: &Instance, is_over: &AtomicBool, done: &AtomicU64) {
    let mut versions = Versions::default();
    for version in 1.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        versions.written(version);
        let barrier = Barrier::new(MEMBERS as usize);
        let all_wrote = std::thread::scope(|scope| {
            let barrier = &barrier;
            let start = |rank| scope.spawn(move || member(instance, (version, rank), barrier));
            let members: Vec<_> = (0..MEMBERS).map(start).collect();
            members.into_iter().all(|it| it.join().expect("no member panics").is_ok())
        });
        if all_wrote {
            versions.synced(version);
            done.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        // Some of it may be there.
        let read = || {
            let connection = connect(instance)?;
            let file = connection.open_or_create("together")?;
            let mut found = vec![0; UNIT * UNITS];
            let length = file.read_at(&mut found, 0)?;
            Ok::<_, UserError>(found[..length].to_vec())
        };
        while !is_over.load(Ordering::Relaxed) {
            match read() {
                Ok(found) => {
                    versions.check(&found, 0, "the common file");
                    break;
                }
                Err(_) => pause(),
            }
        }
    }
}

/// Kills a server and removes its data, starts it again with an empty directory, and waits until
/// that is filled. Its catalogue stays: one that is lost is made again while nothing runs.
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
    let directory = data(place, server);
    let is_kept = |name: &str| server == 0 && name == "catalogue";
    for entry in fs::read_dir(&directory).expect("it is there").flatten() {
        if !is_kept(&entry.file_name().to_string_lossy()) {
            let path: PathBuf = entry.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("a test may remove it");
        }
    }
    servers[server as usize] = Some(serve_again(place, server, &["--refill"]));
    until_all_run(place);
    until("all is filled again", || {
        let mut all = 0..SERVERS as usize;
        let is_whole = all.all(|server| to_fill(place, server) == Some(0));
        (is_whole && sum(place, "files_behind") == 0).then_some(())
    });
}

#[test]
fn nothing_is_lost_with_any_server() {
    let rounds = std::env::var("UNISONO_ROUNDS").ok().and_then(|it| it.parse().ok());
    let place = Place::new();
    place.start(&["--servers", &SERVERS.to_string(), "--protect", "mirror"]);
    let instance = Instance::at(place.instance());
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut alone = Alone { units: vec![Versions::default(); UNITS], version: 0 };
    let mut servers: Vec<Option<Running>> = (0..SERVERS).map(|_| None).collect();
    std::thread::scope(|scope| {
        // Also when this thread panics.
        let _ends = Ends(&is_over);
        let loads = [
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // A server was lost.
                    if alone.work(&instance, &is_over).is_err() {
                        pause();
                    }
                }
            }),
            scope.spawn(|| together(&instance, &is_over, &done)),
        ];
        let mut random = 12345_u64;
        for _ in 0..rounds.unwrap_or(ROUNDS) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_millis(200 + (random >> 33) % 600));
            if loads.iter().any(|load| load.is_finished()) {
                break;
            }
            lose(&place, (random >> 40) as u32 % SERVERS, &mut servers);
        }
    });
    assert!(alone.version > 5 && done.load(Ordering::Relaxed) > 2, "too little was written");
    alone.work(&instance, &AtomicBool::new(true)).expect("all servers are there");
    let sound = place.run(&["scrub", "--json"]).done().json();
    assert_eq!((&sound["damaged"], &sound["damaged_copies"]), (&json!([]), &json!([])), "{sound}");
    place.run(&["stop"]).done();
    servers.into_iter().flatten().for_each(|running| _ = running.end());
}
