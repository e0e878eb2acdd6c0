//! Proves: a growing and shrinking file always equals a vector of bytes, whatever its servers have
//! cached and whoever reads. No bytes are lost when many clients grow it at once. Its size outlives
//! clients and servers. Reads and writes do not need the catalogue.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Part;
use filesystem::{BufferPool, Client, Costs, NewFile};
use futures_util::future::{Either, select};
use policy::{Access, BYTES_MAX, Buffering, Direction, DiskOrder, Pool, Protection, Stripe};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use support::{Cluster, Kill, Numbers, Shape, Start, for_each_seed, image, start_server};
use units::{Duration, Instant, ServerId};
use wire::{EntryKind, Fault, FileRecord, Made};
use world::payload::Bytes;
use world::{Clock, Payloads, RecordTable, Records};
use world_simulated::{SimulatedWorld, TaskHandle};

pub(crate) type TestClient = Client<SimulatedWorld<Bytes>>;
pub(crate) type Buffers = BufferPool<SimulatedWorld<Bytes>>;

pub(crate) const BLOCK: u64 = 64;

pub(crate) fn some_shape(seed: u64) -> Shape {
    let mut numbers = Numbers::new(seed);
    let servers = 1 + numbers.below(3) as u32;
    Shape {
        servers,
        map: support::some_map(&mut numbers, servers),
        disks_per_server: 1 + numbers.below(2) as u32,
        clients: 2,
        cache_blocks: numbers.below(6),
        dirty_percent: numbers.pick(&[0, 50, 100]),
        seed,
        ..Shape::default()
    }
}

pub(crate) async fn write(client: &TestClient, file: &FileRecord, offset: u64, bytes: &[u8]) {
    let pool = BufferPool::new(client, bytes.len() as u64).await.unwrap();
    write_from(&pool, file, offset, bytes).await;
}

pub(crate) async fn write_from(pool: &Buffers, file: &FileRecord, offset: u64, bytes: &[u8]) {
    let buffer = pool.take(bytes.len() as u64).unwrap();
    buffer.fill(&bytes.to_vec().into());
    buffer.transfer(Direction::Write, file, offset).await.unwrap();
}

pub(crate) async fn read(client: &TestClient, file: &FileRecord) -> Vec<u8> {
    let pool = BufferPool::new(client, file.bytes).await.unwrap();
    read_into(&pool, file).await
}

async fn read_into(pool: &Buffers, file: &FileRecord) -> Vec<u8> {
    let buffer = pool.take(file.bytes).unwrap();
    buffer.transfer(Direction::Read, file, 0).await.unwrap();
    buffer.payload().to_vec()
}

/// Writes to a vector as to a file.
pub(crate) fn overwrite(model: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let end = offset as usize + bytes.len();
    model.resize(model.len().max(end), 0);
    model[offset as usize..end].copy_from_slice(bytes);
}

/// Waits until `ms` after the start of the machine.
pub(crate) async fn at(start: &Start, ms: u64) {
    start.world.sleep_until(Instant::START + Duration::from_ms(ms)).await;
}

#[test]
fn a_file_is_what_a_vector_of_bytes_would_be() {
    for_each_seed("sizes", "a_file_is_what_a_vector_of_bytes_would_be", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(some_shape(seed));
        let other = cluster.world(1);
        cluster.run_alone(0, |start| a_file_of_two_clients(start, other.clone(), seed));
    });
}

/// Two clients use one file in turns.
async fn a_file_of_two_clients(start: Start, other: SimulatedWorld<Bytes>, seed: u64) {
    let other = Client::connect(other, &start.servers, Costs::FREE).await;
    let clients = [start.connect().await.unwrap(), other.unwrap()];
    let mut numbers = Numbers::new(seed + 1000);
    let mut model = vec![0; numbers.below(300) as usize];
    let made = clients[0].create("f", model.len() as u64, start.shape.stripe()).await;
    let mut files = [made.unwrap(), clients[1].open("f").await.unwrap()];
    for step in 0..80 {
        let mut is_recorded = false;
        let who = numbers.below(2) as usize;
        let (client, file) = (&clients[who], &mut files[who]);
        client.refresh(file).await.unwrap();
        assert_eq!(file.bytes, model.len() as u64);
        match numbers.below(8) {
            0 => {
                let bytes = numbers.below(1000);
                client.set_size(file, bytes).await.unwrap();
                model.resize(bytes as usize, 0);
            }
            1 => {
                let bytes = numbers.below(1000);
                client.grow(file, bytes).await.unwrap();
                model.resize(model.len().max(bytes as usize), 0);
            }
            2..=4 => {
                let (offset, bytes) = (numbers.below(900), 1 + numbers.below(200));
                let bytes = image(seed * 100 + step, bytes);
                client.grow(file, offset + bytes.len() as u64).await.unwrap();
                write(client, file, offset, &bytes).await;
                overwrite(&mut model, offset, &bytes);
            }
            5 => {
                client.flush(file, numbers.below(2) == 0).await.unwrap();
            }
            6 => {
                client.close(file).await.unwrap();
                is_recorded = true;
                *file = client.open("f").await.unwrap();
            }
            _ => {}
        }
        assert_eq!(file.bytes, model.len() as u64, "step {step}");
        if numbers.below(3) == 0 {
            assert_eq!(read(client, file).await, model, "step {step}");
        }
        let mut known = client.stat_file("f").await.unwrap();
        let is_known = known.size() == file.size();
        assert!(is_known || !is_recorded && known.size() < file.size(), "step {step}: {known:?}");
        if let Some(size) = client.open_sizes().await.unwrap().get(&file.file) {
            known.learn(size.0);
        }
        assert_eq!(known.size(), file.size(), "step {step}");
    }
}

#[test]
fn many_make_a_file_longer_at_once() {
    let shape = Shape { clients: 8, servers: 3, cache_blocks: 5, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    const PART: u64 = 50;
    cluster.run_alone(0, |start| async move {
        start.connect().await.unwrap().create("f", 0, start.shape.stripe()).await.unwrap();
    });
    cluster.run(0..8, |start| async move {
        let client = start.connect().await.unwrap();
        let mut file = client.open("f").await.unwrap();
        for round in 0..20 {
            let offset = (round * 8 + u64::from(start.rank.0)) * PART;
            client.grow(&mut file, offset + PART).await.unwrap();
            write(&client, &file, offset, &image(offset, PART)).await;
        }
    });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        let expected: Vec<u8> = (0..160).flat_map(|part| image(part * PART, PART)).collect();
        assert_eq!(read(&client, &file).await, expected);
    });
}

#[test]
fn a_block_that_grows_stays_in_the_cache() {
    // Proves: what is written at the end of a file, again and again, is read without the disk.
    const PIECE: u64 = 10;
    let shape = Shape { servers: 1, block_bytes: 1024, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        client.create("f", 0, start.shape.stripe()).await.unwrap();
        let mut file = client.open("f").await.unwrap();
        let mut model = Vec::new();
        for number in 0..250 {
            client.grow(&mut file, (number + 1) * PIECE).await.unwrap();
            let piece = image(number, PIECE);
            write(&client, &file, number * PIECE, &piece).await;
            overwrite(&mut model, number * PIECE, &piece);
            assert_eq!(read(&client, &file).await, model);
        }
        let statistics = client.buffers(&file).await.unwrap()[0];
        assert_eq!((statistics.misses, statistics.evictions), (0, 0));
        assert!(statistics.hits >= 250, "{statistics:?}");
    });
}

#[test]
fn a_size_outlives_servers_and_the_client_that_said_it() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let mut file = client.create("f", 10, start.shape.stripe()).await.unwrap();
        client.grow(&mut file, 1000).await.unwrap();
        write(&client, &file, 0, &image(1, 1000)).await;
        client.flush(&file, true).await.unwrap();
        client.close(&file).await.unwrap();
        let mut file = client.open("f").await.unwrap();
        client.set_size(&mut file, 900).await.unwrap();
        let mut longer = client.create("longer", 10, start.shape.stripe()).await.unwrap();
        client.set_size(&mut longer, 5000).await.unwrap();
    });
    cluster.machine.kill(cluster.shape.node_of(0));
    for node in 0..cluster.shape.servers {
        cluster.machine.kill(node);
        cluster.machine.restart(node);
    }
    let _servers: Vec<_> =
        (0..2).map(|node| start_server(&cluster.machine, &cluster.shape, node)).collect();
    cluster.run_alone(1, |start| async move {
        let client = start.connect().await.unwrap();
        let mut file = client.open("f").await.unwrap();
        assert_eq!(read(&client, &file).await, image(1, 1000)[..900]);
        assert_eq!(client.open("longer").await.unwrap().bytes, 5000);
        client.grow(&mut file, 1000).await.unwrap();
        assert_eq!(read(&client, &file).await[900..], [0; 100]);
    });
}

/// Stops the servers of a cluster and starts them again, gracefully or by a kill.
pub(crate) fn restart(cluster: &Cluster<Bytes>, stopping_client: Option<u32>) -> Vec<TaskHandle> {
    if let Some(client) = stopping_client {
        cluster.run_alone(client, |start| async move {
            start.connect().await.unwrap().stop_servers().await.unwrap();
        });
    }
    for node in 0..cluster.shape.servers {
        cluster.machine.kill(node);
        cluster.machine.restart(node);
    }
    let start = |node| start_server(&cluster.machine, &cluster.shape, node);
    (0..cluster.shape.servers).map(start).collect()
}

#[test]
fn bytes_that_a_killed_client_wrote_beyond_the_end_remain() {
    for_each_seed("sizes", "what_a_killed_client_wrote_behind_the_end", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(some_shape(seed));
        let bytes = 1 + seed * 29;
        let synced = cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let mut file = client.create("f", 0, start.shape.stripe()).await.unwrap();
            client.grow(&mut file, bytes).await.unwrap();
            write(&client, &file, 0, &image(1, bytes / 2)).await;
            let access = Access::All { bytes, clients: 1 };
            let memory = client.world().thaw(image(1, bytes).into());
            let sync = seed % 3 == 0;
            let (direction, order) = (Direction::Write, DiskOrder::Sorted);
            let part = Part { direction, file, access, client: start.rank, order, sync };
            client.transfer_part(&part, &memory).await.unwrap();
            sync
        });
        cluster.machine.kill(cluster.shape.node_of(0));
        // A killed server may lose data that was not synced.
        let _servers = match seed % 4 {
            0 => restart(&cluster, Some(1)),
            1 if synced => restart(&cluster, None),
            _ => Vec::new(),
        };
        cluster.run_alone(1, |start| async move {
            let client = start.connect().await.unwrap();
            let known = client.stat_file("f").await.unwrap().bytes;
            assert_eq!(known, 0, "nobody has told it");
            let file = client.open("f").await.unwrap();
            assert_eq!(file.bytes, bytes);
            assert_eq!(read(&client, &file).await, image(1, bytes));
            client.close(&file).await.unwrap();
            assert_eq!(client.stat_file("f").await.unwrap().bytes, bytes, "whoever closes tells");
        });
    });
}

/// Returns the size of a cut or growth after some turns.
fn cut_to(turn: u64) -> Option<u64> {
    match turn {
        7 => Some(100),
        19 => Some(19 * 70 + 89 + 1000),
        _ => None,
    }
}

#[test]
fn reads_writes_cuts_and_syncs_do_without_the_catalogue() {
    let cluster = Cluster::<Bytes>::new(Shape { servers: 3, clients: 3, ..Shape::default() });
    let machine = Rc::clone(&cluster.machine);
    cluster.run(0..2, |start| {
        let machine = Rc::clone(&machine);
        async move {
            let group = start.join(1).await.unwrap();
            let client = group.client();
            let is_first = start.rank.0 == 0;
            if is_first {
                let stripe = Stripe::round_robin(BLOCK, 2, 1);
                let (pool, buffering) =
                    (Pool::Consecutive { first: 1, of: 3 }, Buffering::default());
                let (name, made) = ("f".to_owned(), Made::default());
                let (bytes, protection) = (0, Protection::None);
                let new = NewFile { name, bytes, stripe, pool, buffering, protection, made };
                client.create_as(new).await.unwrap();
            }
            group.agree(Ok(())).await.unwrap();
            let mut file = client.open("f").await.unwrap();
            let pool = BufferPool::new(client, 2000).await.unwrap();
            group.agree(Ok(())).await.unwrap();
            if is_first {
                machine.kill(0);
            }
            let mut model = Vec::new();
            for turn in 0..20 {
                let (offset, bytes) = (turn * 70, 70 + turn);
                if turn % 2 == u64::from(start.rank.0) {
                    client.grow(&mut file, offset + bytes).await.unwrap();
                    write_from(&pool, &file, offset, &image(turn, bytes)).await;
                    if let Some(bytes) = cut_to(turn) {
                        client.set_size(&mut file, bytes).await.unwrap();
                    }
                    client.flush(&file, true).await.unwrap();
                }
                overwrite(&mut model, offset, &image(turn, bytes));
                model.resize(cut_to(turn).map_or(model.len(), |bytes| bytes as usize), 0);
                start.world.sleep(Duration::from_ms(20)).await;
                client.refresh(&mut file).await.unwrap();
                assert_eq!(read_into(&pool, &file).await, model, "turn {turn}");
                start.world.sleep(Duration::from_ms(20)).await;
            }
            let told = client.close(&file).await.unwrap_err();
            assert!(matches!(told, Fault::ServerLeft { server: ServerId(0), .. }), "{told}");
        }
    });
    cluster.machine.restart(0);
    let _server = start_server(&cluster.machine, &cluster.shape, 0);
    cluster.run_alone(2, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        assert_eq!(file.bytes, 19 * 70 + 89 + 1000);
        client.close(&file).await.unwrap();
        assert_eq!(client.stat_file("f").await.unwrap().bytes, file.bytes);
    });
}

#[test]
fn sizes_that_the_catalogue_knows_are_kept_no_longer() {
    let cluster = Cluster::<Bytes>::new(Shape { servers: 2, clients: 3, ..Shape::default() });
    let kept = |node: u32| {
        let world = cluster.machine.world(node);
        async move { world.records(RecordTable::Sizes).await.unwrap().len() }
    };
    cluster.run_alone(0, |start| {
        let all = [kept(0), kept(1)];
        async move {
            let client = start.connect().await.unwrap();
            for name in ["cut and closed", "cut and removed", "cut"] {
                let mut file = client.create(name, 1000, start.shape.stripe()).await.unwrap();
                client.set_size(&mut file, 10).await.unwrap();
            }
            let file = client.stat_file("cut and closed").await.unwrap();
            client.close(&file).await.unwrap();
            let [one, other] = all;
            assert_eq!((one.await, other.await), (3, 3), "they go with the next change");
            client.remove("cut and removed").await.unwrap();
        }
    });
    restart(&cluster, Some(1));
    cluster.run_alone(2, |_| {
        let all = [kept(0), kept(1)];
        async move {
            let [one, other] = all;
            assert_eq!((one.await, other.await), (1, 1), "its client has left without a word");
        }
    });
}

#[test]
fn grow_without_a_write_is_lost_with_its_client() {
    let cluster = Cluster::<Bytes>::new(Shape { servers: 1, clients: 3, ..Shape::default() });
    let ready = Rc::new(Cell::new(0));
    let programs = cluster.programs(&[0, 1], |start| async move {
        let client = start.connect().await.unwrap();
        if start.rank.0 == 0 {
            let mut file = client.create("f", 100, start.shape.stripe()).await.unwrap();
            at(&start, 20).await;
            client.grow(&mut file, 300).await.unwrap();
            return at(&start, 50).await;
        }
        at(&start, 10).await;
        let mut file = client.open("f").await.unwrap();
        at(&start, 30).await;
        client.refresh(&mut file).await.unwrap();
        assert_eq!(read(&client, &file).await, [0; 300]);
    });
    let (node, after) = (cluster.shape.node_of(0), Duration::from_ms(40));
    let at = Rc::new(Cell::new(Instant::START));
    cluster.run_on(programs, Some(Kill { node, after, ready, ready_min: 0, at }));
    cluster.run_alone(2, |start| async move {
        let client = start.connect().await.unwrap();
        let known = client.look_at("f").await.unwrap();
        assert_eq!(known.file().unwrap().bytes, 100);
    });
}

#[test]
fn a_file_is_closed_as_often_as_it_was_opened() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.create("f", 100, start.shape.stripe()).await.unwrap();
        let again = client.open("f").await.unwrap();
        client.close(&file).await.unwrap();
        client.flush(&again, false).await.unwrap();
        // One that is dropped half way does not count.
        {
            let (open, soon) = (client.open("f"), start.world.sleep(Duration::from_us(20)));
            let is_given_up = matches!(select(pin!(open), pin!(soon)).await, Either::Right(_));
            assert!(is_given_up);
        }
        client.close(&again).await.unwrap();
        let closed = client.flush(&again, false).await.unwrap_err();
        assert!(matches!(closed, Fault::BadRequest { .. }), "{closed}");
    });
}

#[test]
fn sizes_of_all_open_files_are_listed() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, servers: 2, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let mut expected = BTreeMap::new();
        let mut open = Vec::new();
        for number in 0..2100 {
            let name = format!("f{number}");
            let mut file = client.create(&name, 10, start.shape.stripe()).await.unwrap();
            if number % 50 > 0 {
                client.grow(&mut file, 10 + number).await.unwrap();
            }
            expected.insert(file.file, file.size());
            open.push(file);
        }
        let open_sizes = client.open_sizes().await.unwrap();
        let sizes: BTreeMap<_, _> = open_sizes.iter().map(|(file, it)| (*file, it.0)).collect();
        assert_eq!(sizes, expected);
        for file in open {
            client.close(&file).await.unwrap();
        }
        assert_eq!(client.open_sizes().await.unwrap(), BTreeMap::new());
    });
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let mut file = client.create("f", 10, start.shape.stripe()).await.unwrap();
        for bytes in [BYTES_MAX + 1, u64::MAX] {
            let refused =
                [client.grow(&mut file, bytes).await, client.set_size(&mut file, bytes).await];
            for refused in refused {
                assert!(matches!(refused, Err(Fault::BadRequest { .. })), "{refused:?}");
            }
        }
        client.set_size(&mut file, BYTES_MAX).await.unwrap();
        let EntryKind::File(seen) = client.look_at("f").await.unwrap().kind else { panic!() };
        assert_eq!(seen.bytes, BYTES_MAX);
        client.set_size(&mut file, 10).await.unwrap();
        assert_eq!(read(&client, &file).await, [0; 10]);
    });
}
