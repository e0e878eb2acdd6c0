//! Proves: the time of a file changes exactly when its data or its size does, whoever changes it
//! and by what request; every client sees it at once; and it outlives clients and servers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{TestClient, read, restart, some_shape, write};
use crate::support;

use filesystem::collective::Strategy;
use policy::{Direction, Pattern};
use support::{
    Cluster, Numbers, Shape, create, for_each_seed, image, read_back, transfer, write_image,
};
use units::{Duration, Timestamp};
use wire::{Fault, FileRecord};
use world::Clock;
use world::payload::Bytes;

/// Time of a file as its servers know it, and as a list shows it.
async fn time_of(client: &TestClient, name: &str) -> Timestamp {
    let seen = client.look_at(name).await.unwrap().modified;
    let listed = client.list("").await.unwrap().into_iter().find(|entry| entry.name == name);
    let listed = listed.unwrap();
    let open = client.open_sizes().await.unwrap();
    let file = listed.file().unwrap().file;
    let open = open.get(&file).map_or(Timestamp::default(), |(_, modified)| *modified);
    assert_eq!(listed.modified.max(open), seen, "a list shows another time: {listed:?} {open:?}");
    seen
}

/// Uses the file in some way. Returns true if that changed it, and nothing if it was closed.
async fn take_step(
    client: &TestClient,
    file: &mut FileRecord,
    numbers: &mut Numbers,
    step: u8,
) -> Option<bool> {
    client.refresh(file).await.unwrap();
    match numbers.below(8) {
        0 => client.set_size(file, file.bytes / 2 + 1).await.unwrap(),
        1 => client.grow(file, file.bytes + 1 + numbers.below(100)).await.unwrap(),
        2 | 3 => {
            let offset = numbers.below(file.bytes);
            let length = 1 + numbers.below(file.bytes - offset);
            write(client, file, offset, &vec![step; length as usize]).await;
        }
        4 => {
            read(client, file).await;
            return Some(false);
        }
        5 => {
            client.flush(file, numbers.below(2) == 0).await.unwrap();
            return Some(false);
        }
        6 => {
            client.close(file).await.unwrap();
            return None;
        }
        _ => {
            // Dirty blocks are written back meanwhile.
            client.world().sleep(Duration::from_ms(numbers.below(100))).await;
            return Some(false);
        }
    }
    Some(true)
}

#[test]
fn the_time_of_a_file_changes_exactly_when_the_file_does() {
    for_each_seed("times", "the_time_of_a_file_changes", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..some_shape(seed) });
        let other = cluster.world(1);
        let last = cluster.run_alone(0, |start| {
            let other = other.clone();
            async move {
                let mut numbers = Numbers::new(seed);
                let costs = filesystem::Costs::FREE;
                let other =
                    filesystem::Client::connect(other, &start.servers, costs).await.unwrap();
                let clients = [start.connect().await.unwrap(), other];
                let made = clients[0].create("f", 300, start.shape.stripe()).await.unwrap();
                clients[0].close(&made).await.unwrap();
                let mut open = [None, None];
                let mut last = time_of(&clients[1], "f").await;
                for step in 0..60 {
                    let who = numbers.below(2) as usize;
                    let client = &clients[who];
                    if open[who].is_none() {
                        open[who] = Some(client.open("f").await.unwrap());
                    }
                    let file = open[who].as_mut().unwrap();
                    let changes = take_step(client, file, &mut numbers, step).await;
                    if changes.is_none() {
                        open[who] = None;
                    }
                    let now = time_of(&clients[numbers.below(2) as usize], "f").await;
                    assert!(
                        if changes == Some(true) { now > last } else { now == last },
                        "step {step}: {now:?}"
                    );
                    last = now;
                }
                // A simulated restart is a loss of power.
                for (client, file) in clients.iter().zip(open) {
                    let file = match file {
                        Some(file) => file,
                        None => client.open("f").await.unwrap(),
                    };
                    client.flush(&file, true).await.unwrap();
                    client.close(&file).await.unwrap();
                }
                assert_eq!(time_of(&clients[0], "f").await, last);
                last
            }
        });
        if seed % 2 == 0 {
            let _servers = restart(&cluster, Some(0));
            let later = cluster.run_alone(1, |start| async move {
                time_of(&start.connect().await.unwrap(), "f").await
            });
            assert_eq!(later, last, "servers that stop and start change no file");
        }
    });
}

#[test]
fn a_collective_write_changes_the_time_at_its_end() {
    for_each_seed("times", "a_collective_write_changes_the_time", 24, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { cache_blocks: seed % 5, ..Shape::default() });
        let strategy = Strategy::NAMED[(seed % 6) as usize];
        let access = "wc".parse::<Pattern>().unwrap().access(4, 8, 2000).unwrap();
        cluster.run(0..4, |start| {
            let access = access.clone();
            async move {
                let group = start.join(0).await.unwrap();
                let file = create(&group, "f", 2000, start.shape.stripe()).await.unwrap();
                let before = group.client().look_at("f").await.unwrap().modified;
                group.barrier().await.unwrap();
                let write = transfer(Direction::Write, &file, &access, strategy);
                write_image(&group, &write, &image(1, 2000)).await.unwrap();
                group.barrier().await.unwrap();
                let after = group.client().look_at("f").await.unwrap().modified;
                assert!(after > before, "{strategy}: {before:?} {after:?}");
                let read = transfer(Direction::Read, &file, &access, strategy);
                read_back(&group, &read).await.unwrap();
                group.barrier().await.unwrap();
                let read = group.client().look_at("f").await.unwrap().modified;
                assert_eq!(read, after, "{strategy}");
                group.leave().await;
            }
        });
    });
}

#[test]
fn a_change_by_a_killed_client_or_server_has_a_later_time() {
    for_each_seed("times", "a_change_by_a_killed_client", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..some_shape(seed) });
        let (before, after) = cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 500, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &[1; 500]).await;
            client.flush(&file, true).await.unwrap();
            client.close(&file).await.unwrap();
            let before = time_of(&client, "f").await;
            start.world.sleep(Duration::from_ms(seed)).await;
            let file = client.open("f").await.unwrap();
            write(&client, &file, seed * 8, &[2; 10]).await;
            client.flush(&file, true).await.unwrap();
            (before, time_of(&client, "f").await)
        });
        assert!(after > before);
        cluster.machine.kill(cluster.shape.node_of(0));
        let _servers = if seed % 2 == 0 { restart(&cluster, None) } else { Vec::new() };
        cluster.run_alone(1, |start| async move {
            let client = start.connect().await.unwrap();
            let now = client.look_at("f").await.unwrap().modified;
            match seed % 2 {
                0 => assert!(now > before, "the change is not seen: {before:?} {now:?}"),
                _ => assert_eq!(now, after),
            }
        });
    });
}

#[test]
fn a_time_that_a_user_sets_stays_until_the_next_change() {
    for_each_seed("times", "a_time_that_a_user_sets", 20, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..some_shape(seed) });
        let set = Timestamp::from_seconds(1_000);
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 500, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &[1; 500]).await;
            client.flush(&file, true).await.unwrap();
            client.set_modified(&file, set).await.unwrap();
            assert_eq!(time_of(&client, "f").await, set);
            client.close(&file).await.unwrap();
            assert_eq!(time_of(&client, "f").await, set);
            let missing = client.look_at("g").await;
            assert!(matches!(missing, Err(Fault::NoSuchFile { .. })), "{missing:?}");
        });
        let _servers = restart(&cluster, Some(0));
        cluster.run_alone(1, |start| async move {
            let client = start.connect().await.unwrap();
            assert_eq!(time_of(&client, "f").await, set);
            let file = client.open("f").await.unwrap();
            write(&client, &file, 0, &[1; 5]).await;
            client.close(&file).await.unwrap();
            assert!(time_of(&client, "f").await > set);
        });
    });
}
