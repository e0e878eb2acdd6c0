//! Proves: the parity of files is that of their rows, whatever crashes and however they are written
//! and cut; damaged and lost bytes are made from the rest of their rows; and parity that may lack
//! changes is never used.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::mirrors::{RECORD_CHANGE, check_changes, check_collectives, stored_file_of};
use crate::refill::until_filled;
use crate::sizes::{TestClient, overwrite, read, write};
use crate::support;

use filesystem::{BufferPool, Fault};
use policy::{Direction, Protection, copy_object};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Numbers, Shape, Start, cluster_with_faults, create_alone, expect_copies_equal, for_each_seed,
    image, replace_server, start_server,
};
use units::{Duration, ServerId};
use wire::{FileRecord, Scrubbed};
use world::Clock;

fn shape(seed: u64) -> Shape {
    let servers = 2 + (seed % 5) as u32;
    Shape {
        servers,
        disks_per_server: 1 + (seed / 5 % 2) as u32,
        clients: 3,
        cache_blocks: seed / 10 % 9,
        client_caches: false,
        protection: Protection::Parity { blocks: (seed / 3) as u32 % servers },
        seed,
        ..Shape::default()
    }
}

#[test]
fn parity_is_that_of_the_rows_when_a_file_is_stored() {
    for_each_seed("parity", "parity_is_that_of_the_rows_when_a_file_is_stored", 120, |seed| {
        check_changes(shape(seed));
    });
}

#[test]
fn collectives_write_parity_too() {
    for_each_seed("parity", "collectives_write_parity_too", 60, |seed| {
        check_collectives(Shape { clients: 4, ..shape(seed) });
    });
}

/// Makes a file that is stored, and returns it with its content.
async fn stored_file(start: &Start, seed: u64) -> (TestClient, FileRecord, Vec<u8>) {
    // No server can have all of its blocks in its cache.
    stored_file_of(start, seed, 300 * u64::from(start.shape.servers) + seed * 97 % 3_000).await
}

#[test]
fn damaged_bytes_are_made_from_the_rest_of_their_rows() {
    for_each_seed("parity", "damaged_bytes_are_made_from_the_rest_of_their_rows", 80, |seed| {
        let cluster = cluster_with_faults(Shape { cache_blocks: 1, ..shape(seed) }, RECORD_CHANGE);
        let own = Rc::clone(&cluster);
        let check = async move {
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
                // Then the parity is needed no more.
                for server in 0..own.shape.servers {
                    own.machine.damage((server, disk), copy_object(file.file), 0..u64::MAX);
                }
            }
        };
        cluster.engine.run(check).unwrap();
    });
}

#[test]
fn a_scrub_finds_and_repairs_all_damage() {
    for_each_seed("parity", "a_scrub_finds_and_repairs_all_damage", 80, |seed| {
        let cluster = cluster_with_faults(Shape { cache_blocks: 1, ..shape(seed) }, RECORD_CHANGE);
        let own = Rc::clone(&cluster);
        let check = async move {
            let (client, file, content) = stored_file(&own.start(0), seed).await;
            let sound = client.scrub(&file).await.unwrap();
            let nothing = Scrubbed { bytes: sound.bytes, ..Scrubbed::default() };
            assert_eq!(sound, nothing);
            assert!(sound.bytes >= file.bytes);
            let mut numbers = Numbers::new(seed);
            let server = file.pool.server(ServerId(0)).0;
            let (at, length) = (numbers.below(40), 1 + numbers.below(20));
            own.machine.damage((server, 0), file.file, at..at + length);
            let found = client.scrub(&file).await.unwrap();
            assert_eq!(found, Scrubbed { repaired: 1, ..nothing.clone() });
            assert_eq!(client.scrub(&file).await.unwrap(), nothing);
            let server = file.pool.server(ServerId(1)).0;
            own.machine.damage((server, 0), copy_object(file.file), 3..7);
            let found = client.scrub(&file).await.unwrap();
            assert!(found.damaged.is_empty() && found.damaged_copies.is_empty(), "{found:?}");
            assert!(found.repaired == 0 && found.repaired_copies <= 1, "{found:?}");
            // Where others' rows had a part of the damage, all is made anew.
            own.start(0).world.sleep(Duration::from_ms(3_000)).await;
            assert_eq!(client.scrub(&file).await.unwrap(), nothing);
            expect_copies_equal(&own, &file).await;
            let file = client.open("f").await.unwrap();
            assert!(read(&client, &file).await == content);
        };
        cluster.engine.run(check).unwrap();
    });
}

/// Changes a file, and the bytes that it should have.
async fn change_too(
    client: &TestClient,
    file: &mut FileRecord,
    expected: &mut Vec<u8>,
    numbers: &mut Numbers,
) {
    let bytes = expected.len() as u64;
    match numbers.below(5) {
        0 => {
            let size = numbers.below(bytes + 1);
            client.set_size(file, size).await.unwrap();
            expected.truncate(size as usize);
        }
        1 => {
            let size = bytes + numbers.below(200);
            client.grow(file, size).await.unwrap();
            expected.resize(size as usize, 0);
        }
        _ if bytes == 0 => {}
        _ => {
            let offset = numbers.below(bytes);
            let data = image(numbers.below(1 << 20), 1 + numbers.below(bytes - offset));
            write(client, file, offset, &data).await;
            overwrite(expected, offset, &data);
        }
    }
    if numbers.below(3) == 0 {
        client.flush(file, numbers.below(2) == 0).await.unwrap();
    }
}

#[test]
fn a_lost_server_is_filled_again_from_the_rest_of_the_rows() {
    for_each_seed("parity", "a_lost_server_is_filled_again", 120, |seed| {
        let cluster = cluster_with_faults(shape(seed), RECORD_CHANGE);
        let own = Rc::clone(&cluster);
        let check = async move {
            let start = own.start(0);
            let (client, file, content) = stored_file(&start, seed).await;
            let expected = Rc::new(content);
            let mut numbers = Numbers::new(seed);
            let lost = numbers.below(u64::from(own.shape.servers)) as u32;
            drop(client);
            own.machine.kill(lost);
            own.engine.sleep(Duration::from_ms(10)).await;
            let number = 1 + seed;
            let _server = replace_server(&own.machine, &own.shape, lost, number);
            own.engine.sleep(Duration::from_us(numbers.below(3_000))).await;
            let client = start.connect().await.unwrap();
            let mut file = client.open(&file.name).await.unwrap();
            assert!(read(&client, &file).await == *expected, "while it is filled");
            let mut expected = expected.to_vec();
            for _ in 0..numbers.below(12) {
                change_too(&client, &mut file, &mut expected, &mut numbers).await;
                own.engine.sleep(Duration::from_us(numbers.below(500))).await;
            }
            assert!(read(&client, &file).await == expected, "after changes");
            client.flush(&file, true).await.unwrap();
            until_filled(&start, &client, lost).await;
            assert!(read(&client, &file).await == expected, "when it is filled");
            client.close(&file).await.unwrap();
            // What other servers could not send meanwhile is sent again.
            own.engine.sleep(Duration::from_ms(5_000)).await;
            for status in client.status().await {
                let status = status.unwrap();
                assert_eq!((status.files_behind, status.behind), (0, Vec::new()));
            }
            expect_copies_equal(&own, &file).await;
            // Then any other one can be lost.
            let next = numbers.below(u64::from(own.shape.servers)) as u32;
            own.machine.kill(next);
            own.engine.sleep(Duration::from_ms(10)).await;
            let _server = replace_server(&own.machine, &own.shape, next, number + 1);
            let client = start.connect().await.unwrap();
            let file = client.open(&file.name).await.unwrap();
            assert_eq!(file.bytes, expected.len() as u64);
            assert!(read(&client, &file).await == expected, "after another loss");
        };
        cluster.engine.run(check).unwrap();
    });
}

#[test]
fn a_second_loss_is_an_error_and_no_other_bytes() {
    for_each_seed("parity", "a_second_loss_is_an_error", 60, |seed| {
        let cluster = cluster_with_faults(
            Shape { servers: 4, protection: Protection::Parity { blocks: 0 }, ..shape(seed) },
            RECORD_CHANGE,
        );
        let own = Rc::clone(&cluster);
        let check = async move {
            let start = own.start(0);
            let (client, file, content) = stored_file(&start, seed).await;
            drop(client);
            let mut servers = Vec::new();
            for lost in [1, 2 + (seed % 2) as u32] {
                own.machine.kill(lost);
                own.engine.sleep(Duration::from_ms(1)).await;
                servers.push(replace_server(&own.machine, &own.shape, lost, 1));
            }
            let client = start.connect().await.unwrap();
            let file = client.open(&file.name).await.unwrap();
            let pool = BufferPool::new(&client, file.stripe.block_bytes).await.unwrap();
            let mut refused = 0;
            for block in 0..file.bytes.div_ceil(file.stripe.block_bytes) {
                let offset = block * file.stripe.block_bytes;
                let length = file.stripe.block_bytes.min(file.bytes - offset);
                let buffer = pool.take(length).unwrap();
                match buffer.transfer(Direction::Read, &file, offset).await {
                    Ok(_) => {
                        let bytes = buffer.payload().to_vec();
                        let range = offset as usize..(offset + length) as usize;
                        assert!(bytes == content[range], "block {block}");
                    }
                    Err(fault) => {
                        assert!(matches!(fault, Fault::Corrupt { .. }), "{fault}");
                        refused += 1;
                    }
                }
            }
            assert!(refused > 0, "two servers are lost");
        };
        cluster.engine.run(check).unwrap();
    });
}

/// A mark names the blocks that are being written, and some more.
#[test]
fn rows_that_nobody_writes_survive_a_crash_beside_a_loss() {
    let counts = Cell::new((0, 0));
    for_each_seed("parity", "rows_that_nobody_writes_survive", 60, |seed| {
        let shape =
            Shape { servers: 4, protection: Protection::Parity { blocks: 0 }, ..shape(seed) };
        let cluster = cluster_with_faults(shape, RECORD_CHANGE);
        let own = Rc::clone(&cluster);
        let (kept, refused) = cluster
            .engine
            .run(async move {
                let start = own.start(0);
                let bytes = 4_000 + seed * 97 % 3_000;
                let (client, file, mut content) = stored_file_of(&start, seed, bytes).await;
                let mut numbers = Numbers::new(seed);
                let (writer, lost) = (ServerId(0), ServerId(1 + numbers.below(3) as u32));
                let file = client.open(&file.name).await.unwrap();
                // With the disks, and not stored.
                write(&client, &file, 0, &[7]).await;
                client.flush(&file, false).await.unwrap();
                drop(client);
                let mut servers = Vec::new();
                let [writing, losing] = [writer, lost].map(|place| file.pool.server(place).0);
                own.machine.kill(writing);
                own.machine.kill(losing);
                own.engine.sleep(Duration::from_ms(1)).await;
                own.machine.restart(writing);
                servers.push(start_server(&own.machine, &own.shape, writing));
                servers.push(replace_server(&own.machine, &own.shape, losing, 1));
                let client = start.connect().await.unwrap();
                let file = client.open(&file.name).await.unwrap();
                let rows = file.protection.rows(&file.stripe).unwrap();
                let block_bytes = file.stripe.block_bytes;
                let pool = BufferPool::new(&client, block_bytes).await.unwrap();
                let (mut kept, mut refused) = (0, 0);
                for block in 0..file.bytes.div_ceil(block_bytes) {
                    let offset = block * block_bytes;
                    let length = block_bytes.min(file.bytes - offset);
                    let buffer = pool.take(length).unwrap();
                    let row = block / (rows.blocks(0).end - rows.blocks(0).start);
                    let mut pieces = rows.data(row).into_iter();
                    let is_written = pieces.any(|at| at.server == writer && at.slot <= 4);
                    match buffer.transfer(Direction::Read, &file, offset).await {
                        Ok(_) => {
                            let bytes = buffer.payload().to_vec();
                            // A crash may take what no sync has stored.
                            content[0] = if block == 0 { bytes[0] } else { content[0] };
                            let range = offset as usize..(offset + length) as usize;
                            assert!(bytes == content[range], "block {block}");
                            kept += u32::from(!is_written);
                        }
                        Err(fault) => {
                            assert!(matches!(fault, Fault::Corrupt { .. }), "{fault}");
                            assert!(is_written, "nobody writes block {block} of row {row}");
                            refused += 1;
                        }
                    }
                }
                (kept, refused)
            })
            .unwrap();
        counts.update(|(all_kept, all_refused)| (all_kept + kept, all_refused + refused));
    });
    let (kept, refused) = counts.get();
    assert!(support::only_seed().is_some() || kept > 500 && refused > 20, "{kept}, {refused}");
}
