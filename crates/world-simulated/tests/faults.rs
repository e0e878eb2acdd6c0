//! Proves: a machine carries out its fault plan. Synced data survives a power failure, other data
//! by sectors as the seed decides; slow and failing disks behave as planned; a node restarts; both
//! ends of a lost connection get a departure, and neither end of a silent one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use support::{BLOCK, machine};
use units::{Duration, FileId, Instant};
use world::payload::Bytes;
use world::{
    Clock, Disk, Disks, Incoming, Network, OneSided, Payloads, RecordChange, RecordTable, Records,
    Tasks,
};
use world_simulated::models::ideal::IdealSpec;
use world_simulated::models::mechanical::Drive;
use world_simulated::{DiskKind, Disruption, FaultPlan, PlannedFault, SimulatedWorld};

const FILE: FileId = FileId(1);

fn plan(seed: u64, faults: &[(u64, Disruption)]) -> FaultPlan {
    let fault = |(ms, what): &(u64, Disruption)| PlannedFault {
        at: Instant::START + Duration::from_ms(*ms),
        what: *what,
    };
    let record_change = Duration::from_us(100);
    FaultPlan { seed, record_change, faults: faults.iter().map(fault).collect() }
}

fn filled(value: u8) -> Bytes {
    vec![value; BLOCK].into()
}

const CRASH: Disruption = Disruption::Crash { node: 0 };
const RESTART: Disruption = Disruption::Restart { node: 0 };

/// Returns the content of a block after a crash: 1s that were synced, 2s that were written, and a
/// write of 3s under way.
fn after_a_crash(seed: u64) -> Vec<u8> {
    let (engine, machine) = machine(DiskKind::of(Drive::hp97560()));
    machine.plan(&plan(seed, &[(500, CRASH), (501, RESTART)]), |_| {});
    let world = machine.world(0);
    let program = world.clone();
    let _task = world.spawn(async move {
        let disk = program.disks()[0].clone();
        disk.write(FILE, 0, filled(1)).await.unwrap();
        disk.sync(FILE).await.unwrap();
        disk.write(FILE, 0, filled(2)).await.unwrap();
        program.sleep_until(Instant::START + Duration::from_ms(499)).await;
        disk.write(FILE, 0, filled(3)).await.unwrap();
        panic!("the crash must come first");
    });
    let world = machine.world(0);
    let got = engine.run(async move {
        world.sleep(Duration::from_ms(510)).await;
        world.disks()[0].read(FILE, 0, BLOCK as u64).await.unwrap().to_vec()
    });
    engine.shut_down();
    got.unwrap()
}

#[test]
fn a_crash_leaves_whole_sectors_of_what_was_written() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let got = after_a_crash(seed);
        assert_eq!(got, after_a_crash(seed), "one seed leaves one thing");
        for sector in got.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector must be whole");
            assert!((1..=3).contains(&sector[0]), "nothing else was ever written");
        }
        seen.insert(got.chunks(512).map(|sector| sector[0]).collect::<BTreeSet<u8>>());
    }
    // Each of them alone, and each two and all three torn.
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[test]
fn without_a_plan_all_that_was_written_survives() {
    let (engine, machine) = machine(DiskKind::of(Drive::hp97560()));
    let world = machine.world(0);
    let got = engine.run(async move {
        let disk = world.disks()[0].clone();
        disk.write(FILE, 0, filled(1)).await.unwrap();
        machine.kill(0);
        machine.restart(0);
        disk.read(FILE, 0, BLOCK as u64).await.unwrap().to_vec()
    });
    assert_eq!(got.unwrap(), vec![1; BLOCK]);
}

#[test]
fn a_crash_leaves_changes_of_records_in_their_order() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let (engine, machine) = machine(DiskKind::of(Drive::hp97560()));
        machine.plan(&plan(seed, &[(10, CRASH), (11, RESTART)]), |_| {});
        let world = machine.world(0);
        let got = engine.run(async move {
            world
                .record_change(RecordTable::Catalogue, vec![RecordChange::put(1, vec![1])])
                .await
                .unwrap();
            let tasks: Vec<_> = [2, 3]
                .into_iter()
                .map(|key| {
                    let (inside, both) = (world.clone(), [key, 10 * key]);
                    world.spawn(async move {
                        inside.sleep_until(Instant::START + Duration::from_us(9_950)).await;
                        let changes = both.map(|key| RecordChange::put(key, vec![0])).to_vec();
                        inside.record_change(RecordTable::Catalogue, changes).await.unwrap();
                        panic!("the crash must come first");
                    })
                })
                .collect();
            world.sleep_until(Instant::START + Duration::from_ms(12)).await;
            drop(tasks);
            world
                .records(RecordTable::Catalogue)
                .await
                .unwrap()
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<u64>>()
        });
        engine.shut_down();
        seen.insert(got.unwrap());
    }
    // Each change is whole, and none exists without its predecessor.
    assert_eq!(seen, BTreeSet::from([vec![1], vec![1, 2, 20], vec![1, 2, 3, 20, 30]]));
}

/// Returns duration (in microseconds) and success of a read that begins at `begins_ms`.
async fn read_at(world: SimulatedWorld<Bytes>, begins_ms: u64) -> (u64, bool) {
    let begin = Instant::START + Duration::from_ms(begins_ms);
    world.sleep_until(begin).await;
    let is_read = world.disks()[0].read(FILE, 0, BLOCK as u64).await.is_ok();
    (world.now().since(begin).as_ns() / 1000, is_read)
}

#[test]
fn a_disk_is_slow_and_fails_for_a_while() {
    let latency = Duration::from_us(100);
    let (engine, machine) = machine(DiskKind::of(IdealSpec { latency, bytes_per_second: 1 << 40 }));
    let (node, disk) = (0, 0);
    let faults = [
        (10, Disruption::DiskIsSlow { node, disk, times: 20 }),
        (20, Disruption::DiskIsSlow { node, disk, times: 1 }),
        (30, Disruption::DiskFails { node, disk, fails: true }),
        (40, Disruption::DiskFails { node, disk, fails: false }),
    ];
    machine.plan(&plan(1, &faults), |_| {});
    let world = machine.world(0);
    let got = engine.run(async move {
        let mut got = Vec::new();
        for ms in [5, 15, 25, 35, 45] {
            got.push(read_at(world.clone(), ms).await);
        }
        got
    });
    let wanted = [(100, true), (2000, true), (100, true), (100, false), (100, true)];
    assert_eq!(got.unwrap(), wanted);
}

#[test]
fn a_lost_connection_gives_both_ends_a_departure() {
    let (engine, machine) = machine(DiskKind::of(Drive::hp97560()));
    let happened = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&happened);
    let lost = Disruption::Disconnect { nodes: (0, 1) };
    machine.plan(&plan(1, &[(10, lost)]), move |what| told.borrow_mut().push(what));
    let (one, other) = (machine.world(0), machine.world(1));
    let got = engine.run(async move {
        let peer = one.connect(&other.address()).await.unwrap();
        let departed = |incoming| matches!(incoming, Incoming::Departed { .. });
        let both = (departed(one.receive().await), departed(other.receive().await));
        let header = world::Header::new();
        let sent = one.send(peer, world::Message::new(header)).await;
        let again = one.connect(&other.address()).await;
        (both, sent.is_err(), again.is_ok(), one.now())
    });
    let at = Instant::START + Duration::from_ms(10);
    assert_eq!(got.unwrap(), ((true, true), true, true, at));
    assert_eq!(*happened.borrow(), [lost]);
}

#[test]
fn silence_is_announced_to_nobody_and_ends_with_the_connection() {
    // Proves of a node that has stopped and of a connection that was cut: what is sent is lost, a
    // ping and a transfer wait and are known as awaited, and both end with the connection.
    let stopped = Disruption::Stop { node: 1 };
    for silence in [stopped, Disruption::Cut { nodes: (0, 1) }] {
        let (engine, machine) = machine(DiskKind::of(Drive::hp97560()));
        machine.plan(&plan(1, &[(10, silence)]), |_| {});
        let (one, other) = (machine.world(0), machine.world(1));
        let stopping = machine.clone();
        let got = engine.run(async move {
            let peer = one.connect(&other.address()).await.unwrap();
            let here = one.send(peer, world::Message::new(world::Header::new())).await;
            let Incoming::Message { from, .. } = other.receive().await else {
                panic!("it is sent")
            };
            let region = other.expose(&other.memory(8), &[from]).await.unwrap();
            let alive = one.ping(peer).await;
            one.sleep_until(Instant::START + Duration::from_ms(11)).await;
            let sent = one.send(peer, world::Message::new(world::Header::new())).await;
            let lost = Rc::new(RefCell::new(Vec::new()));
            let (pinged, put) = (Rc::clone(&lost), Rc::clone(&lost));
            let (pings, puts) = (one.clone(), one.clone());
            let _ping = one.spawn(async move {
                let has_failed = pings.ping(peer).await.is_err();
                pinged.borrow_mut().push(has_failed);
            });
            let _put = one.spawn(async move {
                let nothing: Bytes = vec![0; 8].into();
                let has_failed = puts.put(peer, region, &[], &nothing).await.is_err();
                put.borrow_mut().push(has_failed);
            });
            one.sleep(Duration::from_ms(1_000)).await;
            let waits = (one.awaited_peers() == [peer], lost.borrow().len());
            one.disconnect(peer);
            one.sleep(Duration::from_ms(1)).await;
            // The other side of a cut connection does not learn of that.
            if silence != stopped {
                let arrives = futures_util::FutureExt::now_or_never(other.receive());
                assert!(arrives.is_none(), "{arrives:?}");
            }
            stopping.kill(1);
            stopping.restart(1);
            let again = one.connect(&other.address()).await;
            (here, alive, sent.is_ok(), waits, lost.take(), again.is_ok())
        });
        let wanted = (Ok(()), Ok(()), true, (true, 0), vec![true, true], true);
        assert_eq!(got.unwrap(), wanted, "{silence:?}");
        engine.shut_down();
    }
}
