//! Proves: the copies of mirrored files have what the files have, whatever crashes; damaged bytes
//! are read from them and repaired; and a copy that may lack changes is never read.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{Buffers, TestClient, overwrite, read, write, write_from};
use crate::support;

use filesystem::collective::Strategy;
use filesystem::{BufferPool, Fault};
use futures_util::future::join;
use policy::{Direction, Pattern, Protection, copy_object};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Cluster, Numbers, Shape, Start, cluster_with_faults, create, create_alone, expect_copies_equal,
    for_each_seed, image, replace_server, start_replaced, start_server, transfer, write_image,
};
use units::{ByteRange, ClientId, Duration, ServerId};
use wire::{FileRecord, Scrubbed};
use world::{Clock, Disk, Disks, RecordTable, Records};

/// Time that a change of records takes.
pub(crate) const RECORD_CHANGE: Duration = Duration::from_us(100);

fn shape(seed: u64) -> Shape {
    Shape {
        servers: 2 + (seed % 3) as u32,
        disks_per_server: 1 + (seed / 3 % 2) as u32,
        clients: 3,
        cache_blocks: seed / 6 % 9,
        client_caches: false,
        protection: Protection::Mirror,
        seed,
        ..Shape::default()
    }
}

/// Panics unless all copies and parity of a file are equal to what they are of, and only marks are
/// left that go with the next change of marks.
async fn expect_stored(cluster: &Cluster, file: &FileRecord) {
    expect_copies_equal(cluster, file).await;
    let mut left = 0;
    for server in 0..cluster.shape.servers {
        let marks = cluster.machine.world(server).records(RecordTable::Mirrors).await;
        left += marks.unwrap().iter().filter(|(file, _)| *file > 0).count();
    }
    assert!(left <= cluster.shape.servers as usize, "{left} marks");
}

/// Some writes, cuts and syncs of one file.
async fn change(start: &Start, client: &TestClient, file: &mut FileRecord, numbers: &mut Numbers) {
    match numbers.below(6) {
        0 => client.set_size(file, numbers.below(file.bytes + 1)).await.unwrap(),
        1 => client.grow(file, file.bytes + numbers.below(300)).await.unwrap(),
        2 => client.flush(file, numbers.below(2) == 0).await.unwrap(),
        _ if file.bytes == 0 => {}
        _ => {
            let offset = numbers.below(file.bytes);
            let length = 1 + numbers.below(file.bytes - offset);
            write(client, file, offset, &image(numbers.below(1 << 20), length)).await;
        }
    }
    start.world.sleep(Duration::from_us(numbers.below(400))).await;
}

/// Changes a file of a cluster with this shape, and checks it when it is stored.
pub(crate) fn check_changes(shape: Shape) {
    let (cluster, seed) = (cluster_with_faults(shape.clone(), RECORD_CHANGE), shape.seed);
    let file = cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let mut numbers = Numbers::new(seed);
        let bytes = 1 + numbers.below(2_000);
        let mut file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
        for _ in 0..30 {
            change(&start, &client, &mut file, &mut numbers).await;
        }
        client.flush(&file, true).await.unwrap();
        client.close(&file).await.unwrap();
        file
    });
    let own = Rc::clone(&cluster);
    cluster.engine.run(async move { expect_stored(&own, &file).await }).unwrap();
}

/// Writes a file twice by collectives in a cluster with this shape, and checks it when it is
/// stored.
pub(crate) fn check_collectives(shape: Shape) {
    let (cluster, seed) = (cluster_with_faults(shape.clone(), RECORD_CHANGE), shape.seed);
    let strategy = Strategy::NAMED[(seed % 6) as usize];
    let protection = shape.protection;
    let files = cluster.run(0..4, |start| async move {
        let group = start.join(1).await.unwrap();
        let bytes = 64 * (1 + seed * 7 % 60);
        let pattern: Pattern = ["wc", "wb", "wcc"][(seed % 3) as usize].parse().unwrap();
        let file = create(&group, "f", bytes, start.shape.stripe()).await.unwrap();
        assert_eq!(file.protection, protection);
        let access = pattern.access(4, 8, bytes).unwrap();
        let mut transfer = transfer(Direction::Write, &file, &access, strategy);
        transfer.sync = true;
        for pass in 0..2 {
            write_image(&group, &transfer, &image(seed + pass, bytes)).await.unwrap();
        }
        group.agree(Ok(())).await.unwrap();
        if start.rank == ClientId(0) {
            group.client().flush(&file, true).await.unwrap();
        }
        file
    });
    let (own, file) = (Rc::clone(&cluster), files[0].clone());
    cluster.engine.run(async move { expect_stored(&own, &file).await }).unwrap();
}

#[test]
fn copies_are_equal_when_a_file_is_stored() {
    for_each_seed("mirrors", "copies_are_equal_when_a_file_is_stored", 80, |seed| {
        check_changes(shape(seed));
    });
}

#[test]
fn collectives_write_copies_too() {
    for_each_seed("mirrors", "collectives_write_copies_too", 48, |seed| {
        check_collectives(Shape { clients: 4, ..shape(seed) });
    });
}

/// Makes a file of `bytes` bytes that is stored, and returns it with its content.
pub(crate) async fn stored_file_of(
    start: &Start,
    seed: u64,
    bytes: u64,
) -> (TestClient, FileRecord, Vec<u8>) {
    let client = start.connect().await.unwrap();
    let file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
    let content = image(seed, bytes);
    write(&client, &file, 0, &content).await;
    client.flush(&file, true).await.unwrap();
    client.close(&file).await.unwrap();
    (client, file, content)
}

async fn stored_file(start: &Start, seed: u64) -> (TestClient, FileRecord, Vec<u8>) {
    stored_file_of(start, seed, 500 + seed * 97 % 3_000).await
}

#[test]
fn damaged_bytes_are_read_from_the_copy_and_repaired() {
    for_each_seed("mirrors", "damaged_bytes_are_read_from_the_copy", 60, |seed| {
        let cluster = cluster_with_faults(Shape { cache_blocks: 1, ..shape(seed) }, RECORD_CHANGE);
        let own = Rc::clone(&cluster);
        cluster
            .engine
            .run(async move {
                let (client, file, content) = stored_file(&own.start(0), seed).await;
                let mut numbers = Numbers::new(seed);
                let place = numbers.below(u64::from(file.stripe.servers)) as u32;
                let disk = numbers.below(u64::from(file.stripe.disks_per_server)) as u32;
                let server = file.pool.server(ServerId(place)).0;
                let from = numbers.below(100);
                own.machine.damage((server, disk), file.file, from..from + 1 + numbers.below(200));
                for pass in 0..2 {
                    let file = client.open("f").await.unwrap();
                    assert!(read(&client, &file).await == content, "pass {pass}");
                    client.close(&file).await.unwrap();
                    // Nothing of it is cached any more.
                    let other = create_alone(&client, &own.shape, &format!("{pass}"), 900).await;
                    write(&client, &other.unwrap(), 0, &[1; 900]).await;
                    // Then the copy is needed no more.
                    let copy =
                        file.protection.copy_of(ServerId(place), file.stripe.servers).unwrap();
                    let copy = (file.pool.server(copy).0, disk);
                    own.machine.damage(copy, copy_object(file.file), 0..u64::MAX);
                }
                let status: Vec<_> =
                    client.status().await.into_iter().map(Result::unwrap).collect();
                let repaired: u64 = status.iter().map(|status| status.repaired).sum();
                assert!(repaired <= 4, "{repaired} ranges");
            })
            .unwrap();
    });
}

#[test]
fn a_scrub_finds_and_repairs_all_damage() {
    for_each_seed("mirrors", "a_scrub_finds_and_repairs_all_damage", 60, |seed| {
        let protection = [Protection::Mirror, Protection::None][(seed % 2) as usize];
        let cluster = cluster_with_faults(
            Shape { cache_blocks: 1, protection, ..shape(seed) },
            RECORD_CHANGE,
        );
        let own = Rc::clone(&cluster);
        let check = async move {
            let (client, file, content) = stored_file(&own.start(0), seed).await;
            let sound = client.scrub(&file).await.unwrap();
            let held: u64 = sound.bytes;
            assert!(held >= file.bytes, "{held}");
            let nothing = Scrubbed { bytes: held, ..Scrubbed::default() };
            assert_eq!(sound, nothing);
            let mut numbers = Numbers::new(seed);
            let server = file.pool.server(ServerId(0)).0;
            let (at, length) = (numbers.below(40), 1 + numbers.below(20));
            own.machine.damage((server, 0), file.file, at..at + length);
            let mut copies = 0;
            if let Some(copy) = protection.copy_of(ServerId(1), file.stripe.servers) {
                // Another part than the one that is damaged itself.
                let copy = file.pool.server(copy).0;
                own.machine.damage((copy, 0), copy_object(file.file), 3..7);
                copies = 1;
            }
            let found = client.scrub(&file).await.unwrap();
            match protection {
                Protection::Mirror | Protection::Parity { .. } => {
                    let (repaired, repaired_copies) = (1, copies);
                    assert_eq!(found, Scrubbed { repaired, repaired_copies, ..nothing.clone() });
                    assert_eq!(client.scrub(&file).await.unwrap(), nothing);
                    expect_copies_equal(&own, &file).await;
                    let file = client.open("f").await.unwrap();
                    assert!(read(&client, &file).await == content);
                }
                Protection::None => {
                    let [(offset, bytes)] = found.damaged[..] else { panic!("{found:?}") };
                    assert!(offset <= at && offset + bytes > at, "{found:?}");
                    assert_eq!(found.repaired, 0);
                }
            }
        };
        cluster.engine.run(check).unwrap();
    });
}

/// Writes some blocks of a file that are on one server.
async fn change_blocks_of(
    (pool, server): (&Buffers, ServerId),
    (file, content): (&FileRecord, &mut [u8]),
    numbers: &mut Numbers,
) {
    let blocks = file.stripe.blocks_in(ByteRange::new(0, file.bytes));
    let all: Vec<u64> = blocks.filter(|block| file.server_of(*block) == server).collect();
    for _ in 0..6 {
        let range = file.stripe.block_range(numbers.pick(&all), file.bytes);
        let new = image(numbers.below(1 << 20), range.length());
        write_from(pool, file, range.start, &new).await;
        content[range.start as usize..range.end as usize].copy_from_slice(&new);
    }
}

/// An open file, of which one part changed while the server of the copy of that part was away.
struct Changed {
    client: TestClient,
    _pool: Buffers,
    file: FileRecord,
    content: Vec<u8>,
    /// Server of the part.
    server: ServerId,
    /// Server of its copy.
    copy: ServerId,
}

/// Kills the server of the copy of some part of a file that is stored, and changes that part.
/// Returns nothing if that server holds the catalogue: then no write may leave its copy behind.
async fn change_without_copy(cluster: &Cluster, numbers: &mut Numbers) -> Option<Changed> {
    let (client, _, mut content) = stored_file(&cluster.start(0), cluster.shape.seed).await;
    let file = client.open("f").await.unwrap();
    let servers = file.stripe.servers;
    let part = ServerId(numbers.below(u64::from(servers)) as u32);
    let [server, copy] =
        [part, file.protection.copy_of(part, servers).unwrap()].map(|part| file.pool.server(part));
    if copy == ServerId(0) {
        return None;
    }
    // Its memory is known to the servers before one of them leaves.
    let pool = BufferPool::new(&client, cluster.shape.block_bytes).await.unwrap();
    cluster.machine.kill(copy.0);
    change_blocks_of((&pool, server), (&file, &mut content[..]), numbers).await;
    Some(Changed { client, _pool: pool, file, content, server, copy })
}

#[test]
fn writes_go_on_without_the_copy_which_is_renewed() {
    let told = Rc::new(Cell::new(0));
    for_each_seed("mirrors", "writes_go_on_without_the_copy", 60, |seed| {
        let cluster =
            cluster_with_faults(Shape { copies: seed % 2 == 0, ..shape(seed) }, RECORD_CHANGE);
        let (own, told) = (Rc::clone(&cluster), Rc::clone(&told));
        let check = async move {
            let start = own.start(0);
            let mut numbers = Numbers::new(seed);
            let Some(changed) = change_without_copy(&own, &mut numbers).await else { return };
            let Changed { client, _pool, file, content, server, copy } = changed;
            // One of its servers has left, and another one may not be asked then.
            let is_stored = client.flush(&file, true).await.is_ok();
            assert!(!is_stored);
            let status: Vec<_> = client.status().await;
            let of_server = status[server.0 as usize].as_ref().unwrap();
            let behind = &status[0].as_ref().unwrap().behind;
            if of_server.files_behind > 0 && *behind == [server] {
                told.set(told.get() + 1);
            }
            start.world.sleep(Duration::from_us(numbers.below(3_000_000))).await;
            own.machine.restart(copy.0);
            let _server = start_server(&own.machine, &own.shape, copy.0);
            start.world.sleep(Duration::from_ms(5_000)).await;
            expect_copies_equal(&own, &file).await;
            let client = start.connect().await.unwrap();
            for status in client.status().await {
                let status = status.unwrap();
                assert_eq!((status.behind, status.files_behind), (Vec::new(), 0));
            }
            let file = client.open("f").await.unwrap();
            assert!(read(&client, &file).await == content);
        };
        cluster.engine.run(check).unwrap();
    });
    assert!(support::only_seed().is_some() || told.get() > 10, "{} copies behind", told.get());
}

#[test]
fn a_copy_that_lacks_changes_is_not_read() {
    let (refused, restarted) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for_each_seed("mirrors", "a_copy_that_lacks_changes_is_not_read", 60, |seed| {
        let cluster = cluster_with_faults(Shape { cache_blocks: 0, ..shape(seed) }, RECORD_CHANGE);
        let (own, refused) = (Rc::clone(&cluster), Rc::clone(&refused));
        let restarted = Rc::clone(&restarted);
        let check = async move {
            let start = own.start(0);
            let mut numbers = Numbers::new(seed);
            let Some(changed) = change_without_copy(&own, &mut numbers).await else { return };
            let Changed { client, _pool, file, content, server, copy } = changed;
            // The server with the copy has left.
            assert!(client.flush(&file, true).await.is_err());
            let recorded = client.status().await.swap_remove(0).unwrap().behind;
            let mut servers = Vec::new();
            if numbers.below(3) > 0 && server != ServerId(0) && recorded == [server] {
                own.machine.kill(server.0);
                if numbers.below(2) == 0 {
                    // With the marks of the server, too.
                    own.machine.lose_records(server.0, RecordTable::Mirrors);
                }
                own.machine.restart(server.0);
                servers.push(start_server(&own.machine, &own.shape, server.0));
                restarted.set(restarted.get() + 1);
            }
            for disk in 0..own.shape.disks_per_server {
                own.machine.damage((server.0, disk), file.file, 0..u64::MAX);
            }
            own.machine.restart(copy.0);
            servers.push(start_server(&own.machine, &own.shape, copy.0));
            start.world.sleep(Duration::from_ms(5_000)).await;
            // Every block of that server, at the first and at a later try.
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            let blocks = file.stripe.blocks_in(ByteRange::new(0, file.bytes));
            let of_server = blocks.filter(|block| file.server_of(*block) == server);
            for block in of_server.flat_map(|block| [block, block]) {
                let range = file.stripe.block_range(block, file.bytes);
                let pool = BufferPool::new(&client, range.length()).await.unwrap();
                let buffer = pool.take(range.length()).unwrap();
                let found = buffer.transfer(Direction::Read, &file, range.start).await;
                match found {
                    // It is in the cache.
                    Ok(()) => {
                        let wanted = &content[range.start as usize..range.end as usize];
                        assert!(*buffer.payload() == *wanted, "block {block} is not an old one");
                    }
                    Err(Fault::Corrupt { .. }) => refused.set(refused.get() + 1),
                    Err(fault) => panic!("block {block}: {fault}"),
                }
            }
        };
        cluster.engine.run(check).unwrap();
    });
    let counts = (refused.get(), restarted.get());
    assert!(support::only_seed().is_some() || counts.0 > 100 && counts.1 > 10, "{counts:?}");
}

/// Waits until no copy is behind.
pub(crate) async fn until_equal(start: &Start, client: &TestClient) {
    let limit = start.now() + Duration::from_ms(20_000);
    loop {
        let statuses = client.status().await.into_iter().map(Result::unwrap);
        let behind: Vec<_> = statuses.map(|it| (it.files_behind, it.behind)).collect();
        if behind.iter().all(|(files, servers)| *files == 0 && servers.is_empty()) {
            return;
        }
        assert!(start.now() < limit, "{behind:?}");
        start.world.sleep(Duration::from_ms(20)).await;
    }
}

/// Loses a server of a protected file with this content, and protects it no more.
async fn lose_and_bare(own: &Cluster, content: &[u8], numbers: &mut Numbers) {
    let start = own.start(0);
    let lost = numbers.below(own.shape.servers.into()) as u32;
    own.machine.kill(lost);
    let _server = replace_server(&own.machine, &own.shape, lost, 1);
    let client = start.connect().await.unwrap();
    let file = client.open("f").await.unwrap();
    assert!(read(&client, &file).await == *content);
    while client.status().await.into_iter().any(|it| it.unwrap().refill.files > 0) {
        start.world.sleep(Duration::from_ms(20)).await;
    }
    until_equal(&start, &client).await;
    client.protect(&file, Protection::None).await.unwrap();
    assert!(read(&client, &file).await == *content);
    for server in 0..own.shape.servers {
        let world = own.machine.world(server);
        for disk in world.disks() {
            let copy = disk.metadata(copy_object(file.file)).await.unwrap();
            assert_eq!(copy, None, "server {server}");
        }
    }
}

/// Changes the protection of a file, which another client has open, while that one writes.
async fn change_protection(own: &Cluster, seed: u64) {
    let [start, other] = [own.start(0), own.start(1)];
    let (client, writer) = (start.connect().await.unwrap(), other.connect().await.unwrap());
    let mut numbers = Numbers::new(seed);
    let bytes = 1 + numbers.below(2_000);
    let made = create_alone(&client, &own.shape, "f", bytes).await.unwrap();
    client.close(&made).await.unwrap();
    let mut file = writer.open("f").await.unwrap();
    let mut content = vec![0; bytes as usize];
    let current = async || client.stat("f").await.unwrap().into_file().unwrap();
    for _ in 0..12 {
        let protection = numbers.pick(&[Protection::None, Protection::Mirror]);
        if numbers.below(2) == 0 {
            // What the cache has of it knows an older protection.
            writer.close(&file).await.unwrap();
            client.protect(&current().await, protection).await.unwrap();
            file = writer.open("f").await.unwrap();
        }
        let changing = async {
            other.world.sleep(Duration::from_us(numbers.below(2_000))).await;
            client.protect(&current().await, protection).await.unwrap();
        };
        let mut changes = Numbers::new(seed ^ u64::from(content.len() as u32) << 9);
        let writing = async {
            for _ in 0..changes.below(8) {
                match changes.below(5) {
                    0 if file.bytes > 0 => {
                        let bytes = changes.below(file.bytes);
                        writer.set_size(&mut file, bytes).await.unwrap();
                        content.truncate(bytes as usize);
                    }
                    1 => writer.flush(&file, true).await.unwrap(),
                    _ => {
                        let offset = changes.below(file.bytes + 100);
                        let new = image(changes.below(1 << 20), 1 + changes.below(300));
                        let end = offset + new.len() as u64;
                        writer.grow(&mut file, end).await.unwrap();
                        write(&writer, &file, offset, &new).await;
                        overwrite(&mut content, offset, &new);
                    }
                }
            }
        };
        join(changing, writing).await;
        start.world.sleep(Duration::from_us(numbers.below(30_000))).await;
    }
    client.protect(&current().await, Protection::Mirror).await.unwrap();
    writer.flush(&file, true).await.unwrap();
    until_equal(&start, &client).await;
    expect_copies_equal(own, &current().await).await;
    assert!(read(&writer, &file).await == content);
    writer.flush(&file, true).await.unwrap();
    lose_and_bare(own, &content, &mut numbers).await;
}

#[test]
fn protection_is_changed_while_a_client_writes() {
    for_each_seed("mirrors", "protection_is_changed_while_a_client_writes", 80, |seed| {
        let cluster = cluster_with_faults(
            Shape { protection: Protection::None, ..shape(seed) },
            RECORD_CHANGE,
        );
        let own = Rc::clone(&cluster);
        cluster.engine.run(async move { change_protection(&own, seed).await }).unwrap();
    });
}

/// Protects a file, or ceases to, starts a server again, perhaps without its directory, and has a
/// client write that knows the file from before.
async fn change_with_an_old_record(own: &Cluster, seed: u64) {
    let (start, mut numbers) = (own.start(0), Numbers::new(seed));
    let client = start.connect().await.unwrap();
    let before = create_alone(&client, &own.shape, "f", 1_000).await.unwrap();
    let mut content = image(seed, 1_000);
    write(&client, &before, 0, &content).await;
    client.flush(&before, true).await.unwrap();
    client.close(&before).await.unwrap();
    client.protect(&before, Protection::Mirror).await.unwrap();
    until_equal(&start, &client).await;
    let restarted = 1 + numbers.below(u64::from(own.shape.servers) - 1) as u32;
    own.machine.kill(restarted);
    let mut servers = Vec::new();
    let is_replaced = seed.is_multiple_of(2);
    if is_replaced {
        servers.push(replace_server(&own.machine, &own.shape, restarted, 1));
        let client = start.connect().await.unwrap();
        while client.status().await.into_iter().any(|it| it.unwrap().refill.files > 0) {
            start.world.sleep(Duration::from_ms(20)).await;
        }
        until_equal(&start, &client).await;
        own.machine.kill(restarted);
    }
    own.machine.restart(restarted);
    // A server knows how often its directories were replaced.
    let replaced = u64::from(is_replaced);
    servers.push(start_replaced(&own.machine, &own.shape, restarted, replaced));
    let client = start.connect().await.unwrap();
    let opened = client.open_record(before.clone()).await.unwrap();
    let new = image(!seed, 1_000);
    write(&client, &opened, 0, &new).await;
    overwrite(&mut content, 0, &new);
    client.flush(&opened, true).await.unwrap();
    until_equal(&start, &client).await;
    expect_copies_equal(own, &client.open("f").await.unwrap()).await;
    lose_and_bare(own, &content, &mut numbers).await;
}

#[test]
fn clients_that_knew_a_file_before_it_was_protected_write_its_copies() {
    for_each_seed("mirrors", "clients_that_knew_a_file_before", 40, |seed| {
        let cluster = cluster_with_faults(
            Shape { protection: Protection::None, ..shape(seed) },
            RECORD_CHANGE,
        );
        let own = Rc::clone(&cluster);
        let check = async move { change_with_an_old_record(&own, seed).await };
        cluster.engine.run(check).unwrap();
    });
}

#[test]
fn a_file_on_one_server_has_no_copy() {
    let cluster = cluster_with_faults(Shape { servers: 1, ..shape(0) }, RECORD_CHANGE);
    let refused = cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        create_alone(&client, &start.shape, "f", 10).await.unwrap_err()
    });
    let told = refused.to_string();
    assert!(matches!(refused, Fault::BadRequest { .. }) && told.contains("2 servers"), "{told}");
}
