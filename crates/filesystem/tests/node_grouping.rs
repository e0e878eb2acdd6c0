//! Proves: in node grouping, no members of two groups have requests under way at the same time. It
//! makes the requests of a global barrier, no more and no fewer, and with one group it is a global
//! barrier to the event.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use filesystem::{Client, Fault, PeerMesh};
use policy::{Direction, Pattern};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Cluster, JOIN_TIMEOUT, Shape, create, image, transfer, write_image};
use units::{Duration, Instant};
use world::payload::Phantom;
use world::{Clock, Payloads};
use world_simulated::{
    Disruption, Engine, FaultPlan, Link, Mark, PlannedFault, Recorder, Slice, Track, What,
};

const SERVERS: u32 = 2;
const CLIENTS: u32 = 6;
const BYTES: u64 = 48 * 64;

/// Messages between clients and servers in a period, and commands of disks.
#[derive(Default)]
struct Traffic {
    begun: Option<Instant>,
    /// Messages of each client's node to servers, and of servers to it, in the order of sending.
    messages: BTreeMap<u32, Vec<Sent>>,
    commands: u64,
}

/// A message, with the time in which it occupied its sender.
#[derive(Clone, Copy)]
struct Sent {
    from: Instant,
    until: Instant,
    is_request: bool,
}

impl Recorder for Traffic {
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
        if self.begun.is_none_or(|begun| slice.from < begun) {
            return None;
        }
        let (sender, receiver) = match (slice.track, &slice.what) {
            (Track::Commands(_), What::Command { .. }) => {
                self.commands += 1;
                return None;
            }
            (Track::Processor(from), What::Send { to, .. }) => (from, *to),
            _ => return None,
        };
        let is_request = receiver < SERVERS;
        if is_request != (sender < SERVERS) {
            let client = if is_request { sender } else { receiver };
            let sent = Sent { from: slice.from, until: slice.until, is_request };
            self.messages.entry(client).or_default().push(sent);
        }
        None
    }

    fn arrow(&mut self, _link: Link, _from: Mark, _to: Mark) {}
}

/// One transfer: what was seen on the way, requests at the servers, and digest and events of the
/// simulation.
struct Seen {
    traffic: Traffic,
    requests: u64,
    engine: (u64, u64),
    nanoseconds: u64,
}

fn transfer_by(strategy: Strategy, name: &str, size: u32, cache_blocks: u64) -> Seen {
    let traffic = Rc::new(RefCell::new(Traffic::default()));
    let engine = Engine::recorded(Rc::clone(&traffic) as Rc<RefCell<dyn Recorder>>);
    let shape = Shape { servers: SERVERS, clients: CLIENTS, cache_blocks, ..Shape::default() };
    let cluster = Cluster::<Phantom>::on(engine, shape);
    let pattern: Pattern = name.parse().unwrap();
    let access = pattern.access(CLIENTS, 8, BYTES).unwrap();
    let (starts, ended) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let requests = cluster.run(0..CLIENTS, |start| {
        let (access, direction, traffic) = (access.clone(), pattern.direction, traffic.clone());
        let (starts, ended) = (Rc::clone(&starts), Rc::clone(&ended));
        async move {
            let (world, costs) = (start.world.clone(), start.shape.costs);
            let client = Client::connect(world, &start.servers, costs).await.unwrap();
            let (rank, members) = (start.rank, Rc::clone(&start.members));
            let group = PeerMesh::join(client, 0, rank, members, JOIN_TIMEOUT).await.unwrap();
            let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
            let memory = start.world.memory(access.memory_bytes(group.rank()));
            let memory = group.share(memory).await.unwrap();
            let mut transfer = transfer(direction, &file, &access, strategy);
            transfer.node_group_size = size;
            let requests_so_far = async || {
                group.barrier().await.unwrap();
                let statuses = match group.rank().0 {
                    0 => group.client().status().await,
                    _ => Vec::new(),
                };
                group.barrier().await.unwrap();
                statuses.into_iter().map(|status| status.unwrap().requests).sum::<u64>()
            };
            let before = requests_so_far().await;
            starts.set(starts.get() + 1);
            traffic.borrow_mut().begun = Some(start.now());
            let begun = start.now();
            group.transfer(&transfer, &memory).await.unwrap();
            ended.set(ended.get().max(start.now().since(begun).as_ns()));
            start.world.sleep(Duration::from_ms(1)).await;
            traffic.borrow_mut().begun = None;
            // Each of the two counts includes the same calls of this test.
            let requests = requests_so_far().await - before;
            group.leave().await;
            requests
        }
    });
    assert_eq!(starts.get(), CLIENTS);
    let engine = (cluster.engine.digest(), cluster.engine.events());
    let traffic = std::mem::take(&mut *traffic.borrow_mut());
    Seen { traffic, requests: requests[0], engine, nanoseconds: ended.get() }
}

/// True if no two clients of different groups had requests under way at the same time: from the
/// first message of each to a server until the last one from a server.
fn groups_take_turns(traffic: &Traffic, size: u32) -> bool {
    let mut turns: BTreeMap<u32, (Instant, Instant)> = BTreeMap::new();
    for (client, messages) in &traffic.messages {
        let from = messages.iter().map(|sent| sent.from).min().unwrap();
        let until = messages.iter().map(|sent| sent.until).max().unwrap();
        let turn = turns.entry((client - SERVERS) / size).or_insert((from, until));
        *turn = (turn.0.min(from), turn.1.max(until));
    }
    assert_eq!(turns.len() as u32, CLIENTS.div_ceil(size), "every group has made requests");
    let turns: Vec<_> = turns.into_values().collect();
    turns.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

#[test]
fn groups_take_turns_in_the_order_of_ranks() {
    for name in ["rb", "rc", "ra", "rbc"] {
        for size in [1, 2, 4, 5] {
            let seen = transfer_by(Strategy::NodeGrouping, name, size, 100);
            assert!(groups_take_turns(&seen.traffic, size), "{name} by {size}");
        }
        // The default: one client for each of two disks.
        let seen = transfer_by(Strategy::NodeGrouping, name, 0, 100);
        assert!(groups_take_turns(&seen.traffic, 2), "{name} by the default");
        for strategy in [Strategy::GlobalBarrier, Strategy::Caching] {
            let seen = transfer_by(strategy, name, 2, 100);
            assert!(!groups_take_turns(&seen.traffic, 2), "the test sees requests of {strategy}");
        }
    }
}

#[test]
fn writes_take_turns_too() {
    for name in ["wb", "wc", "wbc"] {
        for size in [1, 2, 4] {
            let mut seen = transfer_by(Strategy::NodeGrouping, name, size, 100);
            // Client 0 flushes at the end: a message to each server, and its answer.
            let first = seen.traffic.messages.get_mut(&SERVERS).unwrap();
            first.truncate(first.len() - 2 * SERVERS as usize);
            assert!(groups_take_turns(&seen.traffic, size), "{name} by {size}");
        }
    }
}

#[test]
fn groups_make_the_requests_of_a_global_barrier() {
    for name in ["rb", "rc", "rbc", "ra", "wb", "wc", "wbc"] {
        let barrier = transfer_by(Strategy::GlobalBarrier, name, 0, 100);
        for size in [1, 2, 3, 4] {
            let groups = transfer_by(Strategy::NodeGrouping, name, size, 100);
            assert_eq!(groups.requests, barrier.requests, "{name} by {size}");
            assert_eq!(groups.traffic.commands, barrier.traffic.commands, "{name} by {size}");
        }
    }
}

#[test]
fn one_group_is_a_global_barrier() {
    for name in ["rb", "rc", "wb", "wbc"] {
        for cache_blocks in [0, 3, 100] {
            let barrier = transfer_by(Strategy::GlobalBarrier, name, 0, cache_blocks);
            for size in [CLIENTS, 100] {
                let groups = transfer_by(Strategy::NodeGrouping, name, size, cache_blocks);
                assert_eq!(groups.engine, barrier.engine, "{name}, {cache_blocks} blocks");
            }
            let two = transfer_by(Strategy::NodeGrouping, name, CLIENTS / 2, cache_blocks);
            assert!(two.nanoseconds > 0 && two.engine != barrier.engine, "two groups differ");
        }
    }
}

/// A chunk of several blocks is asked for at once; caching waits for each answer of a disk.
#[test]
fn a_chunk_is_asked_for_at_once() {
    let barrier = transfer_by(Strategy::GlobalBarrier, "rb", 0, 100);
    let caching = transfer_by(Strategy::Caching, "rb", 0, 100);
    // Each client has eight blocks on two disks.
    let before_an_answer = |seen: &Seen, client: u32| {
        let messages = &seen.traffic.messages[&(SERVERS + client)];
        messages.iter().take_while(|sent| sent.is_request).count()
    };
    for client in 0..CLIENTS {
        assert_eq!(before_an_answer(&barrier, client), 8);
        assert_eq!(before_an_answer(&caching, client), 2);
    }
}

/// A disk that fails for a time, in any of three turns: every member has the same outcome of every
/// transfer, and the group goes on.
#[test]
fn a_failing_disk_ends_the_turns() {
    for direction in [Direction::Read, Direction::Write] {
        let cluster = Cluster::new(Shape { clients: CLIENTS, cache_blocks: 2, ..Shape::default() });
        let fault = |at, fails| PlannedFault {
            at: Instant::START + Duration::from_ms(at),
            what: Disruption::DiskFails { node: 1, disk: 0, fails },
        };
        let faults = vec![fault(30, true), fault(50, false), fault(61, true), fault(80, false)];
        cluster.machine.plan(&FaultPlan { faults, ..FaultPlan::default() }, |_| {});
        let ended = cluster.run(0..CLIENTS, |start| async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
            let access = "wb".parse::<Pattern>().unwrap().access(CLIENTS, 8, BYTES).unwrap();
            let mut write = transfer(Direction::Write, &file, &access, Strategy::NodeGrouping);
            write.node_group_size = 2;
            write_image(&group, &write, &image(1, BYTES)).await.unwrap();
            let bytes = access.memory_bytes(group.rank()) as usize;
            let memory = support::share(&group, vec![7; bytes]).await.unwrap();
            let mut again = write.clone();
            again.direction = direction;
            let mut outcomes = Vec::new();
            while start.now() < Instant::START + Duration::from_ms(120) {
                outcomes.push(group.transfer(&again, &memory).await);
                // All members see the same clock.
                group.barrier().await.unwrap();
                start.world.sleep_until(round_up(start.now())).await;
            }
            group.unshare(memory).await;
            outcomes
        });
        assert!(ended.iter().all(|outcomes| outcomes == &ended[0]), "one outcome for all");
        let failed = |outcome: &Result<(), Fault>| matches!(outcome, Err(Fault::DiskFailed { .. }));
        let (first, last) = (ended[0].first().unwrap(), ended[0].last().unwrap());
        assert_eq!((first, last), (&Ok(()), &Ok(())), "before and after");
        assert!(ended[0].iter().any(failed), "meanwhile: {:?}", ended[0]);
    }
}

/// The next whole millisecond.
fn round_up(at: Instant) -> Instant {
    Instant::START + Duration::from_ms(at.since(Instant::START).as_ns() / 1_000_000 + 1)
}
