//! Proves: variation of work is uniform between its bounds, and differs from node to node.
//! Computations of programs share the cores of a host, and messages interrupt them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures_util::future::join_all;
use support::{BLOCK, machine, machine_on_one_host, machine_that_varies};
use units::{Duration, FileId};
use world::payload::Bytes;
use world::{Clock, Disk, Disks, Incoming, Message, Network, Processor};
use world_simulated::models::mechanical::Drive;
use world_simulated::models::page_cache::PageCacheSpec;
use world_simulated::{DiskKind, SimulatedWorld};

fn hp97560() -> DiskKind {
    DiskKind::of(Drive::hp97560())
}

#[test]
fn work_varies_evenly_between_its_bounds() {
    const TIMES: u64 = 20_000;
    let (engine, machine) = machine_that_varies(hp97560(), 25);
    let measured = engine.clone().run(async move {
        let mut measured = [Vec::new(), Vec::new()];
        for (node, lengths) in (0..).zip(&mut measured) {
            for _ in 0..TIMES {
                let begun = engine.now();
                machine.world(node).compute(Duration::from_ns(1_000)).await;
                lengths.push(engine.now().since(begun).as_ns());
            }
        }
        measured
    });
    let [one, other] = measured.unwrap();
    assert_ne!(one, other, "each node has its own sequence");
    for lengths in [one, other] {
        assert!(lengths.iter().all(|length| (750..=1_250).contains(length)));
        // So many in each tenth, within six standard deviations.
        for tenth in 0..10 {
            let within = (751 + 50 * tenth)..=(800 + 50 * tenth);
            let count = lengths.iter().filter(|length| within.contains(*length)).count();
            assert!((1_740..=2_260).contains(&count), "{count} of {TIMES} within {within:?}");
        }
    }
}

/// Milliseconds after which each of these nodes has computed for 100 ms, begun at once.
fn ends_of_computations(nodes: u32, cores: u32) -> Vec<u64> {
    let (engine, machine) = machine_on_one_host((nodes, cores), hp97560());
    let computations = (0..nodes).map(|node| {
        let world = machine.world(node);
        async move {
            world.compute_as_program(Duration::from_ms(100)).await;
            world.now().as_ns() / 1_000_000
        }
    });
    engine.clone().run(join_all(computations)).unwrap()
}

#[test]
fn nodes_share_the_cores_of_their_host() {
    assert_eq!(ends_of_computations(2, 2), [100; 2]);
    assert_eq!(ends_of_computations(4, 2), [200; 4]);
    assert_eq!(ends_of_computations(3, 2), [150; 3]);
    assert_eq!(ends_of_computations(64, 2), [3200; 64]);
}

#[test]
fn the_end_of_one_computation_speeds_up_the_others() {
    let (engine, machine) = machine_on_one_host((2, 1), hp97560());
    let (long, short) = (machine.world(0), machine.world(1));
    let ended = engine.clone().run(async move {
        let short = async {
            let interrupted = short.compute_as_program(Duration::from_ms(100));
            let limit = short.sleep(Duration::from_ms(40));
            // Dropping a computation ends it.
            futures_util::future::select(std::pin::pin!(interrupted), std::pin::pin!(limit)).await;
        };
        futures_util::join!(long.compute_as_program(Duration::from_ms(100)), short);
        long.now().as_ns() / 1_000_000
    });
    // 20 ms of progress in the first 40 ms, then the core alone.
    assert_eq!(ended.unwrap(), 120);
}

/// A computation that many others end beside takes as many events as there are of them, and not
/// some for each of the looks that it took before.
#[test]
fn a_computation_beside_many_short_ones_takes_few_events() {
    const SHORT: u64 = 200;
    let (engine, machine) = machine_on_one_host((3, 1), hp97560());
    let worlds = [0, 1, 2].map(|node| machine.world(node));
    let before = engine.events();
    let ended = engine.clone().run(async move {
        let [long, one, other] = &worlds;
        let short = async |node: &SimulatedWorld<Bytes>, pause: u64| {
            for _ in 0..SHORT {
                node.compute_as_program(Duration::from_us(7)).await;
                node.sleep(Duration::from_us(pause)).await;
            }
        };
        let longs = long.compute_as_program(Duration::from_ms(100));
        futures_util::join!(longs, short(one, 11), short(other, 13));
        long.now().as_ns()
    });
    let work = 100_000_000 + 2 * SHORT * 7_000;
    assert!(ended.unwrap().abs_diff(work) < 1000, "the core has the work of all three");
    assert!(engine.events() - before < 20 * SHORT);
}

/// A node answers a message while its program computes; the computation ends later by the time of
/// both.
#[test]
fn messages_interrupt_a_computation() {
    let (engine, machine) = machine(hp97560());
    let (asking, computing) = (machine.world(0), machine.world(1));
    let (answered, ended) = engine
        .clone()
        .run(async move {
            let address = computing.address();
            let answer = async {
                loop {
                    match computing.receive().await {
                        Incoming::Message { from, header, .. } => {
                            computing.send(from, Message::new(header)).await.unwrap();
                        }
                        Incoming::Departed { .. } => return,
                    }
                }
            };
            let program = async {
                computing.compute_as_program(Duration::from_ms(100)).await;
                computing.now()
            };
            let ask = async {
                asking.sleep(Duration::from_ms(10)).await;
                let peer = asking.connect(&address).await.unwrap();
                let header = world::Header::default();
                asking.send(peer, Message::new(header)).await.unwrap();
                asking.receive().await;
                let answered = asking.now();
                asking.disconnect(peer);
                answered
            };
            let (answered, ended, ()) = futures_util::join!(ask, program, answer);
            (answered.as_ns(), ended.as_ns())
        })
        .unwrap();
    assert!((10_000_000..11_000_000).contains(&answered), "{answered}");
    let delay = ended - 100_000_000;
    // One received message, one sent, and the departure, of 5 us each.
    assert_eq!(delay, 15_000);
}

/// Threads of disks in a page cache share the cores of the host: with one core, two disks take
/// twice as long for their copies as with two.
#[test]
fn threads_of_disks_share_the_cores() {
    let end = |cores| {
        let disk = DiskKind::of(PageCacheSpec::DEFAULT);
        let (engine, machine) = machine_on_one_host((2, cores), disk);
        let writes = (0..2).map(|node| {
            let world = machine.world(node);
            async move {
                let data = Bytes::from(vec![1; BLOCK]);
                world.disks()[0].write(FileId(1), 0, data).await.unwrap();
                world.now().as_ns()
            }
        });
        engine.clone().run(join_all(writes)).unwrap().into_iter().max().unwrap()
    };
    let alone = PageCacheSpec::DEFAULT.call
        + Duration::of_transfer(BLOCK as u64, PageCacheSpec::DEFAULT.write_bytes_per_second);
    assert_eq!(end(2), alone.as_ns());
    assert_eq!(end(1), 2 * alone.as_ns());
}
