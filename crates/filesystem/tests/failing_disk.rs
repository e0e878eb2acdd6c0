//! Proves: every client whose data a disk failed to store gets the fault at its next flush, whoever
//! flushed before, and only once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{at, write};
use crate::support;

use filesystem::Fault;
use filesystem::collective::Part;
use policy::{Access, Direction, DiskOrder, ListEntry};
use support::{Cluster, Shape, for_each_seed};
use units::{ClientId, Duration, Instant, ServerId};
use world::payload::Bytes;
use world::{Clock, Payloads};
use world_simulated::{Disruption, FaultPlan, PlannedFault};

/// Instant at which the disk has recovered.
const RECOVERED: Duration = Duration::from_ms(50);

#[test]
fn every_writer_gets_the_failure() {
    for_each_seed("failing_disk", "every_writer_gets_the_failure", 120, |seed| {
        let shape = Shape { servers: 1, clients: 3, seed, ..Shape::default() };
        let cluster = Cluster::<Bytes>::new(shape.clone());
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            client.create("f", 64, start.shape.stripe()).await.unwrap();
        });
        let fault = |at, fails| PlannedFault {
            at: Instant::START + at,
            what: Disruption::DiskFails { node: 0, disk: 0, fails },
        };
        let faults = vec![fault(Duration::from_ms(5), true), fault(RECOVERED, false)];
        cluster.machine.plan(&FaultPlan { seed, faults, ..FaultPlan::default() }, |_| {});
        let ended = cluster.run(0..2, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            // Bytes of one block, written at nearly the same time.
            let rank = u64::from(start.rank.0);
            let at = Instant::START + Duration::from_ms(10) + Duration::from_us(seed * rank);
            start.world.sleep_until(at).await;
            let own = ListEntry { file_offset: rank * 20, memory_offset: 0, length: 20 };
            let part = Part {
                direction: Direction::Write,
                file: file.clone(),
                access: Access::lists(vec![vec![own]]),
                client: ClientId(0),
                order: DiskOrder::Sorted,
                sync: false,
            };
            let memory = start.world.thaw(vec![7; 20].into());
            let written = client.transfer_part(&part, &memory).await;
            start.world.sleep_until(Instant::START + RECOVERED).await;
            // A loss of the other client meanwhile may be a new failure.
            let _ = client.flush(&file, true).await;
            (written, client.flush(&file, true).await)
        });
        for (rank, (written, flushed)) in ended.into_iter().enumerate() {
            let failed = matches!(written, Err(Fault::DiskFailed { server: ServerId(0), .. }));
            assert!(failed, "what {rank} wrote is lost: {written:?}");
            assert_eq!(flushed, Ok(()), "there is nothing new to tell");
        }
    });
}

#[test]
fn a_failed_sync_is_told_to_every_writer() {
    // The disk need not report it again, and may have lost what any of them wrote.
    let shape = Shape { servers: 1, clients: 3, cache_blocks: 0, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    let fault = |at, fails| PlannedFault {
        at: Instant::START + Duration::from_ms(at),
        what: Disruption::DiskFails { node: 0, disk: 0, fails },
    };
    let faults = vec![fault(20, true), fault(30, false)];
    cluster.machine.plan(&FaultPlan { faults, ..FaultPlan::default() }, |_| {});
    cluster.run_alone(2, |start| async move {
        let client = start.connect().await.unwrap();
        client.create("f", 128, start.shape.stripe()).await.unwrap();
    });
    let flushed = cluster.run(0..2, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.open("f").await.unwrap();
        let rank = u64::from(start.rank.0);
        write(&client, &file, rank * 64, &[7; 64]).await;
        at(&start, [25, 40][rank as usize]).await;
        (client.flush(&file, true).await, client.flush(&file, true).await)
    });
    for (rank, (first, _)) in flushed.iter().enumerate() {
        let is_told = matches!(first, Err(Fault::DiskFailed { server: ServerId(0), .. }));
        assert!(is_told, "{rank} is told: {first:?}");
    }
    assert_eq!(flushed[1].1, Ok(()), "there is nothing new to tell");
}
