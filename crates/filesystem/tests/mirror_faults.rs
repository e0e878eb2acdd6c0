//! Proves, for sequences of faults that random ones seldom have: the copy of a mirrored file has
//! what a sync has acknowledged, and nothing that was removed; and the catalogue knows which copies
//! are behind.
//!
//! Server 0 has the catalogue, server 1 the part of the file that changes, and server 2 its copy.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::mirrors::until_equal;
use crate::refill::refused_blocks;
use crate::sizes::{TestClient, overwrite, read, write};
use crate::support;

use filesystem::BufferPool;
use futures_util::future::join;
use policy::{Direction, Protection, copy_object};
use std::rc::Rc;
use support::{
    Cluster, Shape, cluster_with_faults, create_alone, expect_copies_equal, expect_equal,
    for_each_seed, image, replace_server, start_server,
};
use units::{DiskId, Duration, FileId, ServerId};
use wire::FileRecord;
use world::{Clock, Disk, Disks};
use world_simulated::{Disruption, FaultPlan, PlannedFault, TaskHandle};

/// Time that a change of records takes.
pub(crate) const RECORD_CHANGE: Duration = Duration::from_us(100);

/// Server of the part that changes.
pub(crate) const PART: u32 = 1;

/// Server of the copy of that part.
pub(crate) const COPY: u32 = 2;

/// Bytes of the file: several blocks of each disk.
pub(crate) const FILE_BYTES: u64 = 64 * 12;

pub(crate) fn shape(seed: u64) -> Shape {
    Shape {
        servers: 3,
        disks_per_server: 2,
        clients: 3,
        cache_blocks: 0,
        client_caches: false,
        protection: Protection::Mirror,
        seed,
        ..Shape::default()
    }
}

/// Runs a program with a cluster of this shape, which changes records in `record_change`.
pub(crate) fn run_with<F: Future<Output = ()> + 'static>(
    (shape, record_change): (Shape, Duration),
    program: impl FnOnce(Rc<Cluster>) -> F,
) {
    let cluster = cluster_with_faults(shape, record_change);
    cluster.engine.run(program(Rc::clone(&cluster))).unwrap();
}

/// Makes a disruption happen now. The seed of the cluster decides about what is not stored.
pub(crate) async fn disrupt(cluster: &Cluster, what: Disruption) {
    let faults = vec![PlannedFault { at: cluster.engine.now(), what }];
    let seed = cluster.shape.seed;
    cluster.machine.plan(&FaultPlan { seed, faults, ..FaultPlan::default() }, |_| {});
    cluster.engine.sleep(Duration::from_us(1)).await;
}

/// Waits until `is_so` returns true, which it soon does.
async fn until(cluster: &Cluster, what: &str, is_so: impl AsyncFn() -> bool) {
    let limit = cluster.engine.now() + Duration::from_ms(20_000);
    while !is_so().await {
        assert!(cluster.engine.now() < limit, "{what}");
        cluster.engine.sleep(Duration::from_ms(1)).await;
    }
}

/// Makes a file with this name that is stored, and open. Returns it with its content.
pub(crate) async fn stored_file(
    client: &TestClient,
    shape: &Shape,
    name: &str,
) -> (FileRecord, Vec<u8>) {
    let file = create_alone(client, shape, name, FILE_BYTES).await.unwrap();
    let content = image(shape.seed, FILE_BYTES);
    write(client, &file, 0, &content).await;
    client.flush(&file, true).await.unwrap();
    (file, content)
}

/// Writes bytes that `seed` fixes to the first block that a disk of the part has, and waits until
/// they are at the disks.
pub(crate) async fn change_part(
    client: &TestClient,
    file: &FileRecord,
    content: &mut Vec<u8>,
    (disk, seed): (u32, u64),
) {
    let is_there = |block: &u64| {
        let at = file.stripe.locate(*block);
        (file.server_of(*block), at.disk) == (ServerId(PART), DiskId(disk))
    };
    let block = (0..).find(is_there).unwrap();
    let range = file.stripe.block_range(block, file.bytes);
    let new = image(seed, range.length());
    write(client, file, range.start, &new).await;
    overwrite(content, range.start, &new);
    // The server of the copy may have left.
    let _ = client.flush(file, false).await;
    client.world().sleep(Duration::from_ms(5)).await;
}

/// Loses the disks of the part for the `number`th time. Returns what a client then reads from the
/// copy in its place.
pub(crate) async fn content_without_part(cluster: &Cluster, name: &str, number: u64) -> Vec<u8> {
    cluster.machine.kill(PART);
    let _server = replace_server(&cluster.machine, &cluster.shape, PART, number);
    let client = cluster.start(2).connect().await.unwrap();
    let file = client.open(name).await.unwrap();
    read(&client, &file).await
}

/// Starts the server of the copy again, which was killed.
pub(crate) fn restart_copy(cluster: &Cluster) -> TaskHandle {
    cluster.machine.restart(COPY);
    start_server(&cluster.machine, &cluster.shape, COPY)
}

/// First block of an object on the first disk of a server.
async fn first_block(cluster: &Cluster, server: u32, object: FileId) -> Vec<u8> {
    let world = cluster.machine.world(server);
    world.disks()[0].read(object, 0, 64).await.unwrap().to_vec()
}

#[test]
fn a_copy_that_lost_what_it_had_not_stored_is_renewed() {
    for_each_seed("mirror_faults", "a_copy_that_lost_what_it_had_not_stored", 20, |seed| {
        run_with((shape(seed), RECORD_CHANGE), |own| async move {
            let start = own.start(0);
            let client = start.connect().await.unwrap();
            let (file, mut content) = stored_file(&client, &own.shape, "f").await;
            change_part(&client, &file, &mut content, (0, 90)).await;
            // Nobody has asked for a sync yet.
            own.machine.kill(COPY);
            let _server = restart_copy(&own);
            let other = own.start(1).connect().await.unwrap();
            let opened = other.open("f").await.unwrap();
            other.flush(&opened, true).await.unwrap();
            until_equal(&start, &other).await;
            let found = content_without_part(&own, "f", 1).await;
            expect_equal(&found, &content, "what a sync has acknowledged");
        });
    });
}

#[test]
fn a_sync_without_the_copy_is_known_when_the_part_is_lost() {
    // The catalogue is told before the sync is answered, however long that takes.
    run_with((shape(1), Duration::from_ms(20)), |own| async move {
        let client = own.start(0).connect().await.unwrap();
        let (file, mut content) = stored_file(&client, &own.shape, "f").await;
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: true }).await;
        change_part(&client, &file, &mut content, (0, 90)).await;
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: false }).await;
        client.flush(&file, true).await.unwrap();
        own.machine.kill(PART);
        let _server = replace_server(&own.machine, &own.shape, PART, 1);
        let client = own.start(1).connect().await.unwrap();
        client.open("f").await.unwrap();
        // What the copy has is not read, since it may be old.
        assert_eq!(refused_blocks(&client, &(file, content)).await, 4);
    });
}

#[test]
fn a_copy_that_misses_a_change_while_it_is_renewed_is_renewed_again() {
    run_with((shape(1), RECORD_CHANGE), |own| async move {
        let start = own.start(0);
        let client = start.connect().await.unwrap();
        let (file, mut content) = stored_file(&client, &own.shape, "f").await;
        own.machine.kill(COPY);
        change_part(&client, &file, &mut content, (0, 90)).await;
        change_part(&client, &file, &mut content, (1, 91)).await;
        // The second disk of the copy is renewed last, and long.
        disrupt(&own, Disruption::DiskIsSlow { node: COPY, disk: 1, times: 10_000 }).await;
        let _server = restart_copy(&own);
        let other = own.start(1).connect().await.unwrap();
        let opened = other.open("f").await.unwrap();
        let part = first_block(&own, PART, file.file).await;
        until(&own, "the first disk is renewed", async || {
            first_block(&own, COPY, copy_object(file.file)).await == part
        })
        .await;
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: true }).await;
        change_part(&other, &opened, &mut content, (0, 92)).await;
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: false }).await;
        disrupt(&own, Disruption::DiskIsSlow { node: COPY, disk: 1, times: 1 }).await;
        let client = start.connect().await.unwrap();
        until_equal(&start, &client).await;
        let found = content_without_part(&own, "f", 1).await;
        expect_equal(&found, &content, "what was written without the copy");
    });
}

#[test]
fn bytes_that_a_cut_freed_without_the_copy_do_not_come_back() {
    run_with((shape(1), RECORD_CHANGE), |own| async move {
        let start = own.start(0);
        let client = start.connect().await.unwrap();
        let (mut file, _) = stored_file(&client, &own.shape, "f").await;
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: true }).await;
        client.set_size(&mut file, 0).await.unwrap_err();
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: false }).await;
        client.set_size(&mut file, 0).await.unwrap();
        until_equal(&start, &client).await;
        client.set_size(&mut file, FILE_BYTES).await.unwrap();
        client.flush(&file, true).await.unwrap();
        let found = content_without_part(&own, "f", 1).await;
        expect_equal(&found, &[0; FILE_BYTES as usize], "a file that was cut to nothing");
    });
}

#[test]
fn a_write_over_an_earlier_connection_does_not_come_after_later_changes() {
    // The slow disk of the copy has a write when the connection over which it came goes silent. The
    // file is cut over the next connection, before that disk has made the write.
    run_with((shape(1), Duration::from_ms(5)), |own| async move {
        let start = own.start(0);
        let client = start.connect().await.unwrap();
        let file = create_alone(&client, &own.shape, "f", FILE_BYTES).await.unwrap();
        let other = own.start(1).connect().await.unwrap();
        let mut opened = other.open("f").await.unwrap();
        // 4 s for each request.
        disrupt(&own, Disruption::DiskIsSlow { node: COPY, disk: 0, times: 20_000 }).await;
        let writing = async {
            let pool = BufferPool::new(&client, 64).await.unwrap();
            let buffer = pool.take(64).unwrap();
            buffer.fill(&image(1, 64).into());
            // It may fail: the other client cuts the file meanwhile.
            let _ = buffer.transfer(Direction::Write, &file, 64).await;
        };
        let cutting = async {
            start.world.sleep(Duration::from_ms(20)).await;
            // Nobody learns of this until server 1 gets no answer.
            own.machine.cut(PART, COPY);
            other.set_size(&mut opened, 0).await.unwrap();
            other.set_size(&mut opened, FILE_BYTES).await.unwrap();
        };
        join(writing, cutting).await;
        start.world.sleep(Duration::from_ms(6_000)).await;
        other.flush(&opened, true).await.unwrap();
        until_equal(&start, &other).await;
        expect_copies_equal(&own, &opened).await;
        let found = content_without_part(&own, "f", 1).await;
        expect_equal(&found, &[0; FILE_BYTES as usize], "a file that was cut to nothing");
    });
}

#[test]
fn a_file_that_is_removed_while_its_copy_is_renewed_leaves_nothing() {
    run_with((shape(1), RECORD_CHANGE), |own| async move {
        let start = own.start(0);
        let client = start.connect().await.unwrap();
        let (file, mut content) = stored_file(&client, &own.shape, "f").await;
        own.machine.kill(COPY);
        change_part(&client, &file, &mut content, (0, 90)).await;
        let _ = client.close(&file).await;
        // The copy is read for 2 s, to be compared, and would be written then.
        disrupt(&own, Disruption::DiskIsSlow { node: COPY, disk: 0, times: 10_000 }).await;
        let _server = restart_copy(&own);
        start.world.sleep(Duration::from_ms(1_500)).await;
        let client = own.start(1).connect().await.unwrap();
        client.remove("f").await.unwrap();
        start.world.sleep(Duration::from_ms(20_000)).await;
        for server in 0..own.shape.servers {
            for disk in own.machine.world(server).disks() {
                for object in [file.file, copy_object(file.file)] {
                    let left = disk.metadata(object).await.unwrap().map_or(0, |it| it.length);
                    assert_eq!(left, 0, "bytes of {object} at server {server}");
                }
            }
        }
    });
}

/// Stops all servers, as a user does, and starts them again.
async fn stop_and_start(own: &Cluster, client: &TestClient) -> Vec<TaskHandle> {
    client.stop_servers().await.unwrap();
    own.engine.sleep(Duration::from_ms(10_000)).await;
    let restart = |server| {
        own.machine.kill(server);
        own.machine.restart(server);
    };
    (0..own.shape.servers).for_each(restart);
    let start = |server| start_server(&own.machine, &own.shape, server);
    (0..own.shape.servers).map(start).collect()
}

/// Servers whose copies may be behind, as the catalogue has recorded.
async fn recorded_behind(client: &TestClient) -> Vec<ServerId> {
    client.status().await.swap_remove(0).unwrap().behind
}

#[test]
fn the_catalogue_learns_after_a_restart_that_no_copy_is_behind() {
    run_with((shape(1), RECORD_CHANGE), |own| async move {
        let start = own.start(0);
        let client = start.connect().await.unwrap();
        let (removed, mut content) = stored_file(&client, &own.shape, "removed").await;
        let (kept, content_kept) = stored_file(&client, &own.shape, "kept").await;
        client.close(&kept).await.unwrap();
        own.machine.kill(COPY);
        change_part(&client, &removed, &mut content, (0, 90)).await;
        until(&own, "it is recorded", async || recorded_behind(&client).await == [ServerId(PART)])
            .await;
        let _ = client.close(&removed).await;
        let _server = restart_copy(&own);
        let client = own.start(1).connect().await.unwrap();
        // Now no copy is behind. The servers end before the catalogue is told.
        client.remove("removed").await.unwrap();
        assert_eq!(recorded_behind(&client).await, [ServerId(PART)]);
        let _servers = stop_and_start(&own, &client).await;
        start.world.sleep(Duration::from_ms(5_000)).await;
        let client = start.connect().await.unwrap();
        assert_eq!(recorded_behind(&client).await, []);
        let found = content_without_part(&own, "kept", 1).await;
        expect_equal(&found, &content_kept, "a file with an equal copy");
    });
}

#[test]
fn a_write_that_began_before_protection_is_in_the_copy() {
    let shape = Shape { protection: Protection::None, ..shape(1) };
    run_with((shape, RECORD_CHANGE), |own| async move {
        let start = own.start(0);
        let client = start.connect().await.unwrap();
        let file = create_alone(&client, &own.shape, "f", FILE_BYTES).await.unwrap();
        let other = own.start(1).connect().await.unwrap();
        disrupt(&own, Disruption::DiskIsSlow { node: PART, disk: 0, times: 5_000 }).await;
        let mut content = vec![0; FILE_BYTES as usize];
        let writing = change_part(&client, &file, &mut content, (0, 90));
        let protecting = async {
            start.world.sleep(Duration::from_ms(20)).await;
            other.protect(&file, Protection::Mirror).await.unwrap();
        };
        join(writing, protecting).await;
        disrupt(&own, Disruption::DiskIsSlow { node: PART, disk: 0, times: 1 }).await;
        start.world.sleep(Duration::from_ms(2_000)).await;
        client.flush(&file, true).await.unwrap();
        until_equal(&start, &client).await;
        let found = content_without_part(&own, "f", 1).await;
        expect_equal(&found, &content, "a protected file");
    });
}

#[test]
fn parity_that_missed_a_change_and_loses_power_gets_the_changes_before() {
    for_each_seed("mirror_faults", "parity_that_missed_a_change", 20, |seed| {
        let shape = Shape { protection: Protection::Parity { blocks: 2 }, ..shape(seed) };
        run_with((shape, RECORD_CHANGE), |own| async move {
            let start = own.start(0);
            let client = start.connect().await.unwrap();
            let bytes = 64 * 100;
            let file = create_alone(&client, &own.shape, "f", bytes).await.unwrap();
            let mut content = image(seed, bytes);
            write(&client, &file, 0, &content).await;
            client.flush(&file, true).await.unwrap();
            let rows = file.protection.rows(&file.stripe).unwrap();
            let is_there = |block: &u64| {
                let parity = rows.parity(block / 2);
                let parity_at = file.pool.server(parity.server);
                (file.server_of(*block), parity_at, parity.disk)
                    == (ServerId(PART), ServerId(COPY), DiskId(0))
            };
            let blocks: Vec<u64> = (0..100).filter(is_there).collect();
            for (turn, block) in blocks.into_iter().enumerate() {
                // The parity has the first change, which is not stored. Then its disk fails.
                let fails = turn > 0;
                disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails }).await;
                let new = image(seed + 90 + turn as u64, 64);
                write(&client, &file, 64 * block, &new).await;
                overwrite(&mut content, 64 * block, &new);
                client.flush(&file, false).await.unwrap();
            }
            own.machine.kill(COPY);
            disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: false }).await;
            let _copy = restart_copy(&own);
            let client = own.start(2).connect().await.unwrap();
            until_equal(&start, &client).await;
            expect_copies_equal(&own, &file).await;
            let found = content_without_part(&own, "f", 1).await;
            expect_equal(&found, &content, "what the rest of the rows has");
        });
    });
}
