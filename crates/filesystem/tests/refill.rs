//! Proves: what a lost disk had is filled again from copies while clients read and write, whatever
//! crashes meanwhile; and what no copy is sure to have is never read, not as zeros either.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{TestClient, overwrite, read, write, write_from};
use crate::support;

use filesystem::{BufferPool, Fault};
use policy::{Direction, Protection};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Cluster, Numbers, Shape, Start, cluster_with_faults, create_alone, expect_copies_equal,
    for_each_seed, image, replace_server, start_replaced,
};
use units::{ByteRange, Duration, ServerId};
use wire::{FileRecord, RefillStatus};
use world::Clock;

/// Time that a change of records takes.
const RECORD_CHANGE: Duration = Duration::from_us(100);

/// Time within which everything must be filled.
const REFILL_MAX: Duration = Duration::from_ms(60_000);

fn shape(seed: u64) -> Shape {
    let large = seed % 16 == 15;
    Shape {
        servers: 2 + (seed % 3) as u32,
        disks_per_server: 1 + (seed / 3 % 2) as u32,
        clients: 3,
        cache_blocks: seed / 6 % 9,
        client_caches: false,
        copies: seed.is_multiple_of(4),
        protection: Protection::Mirror,
        // Objects of more than one piece.
        block_bytes: if large { 300_000 } else { 64 },
        refill_rate: match seed % 5 {
            _ if large => Some(4_000_000),
            0 => None,
            _ => Some(300),
        },
        seed,
        ..Shape::default()
    }
}

/// Runs a program, which returns what it counted, for each of `seeds` seeds: with a cluster, a
/// client, files that are stored, and numbers. Returns the sum; `None` if one seed is repeated.
fn count_with_files<F: Future<Output = usize> + 'static>(
    (test, seeds): (&str, u64),
    shape: impl Fn(u64) -> Shape,
    program: impl Fn(Rc<Cluster>, Start, Files, Numbers) -> F + Copy + 'static,
) -> Option<usize> {
    let all = Cell::new(0);
    for_each_seed("refill", test, seeds, |seed| {
        let cluster = cluster_with_faults(shape(seed), RECORD_CHANGE);
        let own = Rc::clone(&cluster);
        let counted = async move {
            let (start, mut numbers) = (own.start(0), Numbers::new(seed));
            let files = stored_files(&start, &mut numbers).await;
            program(own, start, files, numbers).await
        };
        let count = cluster.engine.run(counted).unwrap();
        all.update(|all| all + count);
    });
    support::only_seed().is_none().then(|| all.get())
}

/// Files with their contents.
type Files = Vec<(FileRecord, Vec<u8>)>;

/// Makes some files that are stored.
async fn stored_files(start: &Start, numbers: &mut Numbers) -> Files {
    let client = start.connect().await.unwrap();
    let mut files = Files::new();
    for number in 0..1 + numbers.below(4) {
        let bytes = 1 + numbers.below(start.shape.block_bytes * 20);
        let name = format!("f{number}");
        let file = create_alone(&client, &start.shape, &name, bytes).await.unwrap();
        let content = image(numbers.below(1 << 20), bytes);
        write(&client, &file, 0, &content).await;
        client.flush(&file, true).await.unwrap();
        client.close(&file).await.unwrap();
        files.push((file, content));
    }
    files
}

/// Checks that files are what they must be.
async fn check(client: &TestClient, files: &Files, when: &str) {
    for (file, content) in files {
        let opened = client.open(&file.name).await.unwrap();
        let found = read(client, &opened).await;
        support::expect_equal(&found, content, &format!("{} {when}", file.name));
        client.close(&opened).await.unwrap();
    }
}

/// Changes a file in some way, and stores it if `stores`.
async fn change(
    client: &TestClient,
    (file, content): &mut (FileRecord, Vec<u8>),
    numbers: &mut Numbers,
    stores: bool,
) {
    let mut opened = client.open(&file.name).await.unwrap();
    let block = opened.stripe.block_bytes;
    match numbers.below(6) {
        0 => {
            let bytes = numbers.below(opened.bytes + 1);
            client.set_size(&mut opened, bytes).await.unwrap();
            content.truncate(bytes as usize);
        }
        1 => {
            let bytes = opened.bytes + numbers.below(3 * block);
            client.grow(&mut opened, bytes).await.unwrap();
            content.resize(bytes as usize, 0);
        }
        _ => {
            let offset = numbers.below(opened.bytes + block);
            let bytes = image(numbers.below(1 << 20), 1 + numbers.below(3 * block));
            let end = offset + bytes.len() as u64;
            client.grow(&mut opened, end).await.unwrap();
            write(client, &opened, offset, &bytes).await;
            overwrite(content, offset, &bytes);
        }
    }
    if stores {
        client.flush(&opened, true).await.unwrap();
    }
    client.close(&opened).await.unwrap();
    *file = opened;
}

async fn refill_of(client: &TestClient, server: u32) -> RefillStatus {
    client.status().await.swap_remove(server as usize).unwrap().refill
}

/// Waits until nothing is to be filled any more.
pub(crate) async fn until_filled(start: &Start, client: &TestClient, server: u32) -> RefillStatus {
    let limit = start.now() + REFILL_MAX;
    loop {
        let status = refill_of(client, server).await;
        if status.files == 0 && status.unlisted_disks == 0 {
            return status;
        }
        assert!(start.now() < limit, "{status:?}");
        start.world.sleep(Duration::from_ms(50)).await;
    }
}

/// Checks that nothing is lacking, or behind, any more.
async fn check_whole(cluster: &Cluster, start: &Start, files: &Files, server: u32) {
    let client = start.connect().await.unwrap();
    let filled = until_filled(start, &client, server).await;
    assert_eq!(filled.lost_files, 0, "{filled:?}");
    check(&client, files, "when all is filled").await;
    start.world.sleep(Duration::from_ms(5_000)).await;
    for (file, _) in files {
        let opened = client.open(&file.name).await.unwrap();
        client.flush(&opened, true).await.unwrap();
        client.close(&opened).await.unwrap();
        expect_copies_equal(cluster, &opened).await;
    }
    for (number, status) in client.status().await.into_iter().enumerate() {
        let status = status.unwrap();
        let behind = (status.files_behind, status.behind, status.refill.files);
        assert_eq!(behind, (0, Vec::new(), 0), "server {number}");
    }
}

#[test]
fn a_lost_disk_is_filled_while_clients_read_and_write() {
    let counted = count_with_files(
        ("a_lost_disk_is_filled_while_clients", 80),
        shape,
        |own, start, mut files, mut numbers| async move {
            let mut count = 0;
            let lost = numbers.below(own.shape.servers.into()) as u32;
            own.machine.kill(lost);
            start.world.sleep(Duration::from_us(numbers.below(3_000_000))).await;
            let _server = replace_server(&own.machine, &own.shape, lost, 1);
            let client = start.connect().await.unwrap();
            if numbers.below(2) == 0 {
                check(&client, &files, "while it is filled").await;
            }
            for _ in 0..30 {
                let is_filling = refill_of(&client, lost).await.files > 0;
                count += usize::from(is_filling);
                let one = numbers.below(files.len() as u64) as usize;
                let stores = numbers.below(3) == 0;
                change(&client, &mut files[one], &mut numbers, stores).await;
                if numbers.below(4) == 0 {
                    check(&client, &files, "after a change").await;
                }
                if numbers.below(8) == 0 {
                    // Refused where a part is being filled; then it is tried again.
                    let file = client.stat(&files[one].0.name).await.unwrap().into_file().unwrap();
                    let ceased = client.protect(&file, Protection::None).await;
                    assert!(matches!(ceased, Ok(()) | Err(Fault::BadRequest { .. })), "{ceased:?}");
                    check(&client, &files, "without protection").await;
                }
                start.world.sleep(Duration::from_us(numbers.below(200_000))).await;
            }
            let client = start.connect().await.unwrap();
            until_filled(&start, &client, lost).await;
            for (file, _) in &files {
                let file = client.stat(&file.name).await.unwrap().into_file().unwrap();
                client.protect(&file, Protection::None).await.unwrap();
                let bare = FileRecord { protection: Protection::None, ..file };
                client.protect(&bare, Protection::Mirror).await.unwrap();
            }
            start.world.sleep(Duration::from_ms(5_000)).await;
            check_whole(&own, &start, &files, lost).await;
            count
        },
    );
    assert!(counted.is_none_or(|all| all > 200), "{counted:?} changes prove little");
}

#[test]
fn a_refill_goes_on_after_crashes() {
    let counted = count_with_files(
        ("a_refill_goes_on_after_crashes", 80),
        shape,
        |own, start, mut files, mut numbers| async move {
            let mut count = 0;
            let lost = numbers.below(own.shape.servers.into()) as u32;
            own.machine.kill(lost);
            let mut servers = vec![replace_server(&own.machine, &own.shape, lost, 9)];
            for _ in 0..4 {
                start.world.sleep(Duration::from_us(numbers.below(1_000_000))).await;
                if let Ok(client) = start.connect().await {
                    let one = numbers.below(files.len() as u64) as usize;
                    change(&client, &mut files[one], &mut numbers, true).await;
                }
                start.world.sleep(Duration::from_us(numbers.below(1_000_000))).await;
                // The server itself, or any other.
                let any = numbers.below(own.shape.servers.into()) as u32;
                let victim = numbers.pick(&[lost, any]);
                own.machine.kill(victim);
                start.world.sleep(Duration::from_us(numbers.below(1_000_000))).await;
                own.machine.restart(victim);
                let replacement = if victim == lost { 9 } else { 0 };
                let again = start_replaced(&own.machine, &own.shape, victim, replacement);
                servers.push(again);
                start.world.sleep(Duration::from_us(numbers.below(3_000_000))).await;
                let client = start.connect().await.unwrap();
                check(&client, &files, "after a crash").await;
                count += 1;
            }
            check_whole(&own, &start, &files, lost).await;
            count
        },
    );
    assert!(counted.is_none_or(|all| all > 100), "{counted:?} crashes prove little");
}

/// Reads every block of a file. Returns how many were refused; others must be right.
pub(crate) async fn refused_blocks(
    client: &TestClient,
    (file, content): &(FileRecord, Vec<u8>),
) -> usize {
    let mut refused = 0;
    for block in file.stripe.blocks_in(ByteRange::new(0, file.bytes)) {
        let range = file.stripe.block_range(block, file.bytes);
        let pool = BufferPool::new(client, range.length()).await.unwrap();
        let buffer = pool.take(range.length()).unwrap();
        match buffer.transfer(Direction::Read, file, range.start).await {
            Ok(()) => {
                let wanted = &content[range.start as usize..range.end as usize];
                assert!(*buffer.payload() == *wanted, "block {block} has other bytes");
            }
            Err(Fault::Corrupt { .. } | Fault::ServerLeft { .. }) => refused += 1,
            Err(fault) => panic!("block {block}: {fault}"),
        }
    }
    refused
}

#[test]
fn what_has_no_copy_is_lost_and_never_zeros() {
    let shape = |seed| Shape { protection: Protection::None, ..shape(seed % 15) };
    let counted = count_with_files(
        ("what_has_no_copy_is_lost", 60),
        shape,
        |own, start, mut files, mut numbers| async move {
            let mut count = 0;
            let lost = numbers.below(own.shape.servers.into()) as u32;
            own.machine.kill(lost);
            let mut servers = vec![replace_server(&own.machine, &own.shape, lost, 9)];
            for pass in 0..2 {
                let client = start.connect().await.unwrap();
                let status = until_filled(&start, &client, lost).await;
                assert_eq!(status.lost_files, files.len() as u64);
                for one in &files {
                    let opened = client.open(&one.0.name).await.unwrap();
                    assert_eq!(opened.bytes, one.0.bytes, "the catalogue knows its size");
                    let found = refused_blocks(&client, one).await;
                    let blocks = opened.stripe.blocks_in(ByteRange::new(0, opened.bytes));
                    let there = blocks.filter(|it| opened.server_of(*it) == ServerId(lost)).count();
                    assert_eq!(found, there, "pass {pass}: {opened:?}");
                    count += found;
                    let scrubbed = client.scrub(&opened).await.unwrap();
                    assert_eq!(scrubbed.damaged.is_empty(), found == 0, "{scrubbed:?}");
                    client.close(&opened).await.unwrap();
                }
                own.machine.kill(lost);
                own.machine.restart(lost);
                servers.push(start_replaced(&own.machine, &own.shape, lost, 9));
            }
            // A file that is written anew has lost nothing any more, nor has one that is removed.
            let client = start.connect().await.unwrap();
            for one in &mut files[1..] {
                let mut opened = client.open(&one.0.name).await.unwrap();
                client.set_size(&mut opened, 0).await.unwrap();
                one.1 = image(numbers.below(1 << 20), 700);
                client.grow(&mut opened, 700).await.unwrap();
                write(&client, &opened, 0, &one.1).await;
                client.flush(&opened, true).await.unwrap();
                client.close(&opened).await.unwrap();
            }
            let first = files.remove(0).0;
            client.remove(&first.name).await.unwrap();
            check(&client, &files, "when it was written anew").await;
            assert_eq!(refill_of(&client, lost).await.lost_files, 0);
            count
        },
    );
    assert!(counted.is_none_or(|all| all > 300), "{counted:?} refusals prove little");
}

#[test]
fn two_lost_disks_are_never_read_as_zeros() {
    let counted = count_with_files(
        ("two_lost_disks_are_never_read_as_zeros", 60),
        shape,
        |own, start, files, mut numbers| async move {
            let mut count = 0;
            let first = numbers.below(own.shape.servers.into()) as u32;
            let second = (first + 1) % own.shape.servers;
            own.machine.kill(first);
            let mut servers = vec![replace_server(&own.machine, &own.shape, first, 9)];
            start.world.sleep(Duration::from_us(numbers.below(2_000_000))).await;
            own.machine.kill(second);
            servers.push(replace_server(&own.machine, &own.shape, second, 5));
            for _ in 0..4 {
                start.world.sleep(Duration::from_us(numbers.below(9_000_000))).await;
                let client = start.connect().await.unwrap();
                for one in &files {
                    let opened = client.open(&one.0.name).await.unwrap();
                    let found = refused_blocks(&client, one).await;
                    count += found;
                    client.close(&opened).await.unwrap();
                }
            }
            // All else is filled, and what is lost can be written anew.
            let client = start.connect().await.unwrap();
            until_filled(&start, &client, first).await;
            for (file, _) in &files {
                let mut opened = client.open(&file.name).await.unwrap();
                client.set_size(&mut opened, 0).await.unwrap();
                client.grow(&mut opened, 400).await.unwrap();
                write(&client, &opened, 0, &[7; 400]).await;
                client.flush(&opened, true).await.unwrap();
                assert!(read(&client, &opened).await == [7; 400]);
                client.close(&opened).await.unwrap();
            }
            start.world.sleep(Duration::from_ms(8_000)).await;
            for status in client.status().await {
                let status = status.unwrap();
                let left = (status.refill.files, status.refill.lost_files, status.files_behind);
                assert_eq!(left, (0, 0, 0));
            }
            for (file, _) in &files {
                let opened = client.open(&file.name).await.unwrap();
                client.flush(&opened, true).await.unwrap();
                client.close(&opened).await.unwrap();
                expect_copies_equal(&own, &opened).await;
            }
            count
        },
    );
    assert!(counted.is_none_or(|all| all > 100), "{counted:?} refusals prove little");
}

#[test]
fn a_copy_that_was_behind_never_counts_for_a_new_disk() {
    // Server 0 keeps the catalogue, which must know of it.
    let shape = |seed| Shape { servers: 3, cache_blocks: 0, ..shape(seed % 15) };
    let counted = count_with_files(
        ("a_copy_that_was_behind_never_counts", 60),
        shape,
        |own, start, mut files, mut numbers| async move {
            let mut count = 0;
            let part = numbers.below(2) as u32;
            let (lost, copy) = (part, part + 1);
            let client = start.connect().await.unwrap();
            let (file, content) = &mut files[0];
            let opened = client.open(&file.name).await.unwrap();
            let blocks = opened.stripe.blocks_in(ByteRange::new(0, opened.bytes));
            let of_part: Vec<u64> =
                blocks.filter(|block| opened.server_of(*block) == ServerId(lost)).collect();
            if of_part.is_empty() {
                return 0;
            }
            let pool = BufferPool::new(&client, own.shape.block_bytes).await.unwrap();
            own.machine.kill(copy);
            for block in of_part {
                let range = opened.stripe.block_range(block, opened.bytes);
                let new = image(numbers.below(1 << 20), range.length());
                write_from(&pool, &opened, range.start, &new).await;
                content[range.start as usize..range.end as usize].copy_from_slice(&new);
            }
            // Its server has left, but the change is stored here and recorded.
            assert!(client.flush(&opened, true).await.is_err());
            start.world.sleep(Duration::from_ms(50)).await;
            own.machine.kill(lost);
            own.machine.restart(copy);
            let mut servers = vec![start_replaced(&own.machine, &own.shape, copy, 0)];
            for number in 1..4 {
                servers.push(replace_server(&own.machine, &own.shape, lost, number));
                start.world.sleep(Duration::from_us(numbers.below(4_000_000))).await;
                let client = start.connect().await.unwrap();
                until_filled(&start, &client, lost).await;
                for one in &files {
                    let opened = client.open(&one.0.name).await.unwrap();
                    let found = refused_blocks(&client, one).await;
                    count += found;
                    client.close(&opened).await.unwrap();
                }
                own.machine.kill(lost);
            }
            count
        },
    );
    assert!(counted.is_none_or(|all| all > 300), "{counted:?} refusals prove little");
}
