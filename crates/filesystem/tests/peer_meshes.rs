//! Proves, for groups much larger than the number of partners of a member: members have few
//! connections, all others soon name a dead member, nothing hangs, and leaving is no failure.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use filesystem::{Fault, PeerMesh};
use policy::{Access, Direction, Pattern};
use std::cell::Cell;
use std::rc::Rc;
use support::{Cluster, Kill, Numbers, Shape, Start, create, for_each_seed, share, transfer};
use units::{ClientId, Duration, Instant};
use world::payload::{Bytes, Phantom};
use world::{Clock, Payloads};
use world_simulated::SimulatedWorld;

const MEMBERS: u32 = 64;

/// Maximum time from a death until all others have its fault.
const NEWS_MAX: Duration = Duration::from_ms(1_000);

const FILE_BYTES: u64 = 64 * 64;

fn shape(seed: u64, clients: u32) -> Shape {
    Shape { clients, seed, ..Shape::default() }
}

fn pattern(name: &str, clients: u32) -> Access {
    let pattern: Pattern = name.parse().unwrap();
    pattern.access(clients, 8, FILE_BYTES).unwrap()
}

type Member = PeerMesh<SimulatedWorld<Bytes>>;

/// Work of the members, and the death of one of them.
#[derive(Clone, Copy)]
struct Scene {
    victim: u32,
    after: Duration,
    /// True when the victim dies only after all have joined.
    waits: bool,
}

/// Runs `work` over and over at every member of a group, and kills one. Panics unless each of the
/// others names it, soon enough when all had joined.
fn expect_the_victim_is_named<F: Future<Output = Result<(), Fault>> + 'static>(
    seed: u64,
    scene: Scene,
    work: impl Fn(Start, Rc<Member>) -> F + Clone + 'static,
) {
    let cluster = Cluster::new(shape(seed, MEMBERS));
    let joined = Rc::new(Cell::new(0));
    let clients: Vec<u32> = (0..MEMBERS).collect();
    let programs = cluster.programs(&clients, |start| {
        let (work, joined) = (work.clone(), Rc::clone(&joined));
        async move {
            let until_it_fails = async {
                let group = Rc::new(start.join(0).await?);
                joined.set(joined.get() + 1);
                loop {
                    work(start.clone(), Rc::clone(&group)).await?;
                }
            };
            let outcome: Result<std::convert::Infallible, Fault> = until_it_fails.await;
            (outcome.unwrap_err(), start.now())
        }
    });
    let at = Rc::new(Cell::new(Instant::START));
    let kill = Kill {
        node: cluster.shape.node_of(scene.victim),
        after: scene.after,
        ready_min: if scene.waits { MEMBERS } else { 0 },
        ready: joined,
        at: Rc::clone(&at),
    };
    let ended = cluster.run_on(programs, Some(kill));
    for (client, end) in (0..).zip(ended).filter(|(client, _)| *client != scene.victim) {
        let (fault, when) = end.unwrap();
        let named = matches!(&fault, Fault::ClientLeft { client, .. } if client.0 == scene.victim);
        assert!(named, "client {client} must name {}, not: {fault}", scene.victim);
        assert!(!scene.waits || when <= at.get() + NEWS_MAX, "client {client} learns too late");
    }
}

#[test]
fn members_have_few_connections() {
    let cluster = Cluster::<Phantom>::new(shape(1, 1024));
    let access = pattern("rc", 1024);
    let connections = cluster.run(0..1024, |start| {
        let access = access.clone();
        async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", FILE_BYTES, start.shape.stripe()).await.unwrap();
            let memory = start.world.memory(access.memory_bytes(group.rank()));
            let memory = group.share(memory).await.unwrap();
            let without_peers =
                Strategy::NAMED.into_iter().filter(|strategy| *strategy != Strategy::TwoPhase);
            for strategy in without_peers {
                let mut read = transfer(Direction::Read, &file, &access, strategy);
                read.node_group_size = 256;
                group.transfer(&read, &memory).await.unwrap();
            }
            let connections = group.connections();
            group.leave().await;
            connections
        }
    });
    assert!(connections.iter().all(|count| *count <= 2 * 10), "{connections:?}");
}

#[test]
fn two_phase_connects_all_to_all_when_it_must() {
    let cluster = Cluster::new(shape(1, MEMBERS));
    let access = pattern("rc", MEMBERS);
    cluster.run(0..MEMBERS, |start| {
        let access = access.clone();
        async move {
            let group = start.join(0).await.unwrap();
            let file = create(&group, "f", FILE_BYTES, start.shape.stripe()).await.unwrap();
            let bytes = access.memory_bytes(group.rank()) as usize;
            let memory = share(&group, vec![7; bytes]).await.unwrap();
            assert!(group.connections() <= 2 * 6, "few before");
            let read = transfer(Direction::Read, &file, &access, Strategy::TwoPhase);
            for _ in 0..2 {
                group.transfer(&read, &memory).await.unwrap();
                assert_eq!(group.connections() as u32, MEMBERS - 1, "all after");
            }
            group.unshare(memory).await;
            group.leave().await;
        }
    });
}

#[test]
fn a_member_dies_in_an_agreement() {
    for_each_seed("groups", "a_member_dies_in_an_agreement", 120, |seed| {
        let mut numbers = Numbers::new(seed);
        let victim = numbers.below(u64::from(MEMBERS)) as u32;
        let scene = Scene { victim, after: Duration::from_us(numbers.below(500)), waits: true };
        expect_the_victim_is_named(seed, scene, |_, group| async move {
            let values = group.gather(u64::from(group.rank().0)).await?;
            let all = if group.rank() == ClientId(0) { MEMBERS } else { 0 };
            assert_eq!(values, (0..u64::from(all)).collect::<Vec<_>>());
            group.barrier().await
        });
    });
}

#[test]
fn a_member_dies_in_a_collective() {
    for_each_seed("groups", "a_member_dies_in_a_collective", 600, |seed| {
        let mut numbers = Numbers::new(seed);
        let victim = numbers.below(u64::from(MEMBERS)) as u32;
        let scene = Scene { victim, after: Duration::from_us(numbers.below(12_000)), waits: true };
        let strategy = Strategy::NAMED[(seed % 6) as usize];
        let direction = numbers.pick(&[Direction::Read, Direction::Write]);
        let access = pattern(if direction == Direction::Read { "rc" } else { "wc" }, MEMBERS);
        expect_the_victim_is_named(seed, scene, move |start, group| {
            let access = access.clone();
            async move {
                let file = create(&group, "f", FILE_BYTES, start.shape.stripe()).await;
                let file = match file {
                    // It was there from the last time.
                    Err(Fault::FileExists { .. }) => group.client().open("f").await?,
                    made => made?,
                };
                let bytes = access.memory_bytes(group.rank()) as usize;
                let memory = share(&group, vec![7; bytes]).await?;
                let transfer = transfer(direction, &file, &access, strategy);
                for _ in 0..3 {
                    group.transfer(&transfer, &memory).await?;
                }
                group.unshare(memory).await;
                Ok(())
            }
        });
    });
}

#[test]
fn a_member_dies_before_or_while_it_joins() {
    for_each_seed("groups", "a_member_dies_before_or_while_it_joins", 120, |seed| {
        let mut numbers = Numbers::new(seed);
        let victim = numbers.below(u64::from(MEMBERS)) as u32;
        // At once, so that it never joins, or some time while they connect and agree.
        let after = Duration::from_us([0, numbers.below(2_000)][(seed % 4 != 0) as usize]);
        let scene = Scene { victim, after, waits: false };
        expect_the_victim_is_named(seed, scene, |_, group| async move { group.barrier().await });
    });
}

/// Only two members wait: the next receiver of the victim's token, and one that is connected to
/// neither. The failure reaches the second one through members that are busy otherwise.
#[test]
fn failures_pass_through_busy_members() {
    let (victim, next, far) = (20, 21, 42);
    let cluster = Cluster::<Bytes>::new(shape(1, MEMBERS));
    let clients: Vec<u32> = (0..MEMBERS).collect();
    let joined = Rc::new(Cell::new(0));
    let programs = cluster.programs(&clients, |start| {
        let joined = Rc::clone(&joined);
        async move {
            let group = start.join(0).await.unwrap();
            joined.set(joined.get() + 1);
            if ![next, far].contains(&start.rank.0) {
                start.world.sleep(Duration::from_ms(10_000)).await;
            }
            let fault = group.barrier().await.unwrap_err();
            (fault, start.now())
        }
    });
    let at = Rc::new(Cell::new(Instant::START));
    let node = cluster.shape.node_of(victim);
    let after = Duration::from_ms(10);
    let kill = Kill { node, after, ready_min: MEMBERS, ready: joined, at: Rc::clone(&at) };
    for (client, end) in (0..).zip(cluster.run_on(programs, Some(kill))) {
        let Some((fault, when)) = end else { continue };
        let named = matches!(&fault, Fault::ClientLeft { client, .. } if client.0 == victim);
        assert!(named, "client {client} must name {victim}, not: {fault}");
        assert!(client != far || when <= at.get() + NEWS_MAX, "client {client} learns too late");
    }
}

#[test]
fn leaving_is_no_failure() {
    for_each_seed("groups", "leaving_is_no_failure", 40, |seed| {
        let cluster = Cluster::<Bytes>::new(shape(seed, MEMBERS));
        let late = Numbers::new(seed).below(u64::from(MEMBERS)) as u32;
        let after = cluster.run(0..MEMBERS, |start| async move {
            let group = start.join(0).await.unwrap();
            for turn in 0..4 {
                // Now and then one member is late, and the first leave before it knows the outcome.
                if (start.rank.0 + turn) % 16 == late % 16 {
                    start.world.sleep(Duration::from_us(300)).await;
                }
                group.barrier().await.unwrap();
            }
            if start.rank.0 != late {
                group.leave().await;
                return None;
            }
            Some(group.barrier().await)
        });
        let left = after[late as usize].clone().unwrap();
        assert!(matches!(left, Err(Fault::ClientLeft { .. })), "{left:?}");
    });
}
