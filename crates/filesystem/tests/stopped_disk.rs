//! Proves: a stopped disk does not delay requests for another disk of the same server, for any
//! number of waiting requests and any strategy. When it resumes, they go on.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{at, write};
use crate::support;

use filesystem::NewFile;
use filesystem::collective::Strategy;
use policy::{Access, Buffering, Direction, ListEntry, Pool, Protection};
use support::{
    Cluster, Program, Shape, Start, expect_equal, for_each_seed, image, memory_of, read_back,
    transfer, write_image,
};
use units::{ClientId, Duration, Instant};
use wire::Made;
use world::payload::Bytes;
use world_simulated::{Disruption, FaultPlan, PlannedFault};

/// Blocks of each file.
const BLOCKS: u64 = 80;

/// Start and end of the stop of disk 0, in ms. A command that it had begun takes minutes.
const STOPS: (u64, u64) = (20, 30_000);

/// Maximum time of a transfer on the other disk; undisturbed it is some 20 ms.
const SOON: Duration = Duration::from_ms(1000);

/// The blocks of a file that lie on one of two disks.
fn on_disk(disk: u64, block_bytes: u64) -> Access {
    let blocks = (0..BLOCKS).filter(|block| block % 2 == disk);
    let entry = |(number, block)| ListEntry {
        file_offset: block * block_bytes,
        memory_offset: number * block_bytes,
        length: block_bytes,
    };
    Access::lists(vec![(0..).zip(blocks).map(entry).collect()])
}

/// Moves blocks on the stopped disk.
async fn wait_for_it(start: Start, number: u64, how: (Strategy, Direction)) {
    let group = start.join(number).await.unwrap();
    let (bytes, access) = (BLOCKS * start.shape.block_bytes, on_disk(0, start.shape.block_bytes));
    let name = format!("f{number}");
    let file = group.client().create(&name, bytes, start.shape.stripe()).await.unwrap();
    at(&start, STOPS.0 + 1).await;
    let transfer = transfer(how.1, &file, &access, how.0);
    match how.1 {
        Direction::Read => _ = read_back(&group, &transfer).await.unwrap(),
        Direction::Write => write_image(&group, &transfer, &image(1, bytes)).await.unwrap(),
    }
    assert!(start.now() > Instant::START + Duration::from_ms(STOPS.1), "it had stopped");
    group.leave().await;
}

/// Moves blocks on the other disk, by every strategy that moves them alone. (Two-phase moves all
/// bytes between them, too.)
async fn go_on(start: Start, number: u64) {
    let group = start.join(number).await.unwrap();
    let (bytes, access) = (BLOCKS * start.shape.block_bytes, on_disk(1, start.shape.block_bytes));
    let file = group.client().create("g", bytes, start.shape.stripe()).await.unwrap();
    at(&start, STOPS.0 + 500).await;
    let alone = Strategy::NAMED.into_iter().filter(|strategy| *strategy != Strategy::TwoPhase);
    for (seed, strategy) in (2..).zip(alone) {
        let (contents, begun) = (image(seed, bytes), start.now());
        let write = transfer(Direction::Write, &file, &access, strategy);
        write_image(&group, &write, &contents).await.unwrap();
        let written = start.now();
        let read = transfer(Direction::Read, &file, &access, strategy);
        let got = read_back(&group, &read).await.unwrap();
        let took = [written.since(begun), start.now().since(written)];
        assert!(took.iter().all(|took| *took < SOON), "{strategy}: {took:?}");
        let wanted = memory_of(&access, ClientId(0), &contents);
        expect_equal(&got, &wanted, &format!("by {strategy}"));
    }
    assert!(start.now() < Instant::START + Duration::from_ms(STOPS.1), "it is still so");
    group.leave().await;
}

#[test]
fn stopped_disk_does_not_delay_other_disks() {
    for_each_seed("stopped_disk", "stopped_disk_does_not_delay_other_disks", 20, |seed| {
        let block_bytes = Shape::default().block_bytes;
        let cluster = Cluster::<Bytes>::new(Shape {
            servers: 1,
            disks_per_server: 2,
            clients: 13,
            cache_blocks: 4 + seed % 13,
            dirty_percent: [100, 20][(seed % 2) as usize],
            buffer_bytes: (4 + seed % 7) * block_bytes,
            seed,
            ..Shape::default()
        });
        let fault = |at, times| PlannedFault {
            at: Instant::START + Duration::from_ms(at),
            what: Disruption::DiskIsSlow { node: 0, disk: 0, times },
        };
        let faults = vec![fault(STOPS.0, 1_000_000), fault(STOPS.1, 1)];
        cluster.machine.plan(&FaultPlan { seed, faults, ..FaultPlan::default() }, |_| {});
        let ways = Strategy::NAMED.into_iter();
        let ways = ways.flat_map(|way| [(way, Direction::Read), (way, Direction::Write)]);
        let mut programs: Vec<(u32, Program<()>)> = Vec::new();
        for (client, how) in (0..12).zip(ways) {
            let waits = move |start| wait_for_it(start, u64::from(client), how);
            programs.extend(cluster.programs(&[client], waits));
        }
        programs.extend(cluster.programs(&[12], |start| go_on(start, 12)));
        assert!(cluster.run_on(programs, None).iter().all(Option::is_some));
    });
}

#[test]
fn a_file_of_few_buffers_goes_on_at_its_other_disk() {
    for stuck in [1, 2] {
        goes_on_at_its_other_disk(stuck);
    }
}

/// A file with two buffers, of which `stuck` hold blocks of a stopped disk.
fn goes_on_at_its_other_disk(stuck: u64) {
    let cluster = Cluster::<Bytes>::new(Shape {
        servers: 1,
        disks_per_server: 2,
        clients: 1,
        ..Shape::default()
    });
    let what = Disruption::DiskIsSlow { node: 0, disk: 0, times: 1_000_000 };
    let faults = vec![PlannedFault { at: Instant::START + Duration::from_ms(STOPS.0), what }];
    cluster.machine.plan(&FaultPlan { seed: 1, faults, ..FaultPlan::default() }, |_| {});
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let block_bytes = start.shape.block_bytes;
        let buffering = Buffering { blocks_max: 2, ..Buffering::default() };
        let file = client
            .create_as(NewFile {
                name: "f".to_owned(),
                bytes: BLOCKS * block_bytes,
                stripe: start.shape.stripe(),
                pool: Pool::all(1),
                buffering,
                protection: Protection::None,
                made: Made::default(),
            })
            .await
            .unwrap();
        // Both its buffers, or one: they are first in the eviction order, and cannot leave.
        for stuck in 0..stuck {
            write(&client, &file, stuck * 2 * block_bytes, &image(1, 10)).await;
        }
        at(&start, STOPS.0 + 500).await;
        for block in (0..BLOCKS).filter(|block| block % 2 == 1) {
            let begun = start.now();
            write(&client, &file, block * block_bytes, &image(block, block_bytes)).await;
            assert!(start.now().since(begun) < SOON, "block {block}");
        }
    });
}
