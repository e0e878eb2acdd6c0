//! Proves: the effects of queue and bus on the requests of a disk.

use super::config::{DiskConfig, StartAngle};
use super::disk::SimulatedDisk;
use crate::engine::Engine;
use crate::models::disk::DiskKind;
use crate::models::layout::LayoutKind;
use crate::models::mechanical::Drive;
use crate::models::request_queue::QueueKind;
use crate::models::ssd::SsdSpec;
use std::cell::RefCell;
use std::rc::Rc;
use units::{Duration, FileId, Instant};
use world::Disk;
use world::payload::Phantom;

const BLOCK: u64 = 8_192;

fn disk(engine: &Engine, config: &DiskConfig) -> SimulatedDisk<Phantom> {
    let disks = SimulatedDisk::on_one_bus(engine, config, 0, 1, |_| 0).expect("blocks fit");
    disks.into_iter().next().expect("one was made")
}

fn config(kind: DiskKind, queue: QueueKind) -> DiskConfig {
    DiskConfig {
        kind,
        layout: LayoutKind::CONTIGUOUS,
        slot_bytes: BLOCK,
        start: StartAngle::Zero,
        queue,
        prefetch_commands: 0,
    }
}

/// Reads blocks all at once. Returns them in the order of completion, and the instant of the last.
fn read_at_once(config: &DiskConfig, blocks: &[u64]) -> (Vec<u64>, Instant) {
    let engine = Engine::new();
    let disk = disk(&engine, config);
    let came = Rc::new(RefCell::new(Vec::new()));
    let read = |block: &u64| {
        let (disk, came, block) = (disk.clone(), Rc::clone(&came), *block);
        async move {
            let read = disk.read(FileId(1), block * BLOCK, BLOCK).await;
            assert!(read.is_ok());
            came.borrow_mut().push(block);
        }
    };
    let reads: Vec<_> = blocks.iter().map(read).collect();
    let ended = engine.run(async move {
        futures_util::future::join_all(reads).await;
    });
    assert!(ended.is_ok());
    (came.take(), engine.now())
}

/// Proves that a mechanical disk with cyclical scan serves waiting requests in the order of
/// addresses, and is faster for it.
#[test]
fn cscan_orders_by_address() {
    let blocks = [9_000, 100, 80_000, 20_000, 4_000, 60_000, 40_000];
    let [fcfs, cscan] = [QueueKind::Fcfs, QueueKind::Cscan]
        .map(|queue| config(DiskKind::of(Drive::hp97560()), queue));
    assert_eq!(read_at_once(&fcfs, &blocks).0, blocks);
    let upwards = [9_000, 20_000, 40_000, 60_000, 80_000, 100, 4_000];
    assert_eq!(read_at_once(&cscan, &blocks).0, upwards);

    let many: Vec<u64> = (1..60).map(|index| index * 48_271 % 160_000).collect();
    let [fcfs, cscan] = [fcfs, cscan].map(|config| read_at_once(&config, &many).1.as_ns());
    assert!(cscan * 4 < fcfs * 3, "{cscan} {fcfs}");
}

/// Proves that an additional command costs a read one bus connection, and a write nothing.
#[test]
fn a_prefetch_command_costs_a_connection() {
    let plain = config(DiskKind::of(Drive::hp97560()), QueueKind::Fcfs);
    let prefetching = DiskConfig { prefetch_commands: 1, ..plain.clone() };
    let (_, one) = read_at_once(&plain, &[5_000]);
    let (_, more) = read_at_once(&prefetching, &[5_000]);
    assert_eq!(more.since(one), Duration::from_us(129));
    let write = |config: &DiskConfig| {
        let engine = Engine::new();
        let disk = disk(&engine, config);
        let written = engine.run(async move { disk.write(FileId(1), 0, Phantom(BLOCK)).await });
        assert!(written.is_ok_and(|written| written.is_ok()));
        engine.now()
    };
    assert_eq!(write(&plain), write(&prefetching));
}

/// Proves that an SSD takes as many commands at once as its queue is deep: the total time is that
/// of the rounds that this needs.
#[test]
fn an_ssd_takes_many_at_once() {
    let spec = SsdSpec { queue_depth: 4, ..SsdSpec::NVME };
    // Blocks of 8 KiB: two in a page, and the pages on different dies.
    let blocks: Vec<u64> = (0..16).map(|block| block * 2).collect();
    let time = |queue_depth| {
        let spec = SsdSpec { queue_depth, ..spec };
        let (order, end) = read_at_once(&config(DiskKind::of(spec), QueueKind::Fcfs), &blocks);
        assert_eq!(order, blocks);
        end.as_ns() / 1_000
    };
    let one_read = time(1) / 16;
    assert!((70..90).contains(&one_read));
    assert!((4 * 70..4 * 90).contains(&time(4)), "{}", time(4));
    assert!(time(16) < 130, "{}", time(16));
}

/// Proves that a cancelled read, waiting or being served, does not block the disk for others.
#[test]
fn reads_can_be_given_up() {
    for queue in [QueueKind::Fcfs, QueueKind::Cscan] {
        let engine = Engine::new();
        let disk = disk(&engine, &config(DiskKind::of(Drive::hp97560()), queue));
        let inside = engine.clone();
        let ended = engine.run(async move {
            let start = |block: u64| {
                let (disk, engine) = (disk.clone(), inside.clone());
                let read = async move {
                    let _ = disk.read(FileId(1), block * BLOCK, BLOCK).await;
                };
                engine.spawn(0, read)
            };
            let (served, waits, last) = (start(50), start(60), start(70));
            inside.sleep(Duration::from_ms(5)).await;
            drop((waits, served));
            inside.sleep(Duration::from_ms(200)).await;
            drop(last);
            disk.read(FileId(1), 0, BLOCK).await.is_ok()
        });
        assert_eq!(ended.ok(), Some(true));
    }
}
