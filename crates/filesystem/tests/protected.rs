//! Proves: servers tell how many bytes of protected files are protected now. Bytes in a cache, what
//! a copy or parity may lack, and parts that are filled again do not count; after a sync, or once
//! everything is equal again, all bytes do.
//!
//! Files have 12 blocks on 3 servers with 2 disks each: 4 blocks a server.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::mirror_faults::{COPY, FILE_BYTES, PART, disrupt, restart_copy, run_with, stored_file};
use crate::mirrors::until_equal;
use crate::refill::until_filled;
use crate::sizes::{TestClient, write};
use crate::support;

use policy::{ProtectedBytes, Protection};
use support::{Cluster, Shape, create_alone, image, replace_server};
use units::{Duration, ServerId};
use wire::FileRecord;
use world_simulated::Disruption;

/// Time that a change of records takes.
const RECORD_CHANGE: Duration = Duration::from_us(100);

/// Bytes that a server has of a file, or that its copy or parity protects.
const PART_BYTES: u64 = FILE_BYTES / 3;

const PROTECTIONS: [Protection; 2] = [Protection::Mirror, Protection::Parity { blocks: 2 }];

fn shape(protection: Protection) -> Shape {
    Shape { cache_blocks: 16, protection, ..crate::mirror_faults::shape(1) }
}

/// Runs a program with a cluster and a client for each protection.
fn with_each<F: Future<Output = ()> + 'static>(
    shape: impl Fn(Protection) -> Shape,
    program: impl Fn(std::rc::Rc<Cluster>, TestClient) -> F + Copy + 'static,
) {
    for protection in PROTECTIONS {
        run_with((shape(protection), RECORD_CHANGE), |own| async move {
            let client = own.start(0).connect().await.unwrap();
            program(own, client).await;
        });
    }
}

/// Number of bytes of a file that are protected.
async fn protected(client: &TestClient, file: &FileRecord) -> u64 {
    let protected = client.protected_bytes(file).await.unwrap().unwrap();
    assert_eq!(protected.bytes, FILE_BYTES);
    protected.protected_bytes
}

/// Sum of all files.
async fn protected_in_all(client: &TestClient) -> ProtectedBytes {
    let statuses = client.status().await;
    let parts = &statuses[0].as_ref().unwrap().protected_parts;
    let mut known = Vec::new();
    for (server, status) in (0..).map(ServerId).zip(&statuses) {
        let files = client.unprotected_at(server).await;
        assert_eq!(files.is_ok(), status.is_ok());
        known.push((server, files.ok().map(|files| files.unwrap())));
    }
    ProtectedBytes::of_servers(parts, known)
}

/// Number of the first block of a file on a server, of a row whose parity is on another one.
fn block_of(file: &FileRecord, server: u32, parity: u32) -> u64 {
    let rows = file.protection.rows(&file.stripe);
    let has_parity =
        |block| rows.as_ref().is_none_or(|rows| rows.parity(rows.row_of(block)).server.0 == parity);
    (0..).find(|block| file.server_of(*block).0 == server && has_parity(*block)).unwrap()
}

#[test]
fn bytes_in_a_cache_do_not_count_until_a_sync() {
    with_each(shape, |own, client| async move {
        let (file, _) = stored_file(&client, &own.shape, "f").await;
        assert_eq!(protected(&client, &file).await, FILE_BYTES);
        // Parts of two blocks, which stay in the caches of two servers.
        write(&client, &file, 60, &[1; 10]).await;
        assert_eq!(protected(&client, &file).await, FILE_BYTES - 10);
        // The same bytes count once.
        write(&client, &file, 62, &[2; 10]).await;
        assert_eq!(protected(&client, &file).await, FILE_BYTES - 12);
        client.flush(&file, true).await.unwrap();
        assert_eq!(protected(&client, &file).await, FILE_BYTES);
    });
}

#[test]
fn whole_blocks_count_when_they_are_written_back() {
    with_each(shape, |own, client| async move {
        let (file, _) = stored_file(&client, &own.shape, "f").await;
        write(&client, &file, 64, &[1; 128]).await;
        // They are on their way to the disks and the other servers.
        assert_eq!(protected(&client, &file).await, FILE_BYTES - 128);
        own.engine.sleep(Duration::from_ms(50)).await;
        assert_eq!(protected(&client, &file).await, FILE_BYTES, "without a sync");
    });
}

#[test]
fn what_a_copy_or_parity_may_lack_does_not_count_until_it_is_equal() {
    with_each(shape, |own, client| async move {
        let start = own.start(0);
        let (file, _) = stored_file(&client, &own.shape, "f").await;
        own.machine.kill(COPY);
        let block = block_of(&file, PART, COPY);
        write(&client, &file, block * 64, &image(7, 64)).await;
        let _ = client.flush(&file, false).await;
        own.engine.sleep(Duration::from_ms(5)).await;
        // The server that is away does not tell of its own part, either.
        assert_eq!(protected(&client, &file).await, FILE_BYTES - 2 * PART_BYTES);
        let sum = protected_in_all(&client).await;
        assert_eq!((sum.bytes, sum.protected_bytes), (FILE_BYTES, FILE_BYTES - 2 * PART_BYTES));
        let _server = restart_copy(&own);
        disrupt(&own, Disruption::DiskIsSlow { node: COPY, disk: 0, times: 1_000 }).await;
        let client = own.start(1).connect().await.unwrap();
        // It is renewed, and is no copy before it is equal. That server may have had a mark, too.
        assert!(protected(&client, &file).await <= FILE_BYTES - PART_BYTES);
        disrupt(&own, Disruption::DiskIsSlow { node: COPY, disk: 0, times: 1 }).await;
        until_equal(&start, &client).await;
        assert_eq!(protected(&client, &file).await, FILE_BYTES);
        assert!(protected_in_all(&client).await.is_whole());
    });
}

#[test]
fn a_lost_part_does_not_count_until_all_of_it_is_filled() {
    let slowly = |protection| Shape { refill_rate: Some(200), ..shape(protection) };
    with_each(slowly, |own, client| async move {
        let start = own.start(0);
        let (file, _) = stored_file(&client, &own.shape, "f").await;
        client.close(&file).await.unwrap();
        own.machine.kill(PART);
        let _server = replace_server(&own.machine, &own.shape, PART, 1);
        let client = own.start(1).connect().await.unwrap();
        let unknown = client.protected_bytes(&file).await.unwrap();
        assert_eq!(unknown, None, "it does not know yet what its directories lack");
        while client.protected_bytes(&file).await.unwrap().is_none() {
            own.engine.sleep(Duration::from_us(100)).await;
        }
        // Neither its part, nor what its copy or parity protects.
        let mut before = protected(&client, &file).await;
        assert_eq!(before, FILE_BYTES - 2 * PART_BYTES);
        let limit = own.engine.now() + Duration::from_ms(60_000);
        while before < FILE_BYTES {
            assert!(own.engine.now() < limit, "{before} bytes are protected");
            own.engine.sleep(Duration::from_ms(20)).await;
            let now = protected(&client, &file).await;
            assert!(now >= before, "{now} bytes after {before}");
            let sum = protected_in_all(&client).await;
            assert!(sum.protected_bytes >= now, "{sum:?} after {now}");
            before = now;
        }
        until_filled(&start, &client, PART).await;
        until_equal(&start, &client).await;
        assert!(protected_in_all(&client).await.is_whole());
    });
}

#[test]
fn all_files_are_summed_and_others_left_out() {
    with_each(shape, |own, client| async move {
        let (file, _) = stored_file(&client, &own.shape, "f").await;
        let (other, _) = stored_file(&client, &own.shape, "g").await;
        let bare = Shape { protection: Protection::None, ..own.shape.clone() };
        let bare = create_alone(&client, &bare, "bare", FILE_BYTES).await.unwrap();
        write(&client, &bare, 0, &[1; 10]).await;
        assert_eq!(client.protected_bytes(&bare).await.unwrap(), None);
        write(&client, &file, 0, &[1; 10]).await;
        write(&client, &other, 100, &[1; 7]).await;
        let sum = protected_in_all(&client).await;
        assert_eq!((sum.bytes, sum.protected_bytes), (2 * FILE_BYTES, 2 * FILE_BYTES - 17));
        assert_eq!(sum.percent(), 98);
        client.flush(&file, true).await.unwrap();
        client.remove("g").await.unwrap();
        client.close(&other).await.unwrap();
        own.engine.sleep(Duration::from_ms(50)).await;
        let sum = protected_in_all(&client).await;
        assert_eq!(sum, ProtectedBytes { bytes: FILE_BYTES, protected_bytes: FILE_BYTES });
    });
}

#[test]
fn many_files_are_told_in_several_answers() {
    const FILES: u64 = 600;
    let small = |protection| Shape { cache_blocks: 2 * FILES, ..shape(protection) };
    with_each(small, |own, client| async move {
        for number in 0..FILES {
            let file = create_alone(&client, &own.shape, &number.to_string(), 64).await.unwrap();
            write(&client, &file, 0, &[1; 3]).await;
        }
        let sum = protected_in_all(&client).await;
        assert_eq!((sum.bytes, sum.protected_bytes), (64 * FILES, 61 * FILES));
    });
}
