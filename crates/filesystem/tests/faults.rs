//! Proves: when a client or a server dies, all others soon get a fault that names it; nothing
//! hangs; the servers free its resources and serve others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::Fault;
use filesystem::collective::Strategy;
use policy::{Access, Direction, Pattern};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Cluster, Kill, Numbers, Program, Shape, Start, create, expect_equal, for_each_seed, image,
    memory_of, read_back, share, transfer, write_image,
};
use units::{ClientId, Duration, Instant, ServerId};
use world::Clock;
use world_simulated::NetworkKind;
use world_simulated::models::network::torus::exact::ExactTorusShape;

/// Maximum time from a death until all others have its fault.
const NEWS_MAX: Duration = Duration::from_ms(1_000);

/// A random machine and a random transfer on it.
#[derive(Clone, Debug)]
struct Scene {
    shape: Shape,
    file_bytes: u64,
    access: Access,
    direction: Direction,
    strategy: Strategy,
    victim: u32,
    after: Duration,
}

fn scene(seed: u64) -> Scene {
    let mut numbers = Numbers::new(seed);
    let shape = Shape {
        servers: 1 + numbers.below(3) as u32,
        disks_per_server: 1 + numbers.below(2) as u32,
        clients: 2 + numbers.below(4) as u32,
        cache_blocks: numbers.below(9),
        network: NetworkKind::of(ExactTorusShape::default()),
        seed,
        ..Shape::default()
    };
    let file_bytes = 8 * (1 + numbers.below(200));
    let direction = numbers.pick(&[Direction::Read, Direction::Write]);
    let letters = numbers.pick(&["n", "b", "c", "bc", "cb", "nb"]);
    let name = match direction {
        Direction::Read => format!("r{letters}"),
        Direction::Write => format!("w{letters}"),
    };
    let pattern: Pattern = name.parse().unwrap();
    Scene {
        access: pattern.access(shape.clients, 8, file_bytes).unwrap(),
        file_bytes,
        direction,
        strategy: Strategy::NAMED[(seed % 6) as usize],
        victim: 0,
        after: Duration::from_us(numbers.below(8_000)),
        shape,
    }
}

/// Transfers again and again until that fails. Returns the fault and the instant.
async fn transfer_until_it_fails(
    start: Start,
    scene: Scene,
    joined: Rc<Cell<u32>>,
) -> (Fault, Instant) {
    let work = async {
        let group = start.join(0).await?;
        joined.set(joined.get() + 1);
        let file = create(&group, "f", scene.file_bytes, scene.shape.stripe()).await?;
        let bytes = scene.access.memory_bytes(group.rank());
        let memory = share(&group, vec![7; bytes as usize]).await?;
        let transfer = transfer(scene.direction, &file, &scene.access, scene.strategy);
        loop {
            group.transfer(&transfer, &memory).await?;
        }
    };
    let outcome: Result<std::convert::Infallible, Fault> = work.await;
    let Err(fault) = outcome;
    (fault, start.now())
}

/// Returns the final fault of each client, and the instant of the death. Only the victim's may be
/// missing.
fn play(
    cluster: &Cluster,
    scene: &Scene,
    node: u32,
    wait: bool,
) -> (Vec<Option<(Fault, Instant)>>, Instant) {
    let joined = Rc::new(Cell::new(0));
    let clients: Vec<u32> = (0..scene.shape.clients).collect();
    let programs: Vec<(u32, Program<(Fault, Instant)>)> = cluster.programs(&clients, |start| {
        transfer_until_it_fails(start, scene.clone(), Rc::clone(&joined))
    });
    let at = Rc::new(Cell::new(Instant::START));
    let kill = Kill {
        node,
        after: scene.after,
        ready_min: if wait { scene.shape.clients } else { 0 },
        ready: joined,
        at: Rc::clone(&at),
    };
    let ended = cluster.run_on(programs, Some(kill));
    (ended, at.get())
}

/// Panics unless the servers hold nothing any more for any client.
fn expect_nothing_held(cluster: &Cluster, by_client: u32) {
    let statuses = cluster.run_alone(by_client, |start| async move {
        let client = start.connect().await.unwrap();
        start.world.sleep(Duration::from_ms(100)).await;
        client.status().await
    });
    for status in statuses {
        let status = status.unwrap();
        assert_eq!(status.collective_bytes, 0, "a server must free the buffers of who left");
        assert_eq!(status.clients, 1, "only the client that asks is connected");
    }
}

/// Writes a file by one strategy and reads it by the others, all with these clients.
fn expect_service(cluster: &Cluster, clients: &[u32], file_bytes: u64) {
    let file_image = image(9, file_bytes);
    let pattern = |name: &str| {
        let pattern: Pattern = name.parse().unwrap();
        pattern.access(clients.len() as u32, 8, file_bytes).unwrap()
    };
    let (write, read) = (pattern("wc"), pattern("rb"));
    let programs = cluster.programs(clients, |start| {
        let (file_image, write, read) = (file_image.clone(), write.clone(), read.clone());
        async move {
            let group = start.join(1).await.unwrap();
            // The file that was in use when the victim died, if it came to that.
            let file = match group.client().open("f").await {
                Ok(file) => file,
                Err(_) => {
                    let stripe = start.shape.stripe();
                    create(&group, "f", file_image.len() as u64, stripe).await.unwrap()
                }
            };
            for strategy in Strategy::NAMED {
                let write = transfer(Direction::Write, &file, &write, strategy);
                write_image(&group, &write, &file_image).await.unwrap();
            }
            let mut got = Vec::new();
            for strategy in Strategy::NAMED {
                let read = transfer(Direction::Read, &file, &read, strategy);
                got.push(read_back(&group, &read).await.unwrap());
            }
            group.leave().await;
            got
        }
    });
    for (rank, got) in cluster.run_on(programs, None).into_iter().enumerate() {
        let wanted = memory_of(&read, ClientId(rank as u32), &file_image);
        for bytes in got.unwrap() {
            expect_equal(&bytes, &wanted, &format!("the memory of survivor {rank}"));
        }
    }
}

#[test]
fn a_client_dies() {
    for_each_seed("faults", "a_client_dies", 1200, |seed| {
        let mut scene = scene(seed);
        scene.victim = (seed / 6 % u64::from(scene.shape.clients)) as u32;
        let cluster = Cluster::new(scene.shape.clone());
        let (ended, died_at) = play(&cluster, &scene, scene.shape.node_of(scene.victim), true);
        let mut survivors = Vec::new();
        for (client, end) in (0..).zip(ended) {
            if client == scene.victim {
                continue;
            }
            let (fault, at) = end.unwrap();
            let named =
                matches!(&fault, Fault::ClientLeft { client, .. } if client.0 == scene.victim);
            assert!(named, "client {client} must name {}, not: {fault} in {scene:?}", scene.victim);
            assert!(at <= died_at + NEWS_MAX, "client {client} learns too late in {scene:?}");
            survivors.push(client);
        }
        expect_nothing_held(&cluster, survivors[0]);
        expect_service(&cluster, &survivors, scene.file_bytes);
    });
}

#[test]
fn a_client_dies_while_the_group_forms() {
    for_each_seed("faults", "a_client_dies_while_the_group_forms", 600, |seed| {
        let mut scene = scene(seed);
        scene.after = Duration::from_us(Numbers::new(seed).below(400));
        scene.victim = (seed / 6 % u64::from(scene.shape.clients)) as u32;
        let cluster = Cluster::new(scene.shape.clone());
        let (ended, _) = play(&cluster, &scene, scene.shape.node_of(scene.victim), false);
        let survivors = (0..scene.shape.clients).filter(|client| *client != scene.victim);
        let survivors: Vec<u32> = survivors.collect();
        for &client in &survivors {
            let fault = ended[client as usize].clone().unwrap().0;
            assert!(matches!(fault, Fault::ClientLeft { .. }), "client {client}: {fault}");
        }
        expect_nothing_held(&cluster, survivors[0]);
        expect_service(&cluster, &survivors, scene.file_bytes);
    });
}

#[test]
fn a_server_dies() {
    for_each_seed("faults", "a_server_dies", 900, |seed| {
        let scene = scene(seed);
        let victim = (seed / 6 % u64::from(scene.shape.servers)) as u32;
        let cluster = Cluster::new(scene.shape.clone());
        let (ended, died_at) = play(&cluster, &scene, victim, seed % 5 != 0);
        for (client, end) in ended.into_iter().enumerate() {
            let (fault, at) = end.unwrap();
            let named =
                matches!(&fault, Fault::ServerLeft { server, .. } if *server == ServerId(victim));
            assert!(named, "client {client} must name server {victim}, not: {fault} in {scene:?}");
            assert!(at <= died_at + NEWS_MAX, "client {client} learns too late in {scene:?}");
        }
    });
}

/// A client drops its part in the middle of any wait, without dying.
#[test]
fn a_client_gives_up() {
    for_each_seed("faults", "a_client_gives_up", 600, |seed| {
        let mut scene = scene(seed);
        scene.victim = (seed / 6 % u64::from(scene.shape.clients)) as u32;
        let cluster = Cluster::new(scene.shape.clone());
        let clients: Vec<u32> = (0..scene.shape.clients).collect();
        let joined = Rc::new(Cell::new(0));
        let programs = cluster.programs(&clients, |start| {
            let (scene, joined) = (scene.clone(), Rc::clone(&joined));
            async move {
                let (world, own) = (start.world.clone(), start.rank.0);
                let (count, number) = (Rc::clone(&joined), scene.shape.clients);
                let timeout = async {
                    while count.get() < number || own != scene.victim {
                        world.sleep(Duration::from_us(50)).await;
                    }
                    world.sleep(scene.after).await;
                };
                let after = scene.clone();
                let work = std::pin::pin!(transfer_until_it_fails(start, after, joined));
                match futures_util::future::select(work, std::pin::pin!(timeout)).await {
                    futures_util::future::Either::Left(((fault, _), _)) => Some(fault),
                    futures_util::future::Either::Right(_) => None,
                }
            }
        });
        let ended = cluster.run_on(programs, None);
        for (client, end) in (0..).zip(ended) {
            match end.unwrap() {
                None => assert_eq!(client, scene.victim),
                Some(Fault::ClientLeft { client: named, .. }) if named.0 == scene.victim => {}
                Some(fault) => panic!("client {client} must name {}: {fault}", scene.victim),
            }
        }
        expect_nothing_held(&cluster, 0);
        expect_service(&cluster, &clients, scene.file_bytes);
    });
}

#[test]
fn dirty_blocks_outlive_a_client_that_drives_them_out() {
    for_each_seed("faults", "dirty_blocks_outlive_a_client_that_drives_them_out", 60, |seed| {
        // One client leaves dirty bytes in a cache of one block, the other drives them out and is
        // killed meanwhile.
        let shape = Shape { servers: 1, clients: 3, cache_blocks: 1, ..Shape::default() };
        let cluster = Cluster::new(shape.clone());
        let part = |at: u64| {
            let entry = policy::ListEntry { file_offset: at, memory_offset: 0, length: 10 };
            Access::lists(vec![vec![entry]])
        };
        let programs = cluster.programs(&[0], |start| {
            let part = part(20);
            async move {
                let group = start.join(0).await.unwrap();
                let file = create(&group, "f", 640, start.shape.stripe()).await.unwrap();
                let zeros = transfer(Direction::Write, &file, &part, Strategy::Caching);
                write_image(&group, &zeros, &image(3, 640)).await.unwrap();
                // Not flushed: the bytes of a request of its own stay dirty.
                start.write_raw(&file, 0, 20, &image(4, 10)).await;
            }
        });
        cluster.run_on(programs, None);
        let killed = cluster.programs(&[1], |start| async move {
            let group = start.join(0).await.unwrap();
            let file = group.client().open("f").await.unwrap();
            let all = Access::All { bytes: 640, clients: 1 };
            let read = transfer(Direction::Read, &file, &all, Strategy::Caching);
            read_back(&group, &read).await.unwrap();
        });
        let kill = Kill {
            node: shape.node_of(1),
            after: Duration::from_us(seed * 12),
            ready: Rc::default(),
            ready_min: 0,
            at: Rc::new(Cell::new(Instant::START)),
        };
        cluster.run_on(killed, Some(kill));
        let got = cluster.run_alone(2, |start| {
            let part = part(20);
            async move {
                let group = start.join(0).await.unwrap();
                let file = group.client().open("f").await.unwrap();
                let all = Access::All { bytes: 640, clients: 1 };
                let read = transfer(Direction::Read, &file, &all, Strategy::Caching);
                read_back(&group, &read).await.unwrap();
                let read = transfer(Direction::Read, &file, &part, Strategy::Caching);
                read_back(&group, &read).await.unwrap()
            }
        });
        expect_equal(&got, &image(4, 10), "what was written and acknowledged");
    });
}
