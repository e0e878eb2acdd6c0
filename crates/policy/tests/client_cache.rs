//! Proves: whatever clients read, write and evict, caches of all cooperations give out the last
//! written version of each line only. They never exceed their sizes. Under centrally coordinated
//! caching no line is in two global parts, under globally managed caching a line has one holder,
//! after a write no other copy is valid, and the recirculation of a last copy ends. All short
//! sequences of operations on tiny caches are tried, and long random ones on larger caches.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use policy::{
    ClientCache, ClientCacheSpec, Cooperation, Directory, LineFate, LineKey, LineSource, Lru,
    Organisation, Stored, WriteMiss, WritePolicy,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, PeerId};

const COOPERATIONS: [Cooperation; 5] = [
    Cooperation::Base,
    Cooperation::GreedyForwarding,
    Cooperation::CentrallyCoordinated,
    Cooperation::GloballyManaged,
    Cooperation::NChance,
];

#[derive(Clone, Copy, Debug)]
enum Operation {
    Read { client: u32, line: u64 },
    Write { client: u32, line: u64 },
    Leave { client: u32 },
}

/// Caches of some clients and of one server, with the version of each copy. A client tells the
/// server of a dropped line only sometimes, as with a message that is under way.
struct System {
    spec: ClientCacheSpec,
    directory: Directory,
    clients: BTreeMap<PeerId, Client>,
    server: Lru<LineKey>,
    server_lines: usize,
    /// Version of each line at the server, in its cache or on its disk.
    stored: BTreeMap<LineKey, u64>,
    /// Last written version of each line.
    written: BTreeMap<LineKey, u64>,
    draws: u64,
    moves: u32,
}

struct Client {
    cache: ClientCache,
    versions: BTreeMap<LineKey, u64>,
}

fn key(line: u64) -> LineKey {
    (FileId(1), line)
}

impl System {
    fn new(spec: ClientCacheSpec, clients: u32, server_lines: usize) -> Self {
        spec.validate().unwrap();
        let mut directory = Directory::new(spec.cooperation, spec.chances);
        let client = || Client { cache: ClientCache::new(&spec), versions: BTreeMap::new() };
        let clients: BTreeMap<_, _> = (0..clients).map(|id| (PeerId(id), client())).collect();
        clients.keys().for_each(|id| directory.register(*id, spec.global_lines()));
        Self {
            spec,
            directory,
            clients,
            server: Lru::new(),
            server_lines,
            stored: BTreeMap::new(),
            written: BTreeMap::new(),
            draws: 7,
            moves: 0,
        }
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Read { client, line } => self.read(PeerId(client), key(line)),
            Operation::Write { client, line } => self.write(PeerId(client), key(line)),
            Operation::Leave { client } => self.leave(PeerId(client)),
        }
        self.check();
    }

    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.draws >> 33
    }

    fn version(&self, key: LineKey) -> u64 {
        self.stored.get(&key).copied().unwrap_or(0)
    }

    fn read(&mut self, reader: PeerId, key: LineKey) {
        let Some(client) = self.clients.get_mut(&reader) else { return };
        let got = match client.cache.touch(key) {
            true => client.versions[&key],
            false => {
                let version = self.fetch(reader, key);
                let is_last = self.directory.is_last_copy(reader, key);
                self.take_in(reader, key, version, is_last);
                version
            }
        };
        assert_eq!(got, self.written.get(&key).copied().unwrap_or(0), "{reader} read {key:?}");
    }

    /// The server's side of a read miss.
    fn fetch(&mut self, reader: PeerId, key: LineKey) -> u64 {
        self.recall(reader, key);
        loop {
            let in_server = self.server.contains(key);
            let source = self.directory.read(reader, key, in_server);
            let version = match source {
                LineSource::Reader => return self.clients[&reader].versions[&key],
                LineSource::ServerCache => {
                    self.server.touch(key);
                    self.version(key)
                }
                LineSource::Disk => {
                    self.put_in_server(key);
                    self.version(key)
                }
                LineSource::Client(holder) => {
                    assert_ne!(holder, reader);
                    match self.clients[&holder].versions.get(&key) {
                        Some(version) => *version,
                        None => {
                            self.directory.missing(holder, key);
                            continue;
                        }
                    }
                }
            };
            if self.directory.has_read(reader, key, source) {
                match source {
                    LineSource::Client(holder) => self.forget(holder, key),
                    LineSource::ServerCache | LineSource::Disk => {
                        self.server.remove(key);
                    }
                    LineSource::Reader => unreachable!("nothing moves from the reader to itself"),
                }
            } else if let LineSource::Client(holder) = source {
                self.clients.get_mut(&holder).unwrap().cache.is_shared(key);
            }
            return version;
        }
    }

    fn write(&mut self, writer: PeerId, key: LineKey) {
        let Some(client) = self.clients.get_mut(&writer) else { return };
        let new = self.written.values().sum::<u64>() + 1;
        let held = client.cache.touch(key);
        if self.spec.write == WritePolicy::Back
            && (held || self.spec.write_miss == WriteMiss::Allocate)
        {
            self.recall(writer, key);
            for stale in self.directory.own(writer, key) {
                self.forget(stale, key);
            }
            // Its own global copy goes with the right to write. The server keeps an obsolete one.
            self.forget(writer, key);
            self.take_in(writer, key, new, true);
            self.clients.get_mut(&writer).unwrap().cache.set_dirty(key, true);
        } else {
            let keeps = held || self.spec.write_miss == WriteMiss::Allocate;
            self.recall(writer, key);
            self.put_in_server(key);
            self.stored.insert(key, new);
            let stale = self.directory.write(writer, key, keeps);
            let keeps = keeps && !stale.contains(&writer);
            stale.into_iter().for_each(|stale| self.forget(stale, key));
            if keeps {
                self.take_in(writer, key, new, true);
            }
        }
        self.written.insert(key, new);
        for (id, client) in &self.clients {
            let valid = client.versions.get(&key).copied();
            assert!(*id == writer || valid.is_none(), "{id} has a copy after {writer} wrote");
            assert!(valid.is_none_or(|version| version == new));
        }
    }

    /// Has another owner write a line back. It keeps its copy.
    fn recall(&mut self, client: PeerId, key: LineKey) {
        if let Some(owner) = self.directory.other_owner(client, key) {
            self.write_back(owner, key, true);
        }
    }

    fn write_back(&mut self, owner: PeerId, key: LineKey, keeps: bool) {
        let version = self.clients[&owner].versions[&key];
        if self.directory.written_back(owner, key, keeps) {
            self.stored.insert(key, version);
            self.put_in_server(key);
        }
        self.clients.get_mut(&owner).unwrap().cache.set_dirty(key, false);
    }

    fn take_in(&mut self, client: PeerId, key: LineKey, version: u64, is_last: bool) {
        let own = self.clients.get_mut(&client).unwrap();
        own.versions.insert(key, version);
        let evicted = own.cache.insert(key, is_last);
        let Some(evicted) = evicted else { return };
        if evicted.is_dirty {
            // Written back first, then like any other line.
            self.write_back(client, evicted.key, true);
        }
        let draw = self.draw();
        let own = self.clients.get_mut(&client).unwrap();
        let version = own.versions.get(&evicted.key).copied();
        if !own.cache.holds(evicted.key) {
            own.versions.remove(&evicted.key);
        }
        if self.spec.cooperation != Cooperation::NChance
            && self.spec.cooperation != Cooperation::GloballyManaged
            && draw.is_multiple_of(3)
        {
            return;
        }
        match self.directory.evicted(client, evicted.key, evicted.chances, draw) {
            LineFate::Drop => {}
            LineFate::ToServer => {
                assert_eq!(version, Some(self.version(evicted.key)));
                self.put_in_server(evicted.key);
            }
            LineFate::ToClient(to, left) => {
                assert!(left <= self.spec.chances && to != client);
                self.moves += 1;
                let receiver = self.clients.get_mut(&to).unwrap();
                let dropped = receiver.cache.receive(evicted.key, left);
                receiver.versions.insert(evicted.key, version.unwrap());
                if let Some(dropped) = dropped {
                    receiver.versions.remove(&dropped);
                    self.directory.dropped(to, dropped);
                }
            }
        }
    }

    fn put_in_server(&mut self, key: LineKey) {
        self.server.insert(key);
        while self.server.len() > self.server_lines {
            let evicted = self.server.oldest().unwrap();
            self.server.remove(evicted);
            let version = self.version(evicted);
            if let Some(Stored { client: to, replaces }) = self.directory.evicted_by_server(evicted)
            {
                let client = self.clients.get_mut(&to).unwrap();
                assert!(client.cache.store(evicted, replaces));
                if let Some(replaced) = replaces
                    && !client.cache.holds(replaced)
                {
                    client.versions.remove(&replaced);
                }
                client.versions.insert(evicted, version);
                self.directory.carried_out(to, self.directory.last_stored());
            }
        }
    }

    fn forget(&mut self, client: PeerId, key: LineKey) {
        let client = self.clients.get_mut(&client).unwrap();
        client.cache.remove(key);
        client.versions.remove(&key);
    }

    fn leave(&mut self, client: PeerId) {
        if let Some(mut left) = self.clients.remove(&client) {
            for key in left.cache.dirty_lines(FileId(1)) {
                let version = left.versions[&key];
                assert!(self.directory.written_back(client, key, false));
                left.cache.set_dirty(key, false);
                self.stored.insert(key, version);
                self.server.remove(key);
            }
            self.directory.leave(client);
        }
    }

    fn check(&self) {
        let (own, global) = (self.spec.local_lines(), self.spec.global_lines());
        let mut coordinated = BTreeSet::new();
        let mut copies = BTreeMap::<LineKey, u32>::new();
        for (id, client) in &self.clients {
            let lines = client.cache.lines();
            assert!(lines.0 <= own as usize && lines.1 <= global as usize, "{lines:?}");
            assert!(client.versions.len() <= lines.0 + lines.1);
            for key in client.versions.keys() {
                assert!(client.cache.holds(*key));
                assert!(self.directory.holders(*key).contains(id), "{id} holds {key:?}");
                *copies.entry(*key).or_default() += 1;
                if !client.cache.holds_itself(*key) {
                    assert!(coordinated.insert(*key), "{key:?} is in two global parts");
                }
            }
        }
        if self.spec.cooperation == Cooperation::GloballyManaged {
            assert!(copies.values().all(|count| *count == 1), "{copies:?}");
        }
        assert!(self.server.len() <= self.server_lines);
    }
}

fn specs(lines: u32) -> Vec<ClientCacheSpec> {
    let mut specs = Vec::new();
    for cooperation in COOPERATIONS {
        for write in [WritePolicy::Through, WritePolicy::Back] {
            for write_miss in [WriteMiss::Allocate, WriteMiss::Around] {
                let global_percent = 50;
                specs.push(ClientCacheSpec {
                    lines,
                    cooperation,
                    write,
                    write_miss,
                    global_percent,
                    ..ClientCacheSpec::default()
                });
            }
        }
    }
    specs
}

/// Two clients with two lines of cache, a server with one, three lines: every sequence of five
/// reads and writes.
#[test]
fn every_short_sequence_is_coherent() {
    let mut operations = Vec::new();
    for client in 0..2 {
        for line in 0..3 {
            operations.push(Operation::Read { client, line });
            operations.push(Operation::Write { client, line });
        }
    }
    let count = operations.len() as u64;
    for spec in specs(2) {
        for number in 0..count.pow(4) {
            let mut system = System::new(spec, 2, 1);
            // Fill the caches first: the first operations of a sequence show little.
            system.run(Operation::Read { client: 0, line: 0 });
            system.run(Operation::Read { client: 1, line: 1 });
            let mut rest = number;
            for _ in 0..4 {
                system.run(operations[(rest % count) as usize]);
                rest /= count;
            }
        }
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    (0..20_u32, 0..4_u32, 0..24_u64).prop_map(|(kind, client, line)| match kind {
        0..13 => Operation::Read { client, line },
        13..19 => Operation::Write { client, line },
        _ => Operation::Leave { client },
    })
}

proptest! {
    #[test]
    fn long_sequences_are_coherent(
        operations in prop::collection::vec(operation(), 0..200),
        server_lines in 1_usize..8,
        ways in prop::sample::select(vec![
            Organisation::DirectMapped, Organisation::Ways(2), Organisation::FullyAssociative,
        ]),
    ) {
        for spec in specs(8) {
            let spec = ClientCacheSpec { organisation: ways, ..spec };
            let mut system = System::new(spec, 4, server_lines);
            operations.iter().for_each(|operation| system.run(*operation));
        }
    }

    /// A last copy that nobody uses moves as often as it has chances, then it is dropped.
    #[test]
    fn recirculation_ends(chances in 0_u32..5, draws in prop::collection::vec(any::<u64>(), 16)) {
        let mut directory = Directory::new(Cooperation::NChance, chances);
        (0..3).for_each(|client| directory.register(PeerId(client), 0));
        let (mut holder, mut left, mut moves) = (PeerId(0), None, 0);
        prop_assert_eq!(directory.read(holder, key(1), false), LineSource::Disk);
        directory.has_read(holder, key(1), LineSource::Disk);
        for draw in draws {
            match directory.evicted(holder, key(1), left, draw) {
                LineFate::ToClient(to, chances) => {
                    prop_assert_ne!(to, holder);
                    (holder, left, moves) = (to, Some(chances), moves + 1);
                }
                LineFate::Drop => break,
                LineFate::ToServer => prop_assert!(false, "only globally managed lines go there"),
            }
        }
        prop_assert_eq!(moves, chances);
        prop_assert!(directory.holders(key(1)).is_empty());
    }
}

/// A line that was invalidated while its eviction was under way goes nowhere.
#[test]
fn obsolete_evicted_lines_are_dropped() {
    for cooperation in COOPERATIONS {
        let mut directory = Directory::new(cooperation, 2);
        let (one, two) = (PeerId(1), PeerId(2));
        directory.register(one, 0);
        directory.register(two, 0);
        directory.has_read(one, key(1), LineSource::Disk);
        assert_eq!(directory.write(two, key(1), false), [one]);
        assert_eq!(directory.evicted(one, key(1), None, 0), LineFate::Drop, "{cooperation}");
        directory.own(one, key(1));
        assert_eq!(directory.other_owner(two, key(1)), Some(one));
        assert!(!directory.written_back(two, key(1), true), "it is not the owner");
        assert!(directory.written_back(one, key(1), true));
        assert!(!directory.written_back(one, key(1), true), "it is no owner any more");
    }
}

/// A client that is told to replace a line may have it until it answers a later command.
#[test]
fn a_write_invalidates_lines_that_are_being_replaced() {
    let (one, two) = (PeerId(1), PeerId(2));
    let mut directory = Directory::new(Cooperation::CentrallyCoordinated, 0);
    directory.register(one, 1);
    directory.register(two, 0);
    let stored = |replaces| Some(Stored { client: one, replaces });
    assert_eq!(directory.evicted_by_server(key(1)), stored(None));
    let before = directory.last_stored();
    assert_eq!(directory.evicted_by_server(key(2)), stored(Some(key(1))));
    assert_eq!(directory.read(two, key(1), false), LineSource::Disk);
    directory.carried_out(one, before);
    assert_eq!(directory.write(two, key(1), false), [one]);
    directory.carried_out(one, directory.last_stored());
    assert_eq!(directory.write(two, key(1), false), []);
    assert_eq!(directory.write(two, key(2), false), [one]);
    // So does one that takes a line again, and replaces it again.
    for (line, replaces) in [(1, None), (2, Some(1)), (1, Some(2)), (2, Some(1))] {
        assert_eq!(directory.evicted_by_server(key(line)), stored(replaces.map(key)));
    }
    directory.carried_out(one, directory.last_stored() - 1);
    assert_eq!(directory.holders(key(1)), [one]);
    directory.leave(one);
    assert!(directory.holders(key(1)).is_empty() && directory.holders(key(2)).is_empty());
}

/// The server's old bytes of a line go to no client while the owner's are on their way, even if the
/// owner drops its clean copy or leaves.
#[test]
fn lines_that_are_being_written_back_are_not_stored() {
    let (one, two) = (PeerId(1), PeerId(2));
    let mut directory = Directory::new(Cooperation::CentrallyCoordinated, 0);
    directory.register(one, 0);
    directory.register(two, 4);
    directory.own(one, key(1));
    directory.dropped(one, key(1));
    assert!(directory.is_owner(one, key(1)), "only what it writes back ends its right");
    assert_eq!(directory.evicted_by_server(key(1)), None);
    directory.begin_write_back(key(1));
    directory.leave(one);
    assert_eq!(directory.evicted_by_server(key(1)), None);
    directory.end_write_back(key(1));
    assert_eq!(directory.evicted_by_server(key(1)).unwrap().client, two);
}

/// With the caches of four clients and a server, more cooperation keeps more different lines.
#[test]
fn cooperation_avoids_disk_reads() {
    let mut disk_reads = Vec::new();
    for cooperation in COOPERATIONS {
        let spec = ClientCacheSpec { lines: 20, cooperation, ..ClientCacheSpec::default() };
        let mut system = System::new(spec, 4, 20);
        let mut reads = 0;
        for _ in 0..4000 {
            let (client, line) = (system.draw() % 4, system.draw() % 100);
            let before = system.clients[&PeerId(client as u32)].cache.holds(key(line));
            let elsewhere = system.server.contains(key(line))
                || system.clients.values().any(|other| other.versions.contains_key(&key(line)));
            reads += u32::from(!before && !elsewhere);
            system.run(Operation::Read { client: client as u32, line });
        }
        disk_reads.push((cooperation, reads));
        assert_eq!(system.moves > 0, cooperation == Cooperation::NChance);
    }
    let of = |wanted| disk_reads.iter().find(|(it, _)| *it == wanted).unwrap().1;
    assert!(of(Cooperation::CentrallyCoordinated) < of(Cooperation::GreedyForwarding));
    assert!(of(Cooperation::GloballyManaged) < of(Cooperation::CentrallyCoordinated));
    assert!(of(Cooperation::NChance) < of(Cooperation::GreedyForwarding));
}
