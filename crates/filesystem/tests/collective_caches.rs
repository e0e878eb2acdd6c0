//! Proves: collective transfers by caching, two-phase I/O, a global barrier and node grouping go
//! through the caches of their clients. They read what other clients have in their caches only, and
//! no client reads old bytes after a collective write. Members may read the same bytes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::client_caches::{COOPERATIONS, make_file, some_shape, some_spec, without_caches};
use crate::support;

use filesystem::PeerMesh;
use filesystem::collective::Strategy;
use policy::{
    Access, ClientCacheSpec, Cooperation, Direction, Level, ListEntry, Nested, Pattern, WriteMiss,
    WritePolicy,
};
use support::{
    Cluster, Numbers, Shape, Start, expect_equal, for_each_seed, image, memory_of, overlay,
    read_back, transfer, write_image,
};
use units::{ByteRange, ClientId};
use wire::FileRecord;
use world::payload::Bytes;
use world::{Memory, Payloads};
use world_simulated::SimulatedWorld;

const STRATEGIES: [Strategy; 4] =
    [Strategy::Caching, Strategy::TwoPhase, Strategy::GlobalBarrier, Strategy::NodeGrouping];

const BYTES: u64 = 1200;

/// Parts that the clients write: of all bytes, or of some with gaps between.
fn some_write(numbers: &mut Numbers, clients: u32) -> Access {
    if numbers.below(3) > 0 {
        let name = numbers.pick(&["wb", "wc"]);
        return name.parse::<Pattern>().unwrap().access(clients, 8, BYTES).unwrap();
    }
    let mut lists = vec![Vec::new(); clients as usize];
    let mut at = numbers.below(100);
    loop {
        let length = 1 + numbers.below(90);
        if at + length > BYTES {
            return Access::lists(lists);
        }
        let list: &mut Vec<ListEntry> = &mut lists[numbers.below(clients.into()) as usize];
        let memory_offset = list.last().map_or(0, |last| last.memory_offset + last.length);
        list.push(ListEntry { file_offset: at, memory_offset, length });
        at += length + numbers.below(60);
    }
}

/// Parts that the clients read: all bytes, some, or the same column of a matrix.
fn some_read(numbers: &mut Numbers, clients: u32) -> Access {
    match numbers.below(3) {
        0 => {
            let name = numbers.pick(&["ra", "rb", "rc"]);
            name.parse::<Pattern>().unwrap().access(clients, 8, BYTES).unwrap()
        }
        1 => {
            let row = numbers.pick(&[8, 40, 72]);
            let column = 8 * numbers.below(row / 8);
            let count = 1 + numbers.below(BYTES / row);
            let level = Level { count, file_stride: row, memory_stride: 8 };
            let levels = vec![level];
            let nest = Nested { file_offset: column, memory_offset: 0, length: 8, levels };
            Access::nested(vec![nest; clients as usize])
        }
        _ => some_write(numbers, clients),
    }
}

/// A client of a group, and the content that the file must have.
struct Member {
    group: PeerMesh<SimulatedWorld<Bytes>>,
    file: FileRecord,
    start: Start,
    /// The same at every member.
    numbers: Numbers,
    content: Vec<u8>,
    what: String,
}

impl Member {
    async fn join(start: Start, spec: &ClientCacheSpec) -> Self {
        let group = start.join(1).await.unwrap();
        let file = group.client().open("f").await.unwrap();
        group.client().enable_cache(spec, start.shape.block_bytes).await.unwrap();
        let numbers = Numbers::new(start.shape.seed + 7);
        let content = vec![0; BYTES as usize];
        Self { group, file, start, numbers, content, what: format!("{spec:?}") }
    }

    /// One member writes some bytes by itself, which may stay in its cache.
    async fn write_alone(&mut self) {
        let writer = ClientId(self.numbers.below(self.group.size().into()) as u32);
        let range = ByteRange::at(self.numbers.below(BYTES - 150), 1 + self.numbers.below(150));
        let bytes = image(self.numbers.below(1 << 30), range.length());
        if self.group.rank() == writer {
            let memory = self.start.world.thaw(bytes.clone().into());
            self.group.client().write_cached(&self.file, range, &memory, 0).await.unwrap();
        }
        self.content[range.start as usize..range.end as usize].copy_from_slice(&bytes);
        self.group.barrier().await.unwrap();
    }

    /// Every member reads some bytes by itself.
    async fn read_alone(&mut self) {
        let at = self.numbers.below(BYTES - 300);
        let range = ByteRange::at(at + u64::from(self.group.rank().0) * 20, 200);
        let memory = self.start.world.memory(range.length());
        self.group.client().read_cached(&self.file, range, &memory, 0).await.unwrap();
        let expected = &self.content[range.start as usize..range.end as usize];
        expect_equal(&memory.freeze(), expected, &format!("own read, {}", self.what));
        self.group.barrier().await.unwrap();
    }

    async fn write_together(&mut self, strategy: Strategy) {
        let access = some_write(&mut self.numbers, self.group.size());
        let written = image(self.numbers.below(1 << 30), BYTES);
        let write = transfer(Direction::Write, &self.file, &access, strategy);
        write_image(&self.group, &write, &written).await.unwrap();
        self.content = overlay(&access, &self.content, &written);
    }

    async fn read_together(&mut self, strategy: Strategy) {
        let access = some_read(&mut self.numbers, self.group.size());
        let read = transfer(Direction::Read, &self.file, &access, strategy);
        let bytes = read_back(&self.group, &read).await.unwrap();
        let expected = memory_of(&access, self.group.rank(), &self.content);
        expect_equal(&bytes, &expected, &format!("{strategy} of {access:?}, {}", self.what));
    }
}

#[test]
fn collectives_are_coherent_with_the_caches_of_all_clients() {
    for_each_seed("collective_caches", "collectives_are_coherent", 400, |seed| {
        let (spec, shape) = (some_spec(seed), some_shape(seed));
        let cluster = Cluster::new(shape.clone());
        make_file(&cluster, BYTES);
        let members = cluster.run(0..shape.clients, |start| async move {
            let mut member = Member::join(start, &spec).await;
            for _ in 0..12 {
                let strategy = member.numbers.pick(&STRATEGIES);
                match member.numbers.below(4) {
                    0 => member.write_alone().await,
                    1 => member.read_alone().await,
                    2 => member.write_together(strategy).await,
                    _ => member.read_together(strategy).await,
                }
            }
            // A read finds bytes that only the cache of the writer has.
            for strategy in STRATEGIES {
                member.write_alone().await;
                member.read_together(strategy).await;
            }
            // After a collective write, the servers have all bytes.
            for strategy in STRATEGIES {
                member.write_together(strategy).await;
            }
            member.group.client().flush_cached(&member.file, false).await.unwrap();
            member.group.barrier().await.unwrap();
            member
        });
        let content = members[0].content.clone();
        drop(members);
        expect_equal(&without_caches(&cluster, 0, BYTES), &content, "the file at the end");
    });
}

/// After a collective write, the servers have its bytes without a flush of the clients.
#[test]
fn a_collective_write_leaves_nothing_to_the_caches() {
    for strategy in STRATEGIES {
        for cooperation in COOPERATIONS {
            let (write, write_miss) = (WritePolicy::Back, WriteMiss::Allocate);
            let spec = ClientCacheSpec {
                lines: 64,
                cooperation,
                write,
                write_miss,
                ..ClientCacheSpec::default()
            };
            let cluster = Cluster::new(Shape::default());
            make_file(&cluster, BYTES);
            let contents = cluster.run(0..4, |start| async move {
                let mut member = Member::join(start, &spec).await;
                member.write_together(strategy).await;
                let all = "rb".parse::<Pattern>().unwrap().access(4, 1, BYTES).unwrap();
                let read = transfer(Direction::Read, &member.file, &all, Strategy::DiskDirected);
                let bytes = read_back(&member.group, &read).await.unwrap();
                let expected = memory_of(&all, member.group.rank(), &member.content);
                expect_equal(&bytes, &expected, &format!("{strategy} {cooperation}"));
                member.content
            });
            expect_equal(&without_caches(&cluster, 0, BYTES), &contents[0], "the file");
        }
    }
}

/// The second of two equal reads comes from the caches, and asks no server.
#[test]
fn collective_reads_use_the_caches() {
    for strategy in STRATEGIES {
        let lines = 64;
        let spec = ClientCacheSpec { lines, ..ClientCacheSpec::default() };
        assert_eq!(spec.cooperation, Cooperation::Base);
        let cluster = Cluster::new(Shape::default());
        make_file(&cluster, BYTES);
        let counts = cluster.run(0..4, |start| async move {
            let member = Member::join(start, &spec).await;
            let all = "ra".parse::<Pattern>().unwrap().access(4, 1, BYTES).unwrap();
            let read = transfer(Direction::Read, &member.file, &all, strategy);
            read_back(&member.group, &read).await.unwrap();
            let first = member.group.client().cache_counts().unwrap();
            read_back(&member.group, &read).await.unwrap();
            (first, member.group.client().cache_counts().unwrap())
        });
        let blocks = BYTES.div_ceil(64);
        // Two-phase I/O reads each block once, and sends it to all others.
        let expected = if strategy == Strategy::TwoPhase { blocks } else { 4 * blocks };
        let read: u64 = counts.iter().map(|(first, _)| first.from_servers).sum();
        assert_eq!(read, expected, "{strategy}");
        for (first, second) in counts {
            assert_eq!(second.from_servers, first.from_servers, "{strategy}");
            assert!(second.hits > first.hits, "{strategy}");
        }
    }
}
