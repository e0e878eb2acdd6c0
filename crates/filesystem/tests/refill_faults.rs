//! Proves, for sequences of faults that random ones seldom have: while a new disk is filled from
//! the only copy, a write that this copy lacks fails, and the size of the file is the last one; and
//! in the end the disk has what the copy has.
//!
//! The servers are those of [`mirror_faults`](crate::mirror_faults).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::mirror_faults::{
    COPY, FILE_BYTES, PART, RECORD_CHANGE, change_part, content_without_part, disrupt,
    restart_copy, run_with, shape, stored_file,
};
use crate::mirrors::until_equal;
use crate::refill::until_filled;
use crate::sizes::read;
use crate::support;

use filesystem::{BufferPool, Fault};
use policy::Direction;
use support::{Cluster, Shape, expect_equal, for_each_seed, replace_server};
use units::{Duration, ServerId};
use world::Clock;
use world_simulated::{Disruption, TaskHandle};

/// A shape with disks that are filled slowly: the part of a file takes about 3 s.
fn slow_shape(seed: u64) -> Shape {
    Shape { refill_rate: Some(100), ..shape(seed) }
}

/// Replaces the disks of a server, and waits until they are being filled.
async fn replace(cluster: &Cluster, server: u32) -> TaskHandle {
    cluster.machine.kill(server);
    let replaced = replace_server(&cluster.machine, &cluster.shape, server, 1);
    cluster.engine.sleep(Duration::from_ms(500)).await;
    replaced
}

#[test]
fn a_disk_is_filled_anew_when_its_source_has_lost_power() {
    for_each_seed("refill_faults", "a_disk_is_filled_anew_when_its_source", 20, |seed| {
        run_with((slow_shape(seed), RECORD_CHANGE), |own| async move {
            let start = own.start(0);
            let client = start.connect().await.unwrap();
            let (_, mut content) = stored_file(&client, &own.shape, "f").await;
            let _part = replace(&own, PART).await;
            let writer = own.start(1).connect().await.unwrap();
            let opened = writer.open("f").await.unwrap();
            change_part(&writer, &opened, &mut content, (0, 90)).await;
            own.machine.kill(COPY);
            let _copy = restart_copy(&own);
            start.world.sleep(Duration::from_ms(100)).await;
            let client = own.start(2).connect().await.unwrap();
            let opened = client.open("f").await.unwrap();
            until_filled(&start, &client, PART).await;
            until_equal(&start, &client).await;
            // What the copy has lost is an error once.
            let _ = client.flush(&opened, true).await;
            client.flush(&opened, true).await.unwrap();
            let seen = read(&client, &opened).await;
            let found = content_without_part(&own, "f", 2).await;
            expect_equal(&found, &seen, "what was read and stored");
        });
    });
}

#[test]
fn a_write_that_the_only_copy_lacks_fails() {
    run_with((slow_shape(1), RECORD_CHANGE), |own| async move {
        let client = own.start(0).connect().await.unwrap();
        stored_file(&client, &own.shape, "f").await;
        let _part = replace(&own, PART).await;
        let client = own.start(1).connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        let pool = BufferPool::new(&client, 64).await.unwrap();
        let buffer = pool.take(64).unwrap();
        buffer.fill(&vec![7; 64].into());
        disrupt(&own, Disruption::DiskFails { node: COPY, disk: 0, fails: true }).await;
        let written = buffer.transfer(Direction::Write, &file, 64).await;
        let written = written.and(client.flush(&file, false).await);
        let is_told = matches!(written, Err(Fault::DiskFailed { server: ServerId(COPY), .. }));
        assert!(is_told, "{written:?}");
    });
}

#[test]
fn a_size_that_no_data_shows_is_known_while_a_disk_is_filled() {
    run_with((slow_shape(1), RECORD_CHANGE), |own| async move {
        let client = own.start(0).connect().await.unwrap();
        let (mut file, mut content) = stored_file(&client, &own.shape, "f").await;
        // The first server of the file keeps it. The catalogue never hears of it.
        client.set_size(&mut file, 2 * FILE_BYTES).await.unwrap();
        content.resize(file.bytes as usize, 0);
        own.machine.kill(own.shape.node_of(0));
        let _first = replace(&own, 0).await;
        let client = own.start(1).connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        assert_eq!(file.bytes, 2 * FILE_BYTES);
        assert!(read(&client, &file).await == content);
    });
}
