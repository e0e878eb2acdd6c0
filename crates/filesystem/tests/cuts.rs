//! Proves: a cut succeeds or fails with a fault. No client sees a cut before it is complete. Bytes
//! that were cut off never come back, and later writes stay, whoever opens, flushes or cuts at the
//! same time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{BLOCK, at, read, restart, some_shape, write};
use crate::support;

use filesystem::collective::{Strategy, Transfer};
use filesystem::{BufferPool, Client, Costs};
use futures_util::future::select;
use policy::{Access, Direction};
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use support::{
    Cluster, Kill, Numbers, Shape, Start, for_each_seed, image, read_back, transfer, write_image,
};
use units::{ClientId, Duration, Instant};
use wire::Fault;
use world::Clock;
use world::payload::Bytes;
use world_simulated::{Disruption, FaultPlan, PlannedFault, SimulatedWorld};

#[test]
fn transfers_during_a_cut_succeed_or_fail_with_past_end() {
    for_each_seed("cuts", "whoever_is_at_work_when_a_file_is_cut", 40, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..some_shape(seed) });
        const KEPT: u64 = 3 * BLOCK + 17;
        const BYTES: u64 = 40 * BLOCK;
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", BYTES, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &image(1, KEPT)).await;
        });
        cluster.run(0..3, |start| async move {
            let group = start.join(1).await.unwrap();
            let client = group.client();
            let mut file = client.open("f").await.unwrap();
            group.agree(Ok(())).await.unwrap();
            if start.rank.0 == 0 {
                start.world.sleep(Duration::from_us(seed * 37 % 2000)).await;
                client.set_size(&mut file, KEPT).await.unwrap();
                return;
            }
            let mut numbers = Numbers::new(seed * 3 + u64::from(start.rank.0));
            for _ in 0..40 {
                let pool = BufferPool::new(client, 4 * BLOCK).await.unwrap();
                let buffer = pool.take(1 + numbers.below(4 * BLOCK)).unwrap();
                buffer.fill(&image(seed, buffer.length()).into());
                let offset = KEPT + numbers.below(BYTES - KEPT - buffer.length());
                let direction = numbers.pick(&[Direction::Read, Direction::Write]);
                match buffer.transfer(direction, &file, offset).await {
                    Ok(()) => {}
                    Err(Fault::PastEnd { bytes, .. }) => {
                        assert_eq!(bytes, KEPT);
                        return;
                    }
                    Err(fault) => panic!("{fault}"),
                }
            }
        });
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let mut file = client.open("f").await.unwrap();
            assert_eq!(read(&client, &file).await, image(1, KEPT));
            client.grow(&mut file, BYTES).await.unwrap();
            let mut expected = image(1, KEPT);
            expected.resize(BYTES as usize, 0);
            assert_eq!(read(&client, &file).await, expected, "what was cut off came back");
        });
    });
}

#[test]
fn a_collective_on_a_file_that_is_cut_fails_for_all() {
    for strategy in Strategy::NAMED {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..Shape::default() });
        // More blocks than a member asks for at once: some requests come after the cut.
        const BYTES: u64 = 1400 * BLOCK;
        cluster.run_alone(0, |start| async move {
            start.connect().await.unwrap().create("f", BYTES, start.shape.stripe()).await.unwrap();
        });
        let ended = cluster.run(0..3, move |start| async move {
            let client = start.connect().await.unwrap();
            let mut file = client.open("f").await.unwrap();
            if start.rank.0 == 2 {
                start.world.sleep(Duration::from_us(3000)).await;
                client.set_size(&mut file, BLOCK).await.unwrap();
                return Ok(());
            }
            let members = start.members.iter().take(2).cloned().collect();
            let group =
                filesystem::PeerMesh::join(client, 1, start.rank, members, support::JOIN_TIMEOUT);
            let group = group.await.unwrap();
            let access = Access::All { bytes: BYTES, clients: 2 };
            let transfer = transfer(Direction::Read, &file, &access, strategy);
            read_back(&group, &transfer).await.map(|_| ())
        });
        for outcome in &ended[..2] {
            let told = matches!(outcome, Err(Fault::PastEnd { bytes: BLOCK, .. }));
            assert!(told, "{strategy}: {outcome:?}");
        }
    }
}

#[test]
fn a_cut_that_failed_is_heard_of_when_it_is_made_good() {
    let shape = Shape { servers: 1, disks_per_server: 2, clients: 1, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    let fault = |at, fails| PlannedFault {
        at: Instant::START + Duration::from_ms(at),
        what: Disruption::DiskFails { node: 0, disk: 0, fails },
    };
    let faults = vec![fault(50, true), fault(100, false)];
    cluster.machine.plan(&FaultPlan { seed: 1, faults, ..FaultPlan::default() }, |_| {});
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let mut file = client.create("f", 0, start.shape.stripe()).await.unwrap();
        client.grow(&mut file, 256).await.unwrap();
        write(&client, &file, 0, &image(1, 256)).await;
        client.flush(&file, true).await.unwrap();
        client.close(&file).await.unwrap();
        let mut file = client.open("f").await.unwrap();
        at(&start, 60).await;
        for _ in 0..2 {
            let failed = client.set_size(&mut file, 64).await.unwrap_err();
            assert!(matches!(failed, Fault::DiskFailed { .. }), "{failed}");
            assert_eq!(client.stat_file("f").await.unwrap().bytes, 256);
            assert_eq!(client.open_sizes().await.unwrap()[&file.file].0.bytes, 256);
        }
        at(&start, 110).await;
        client.set_size(&mut file, 64).await.unwrap();
        client.close(&file).await.unwrap();
        let mut file = client.open("f").await.unwrap();
        assert_eq!(read(&client, &file).await, image(1, 256)[..64]);
        client.grow(&mut file, 256).await.unwrap();
        assert_eq!(read(&client, &file).await[64..], [0; 192]);
    });
}

/// View of one client of a file whose other user is dropped during a cut.
struct CutShort {
    /// True when the client has seen the cut.
    is_cut: bool,
    /// True when the catalogue had not recorded the cut.
    is_unrecorded: bool,
}

/// One client begins to cut a file and is dropped. Another then appends to it and syncs: alone, or
/// as a group that writes all of it collectively.
async fn appends_after_a_cut(
    start: Start,
    other: SimulatedWorld<Bytes>,
    given_up_after: Duration,
    strategy: Option<Strategy>,
) -> CutShort {
    let client = start.connect().await.unwrap();
    let mut file = client.create("f", 200, start.shape.stripe()).await.unwrap();
    write(&client, &file, 0, &image(1, 200)).await;
    client.flush(&file, true).await.unwrap();
    let other = Client::connect(other, &start.servers, Costs::FREE).await.unwrap();
    let mut of_other = other.open("f").await.unwrap();
    let soon = start.world.sleep(given_up_after);
    select(pin!(client.set_size(&mut file, 50)), pin!(soon)).await;
    other.refresh(&mut of_other).await.unwrap();
    let is_cut = of_other.cuts > 0;
    let is_unrecorded = other.stat_file("f").await.unwrap().cuts == 0;
    if is_cut {
        other.grow(&mut of_other, 60).await.unwrap();
        match strategy {
            None => {
                write(&other, &of_other, 50, &image(2, 10)).await;
                other.flush(&of_other, true).await.unwrap();
            }
            Some(strategy) => {
                let (rank, members) = (ClientId(0), start.members.clone());
                let group =
                    filesystem::PeerMesh::join(other, 1, rank, members, support::JOIN_TIMEOUT);
                let group = group.await.unwrap();
                let access = Access::All { bytes: 60, clients: 1 };
                let transfer = transfer(Direction::Write, &of_other, &access, strategy);
                let transfer = Transfer { sync: true, ..transfer };
                write_image(&group, &transfer, &appended()).await.unwrap();
            }
        }
    }
    CutShort { is_cut, is_unrecorded }
}

/// The file that it leaves.
fn appended() -> Vec<u8> {
    [&image(1, 200)[..50], &image(2, 10)].concat()
}

#[test]
fn a_sync_keeps_a_cut_whose_maker_did_not_live_to_record_it() {
    for strategy in Strategy::NAMED.into_iter().map(Some).chain([None]) {
        a_sync_keeps_a_cut(strategy);
    }
}

fn a_sync_keeps_a_cut(strategy: Option<Strategy>) {
    let mut were_unrecorded = 0;
    for after in (0..1500).step_by(50).map(Duration::from_us) {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..Shape::default() });
        let other = cluster.world(1);
        let cut = cluster
            .run_alone(0, |start| appends_after_a_cut(start, other.clone(), after, strategy));
        cluster.machine.kill(cluster.shape.node_of(0));
        cluster.machine.kill(cluster.shape.node_of(1));
        let _servers = restart(&cluster, None);
        if !cut.is_cut {
            continue;
        }
        were_unrecorded += u32::from(cut.is_unrecorded);
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            let told = format!("{strategy:?}, given up after {after}");
            assert_eq!(read(&client, &file).await, appended(), "{told}");
        });
    }
    assert!(were_unrecorded > 0, "no cut was given up between the servers and the catalogue");
}

#[test]
fn a_cut_that_anyone_has_heard_of_is_made() {
    for_each_seed("cuts", "a_cut_that_anyone_has_heard_of_is_made", 60, |seed| {
        let shape = Shape { clients: 3, seed, ..some_shape(seed) };
        let cluster = Cluster::<Bytes>::new(shape);
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 256, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &image(1, 256)).await;
            client.flush(&file, true).await.unwrap();
        });
        let ready = Rc::new(Cell::new(0));
        let told = Rc::clone(&ready);
        let programs = cluster.programs(&[0, 1], move |start| {
            let ready = Rc::clone(&told);
            async move {
                let client = start.connect().await.unwrap();
                let mut file = client.open("f").await.unwrap();
                if start.rank.0 == 0 {
                    write(&client, &file, 0, &[7; 5]).await;
                    at(&start, 50).await;
                    ready.set(1);
                    // It is killed meanwhile, or just after.
                    let _ = client.set_size(&mut file, 10).await;
                    return at(&start, 10_000).await;
                }
                at(&start, 100).await;
                client.refresh(&mut file).await.unwrap();
                client.close(&file).await.unwrap();
                let mut again = client.open("f").await.unwrap();
                assert_eq!(again.size(), file.size());
                if file.bytes == 10 {
                    client.grow(&mut again, 256).await.unwrap();
                    assert_eq!(read(&client, &again).await[10..], [0; 246]);
                }
            }
        });
        let (node, after) = (cluster.shape.node_of(0), Duration::from_us(seed * 10));
        let at = Rc::new(Cell::new(Instant::START));
        let _ = cluster.run_on(programs, Some(Kill { node, after, ready, ready_min: 1, at }));
    });
}

/// A file that was cut, grown to 300 bytes, and written in its last 100.
fn written_beyond_the_cut() -> Vec<u8> {
    [vec![0; 200], image(1, 100)].concat()
}

#[test]
fn bytes_written_with_an_old_record_outlive_the_next_open() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..Shape::default() });
    cluster.run(0..3, |start| async move {
        let client = start.connect().await.unwrap();
        let expected = written_beyond_the_cut();
        match start.rank.0 {
            0 => {
                let mut file = client.create("f", 100, start.shape.stripe()).await.unwrap();
                at(&start, 20).await;
                client.set_size(&mut file, 50).await.unwrap();
                client.close(&file).await.unwrap();
            }
            1 => {
                at(&start, 10).await;
                let before_the_cut = client.stat_file("f").await.unwrap();
                at(&start, 30).await;
                let mut file = client.open_record(before_the_cut).await.unwrap();
                client.grow(&mut file, 300).await.unwrap();
                write(&client, &file, 200, &expected[200..]).await;
                at(&start, 60).await;
                client.flush(&file, true).await.unwrap();
                client.close(&file).await.unwrap();
            }
            _ => {
                // In the midst of it, and after the end.
                for ms in [50, 70] {
                    at(&start, ms).await;
                    let file = client.open("f").await.unwrap();
                    assert_eq!((file.cuts, file.bytes), (1, 300));
                    assert_eq!(read(&client, &file).await, expected);
                    client.close(&file).await.unwrap();
                }
                assert_eq!(client.stat_file("f").await.unwrap().bytes, 300);
            }
        }
    });
}

#[test]
fn cut_outlives_the_flush_of_a_client_that_had_grown_the_file() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..Shape::default() });
    cluster.run(0..2, |start| async move {
        let group = start.join(1).await.unwrap();
        let client = group.client();
        let mut file = match start.rank.0 {
            0 => client.create("f", 10, start.shape.stripe()).await.unwrap(),
            _ => {
                at(&start, 10).await;
                client.open("f").await.unwrap()
            }
        };
        group.barrier().await.unwrap();
        if start.rank.0 == 0 {
            client.grow(&mut file, 300).await.unwrap();
            write(client, &file, 0, &image(1, 300)).await;
        }
        group.barrier().await.unwrap();
        if start.rank.0 == 1 {
            client.set_size(&mut file, 50).await.unwrap();
        }
        group.barrier().await.unwrap();
        // The first has not heard of the cut yet.
        client.flush(&file, true).await.unwrap();
        client.close(&file).await.unwrap();
        group.barrier().await.unwrap();
        let file = client.open("f").await.unwrap();
        assert_eq!(read(client, &file).await, image(1, 300)[..50]);
        assert_eq!(client.stat_file("f").await.unwrap().bytes, 50);
    });
}

#[test]
fn of_cuts_at_once_one_is_the_last() {
    for_each_seed("cuts", "of_cuts_at_once_one_is_the_last", 40, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..some_shape(seed) });
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 500, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &image(1, 500)).await;
            client.flush(&file, true).await.unwrap();
        });
        let last_seen = Rc::new(Cell::new(0));
        let last = Rc::clone(&last_seen);
        cluster.run(0..2, |start| {
            let last = Rc::clone(&last);
            async move {
                let client = start.connect().await.unwrap();
                let mut file = client.open("f").await.unwrap();
                at(&start, 50).await;
                let mut numbers = Numbers::new(seed * 2 + u64::from(start.rank.0));
                start.world.sleep(Duration::from_us(numbers.below(100))).await;
                client.set_size(&mut file, 100 + u64::from(start.rank.0) * 100).await.unwrap();
                client.refresh(&mut file).await.unwrap();
                at(&start, 100).await;
                client.refresh(&mut file).await.unwrap();
                last.set(file.bytes);
            }
        });
        // Neither client has closed the file, and the sizes that they got hold.
        let _servers = restart(&cluster, None);
        let last = last_seen.get();
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            assert_eq!(file.bytes, last);
            let found = read(&client, &file).await;
            // To 200 and then to 100, or to 100 and made longer.
            match found.len() {
                100 => assert_eq!(found, image(1, 500)[..100]),
                200 => assert_eq!(found, [&image(1, 500)[..100], &[0; 100]].concat()),
                other => panic!("{other} bytes"),
            }
        });
    });
}

#[test]
fn bytes_that_a_killed_client_wrote_after_its_cut_outlive_an_old_record() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..Shape::default() });
    let ready = Rc::new(Cell::new(0));
    let programs = cluster.programs(&[0, 1, 2], |start| async move {
        let client = start.connect().await.unwrap();
        let expected = written_beyond_the_cut();
        match start.rank.0 {
            0 => {
                let mut file = client.create("f", 100, start.shape.stripe()).await.unwrap();
                at(&start, 20).await;
                client.set_size(&mut file, 50).await.unwrap();
                client.grow(&mut file, 300).await.unwrap();
                write(&client, &file, 200, &expected[200..]).await;
                at(&start, 1000).await;
            }
            rank => {
                at(&start, 10).await;
                let before_the_cut = client.stat_file("f").await.unwrap();
                at(&start, 50).await;
                let opened = match rank {
                    1 => client.open_record(before_the_cut).await,
                    _ => client.open("f").await,
                };
                let file = opened.unwrap();
                assert_eq!((file.cuts, file.bytes), (1, 300));
                assert_eq!(read(&client, &file).await, expected);
            }
        }
    });
    let (node, after) = (cluster.shape.node_of(0), Duration::from_ms(40));
    let at = Rc::new(Cell::new(Instant::START));
    cluster.run_on(programs, Some(Kill { node, after, ready, ready_min: 0, at }));
}

#[test]
fn cut_during_the_last_close_keeps_later_writes() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..Shape::default() });
    let fault = |at, what| PlannedFault { at: Instant::START + Duration::from_ms(at), what };
    let faults = vec![
        fault(50, Disruption::DiskFails { node: 1, disk: 0, fails: true }),
        fault(50, Disruption::DiskIsSlow { node: 0, disk: 0, times: 200 }),
        fault(55, Disruption::DiskFails { node: 1, disk: 0, fails: false }),
        fault(56, Disruption::DiskIsSlow { node: 0, disk: 0, times: 1 }),
    ];
    cluster.machine.plan(&FaultPlan { seed: 1, faults, ..FaultPlan::default() }, |_| {});
    cluster.run(0..2, |start| async move {
        let client = start.connect().await.unwrap();
        if start.rank.0 == 0 {
            let mut file = client.create("f", 300, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &image(1, 300)).await;
            client.flush(&file, true).await.unwrap();
            // Block 0 has to be written back before it is cut, which takes long.
            write(&client, &file, 0, &image(2, 40)).await;
            at(&start, 51).await;
            let failed = client.set_size(&mut file, 50).await.unwrap_err();
            assert!(matches!(failed, Fault::DiskFailed { .. }), "{failed}");
            let _ = client.close(&file).await;
            assert!(start.now() < Instant::START + Duration::from_ms(56));
            return at(&start, 300).await;
        }
        at(&start, 57).await;
        let mut file = client.open("f").await.unwrap();
        client.grow(&mut file, 300).await.unwrap();
        write(&client, &file, 120, &image(3, 150)).await;
        at(&start, 200).await;
        assert_eq!(read(&client, &file).await[120..270], image(3, 150));
    });
}
