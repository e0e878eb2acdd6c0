//! Proves: a name whose file is replaced again and again always has a file. A client that opens it
//! finds one whole version, and keeps it while it has it open; then its data goes. A removal is
//! made or not, also when its client ends during it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{at, read, restart, some_shape, write};
use crate::support;

use futures_util::future::{Either, select};
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use support::{Cluster, Numbers, Shape, for_each_seed};
use units::Duration;
use wire::Fault;
use world::Clock;
use world::payload::Bytes;

/// Content of the `number`th version of a file, which also fixes its length.
fn contents(number: u64) -> Vec<u8> {
    vec![number as u8; 200 + 37 * (number % 9) as usize]
}

#[test]
fn reader_of_a_replaced_file_finds_one_whole_version() {
    for_each_seed("replaced", "who_reads_a_file_that_is_replaced", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..some_shape(seed) });
        const TIMES: u64 = 50;
        let is_over = Rc::new(Cell::new(false));
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 200, start.shape.stripe()).await.unwrap();
            write(&client, &file, 0, &contents(0)[..200]).await;
            client.close(&file).await.unwrap();
        });
        let seen = cluster.run(0..3, |start| {
            let is_over = Rc::clone(&is_over);
            async move {
                let client = start.connect().await.unwrap();
                let mut numbers = Numbers::new(seed * 3 + u64::from(start.rank.0));
                if start.rank.0 == 0 {
                    for number in 1..=TIMES {
                        let length = contents(number).len() as u64;
                        let new = client.create("new", length, start.shape.stripe()).await;
                        let new = new.unwrap();
                        write(&client, &new, 0, &contents(number)).await;
                        client.close(&new).await.unwrap();
                        client.replace("new", "f").await.unwrap();
                    }
                    is_over.set(true);
                    return TIMES;
                }
                let mut seen = 0;
                while !is_over.get() {
                    let file = client.open("f").await.unwrap();
                    for _ in 0..numbers.below(3) {
                        let found = read(&client, &file).await;
                        let number = u64::from(found[0]);
                        assert!(found == contents(number)[..found.len()], "{found:?}");
                        assert!(number == 0 || found.len() == contents(number).len());
                        assert!(number >= seen, "an older one was there again");
                        seen = number;
                        start.world.sleep(Duration::from_us(numbers.below(3_000))).await;
                    }
                    client.close(&file).await.unwrap();
                    client.look_at("f").await.unwrap();
                }
                seen
            }
        });
        assert!(seen[1..].iter().any(|seen| *seen > 0), "nobody has read a later one: {seen:?}");
    });
}

#[test]
fn replaced_file_keeps_its_data_while_it_is_open() {
    // Proves also: the replaced file can still be written and flushed; and nothing of it stays in
    // the caches after its last user has closed it or has gone.
    for_each_seed("replaced", "a_file_that_is_replaced_is_kept", 20, |seed| {
        let shape = Shape { clients: 3, cache_blocks: 100, ..some_shape(seed) };
        let cluster = Cluster::<Bytes>::new(shape);
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            for (name, number) in [("name", 1), ("new", 2)] {
                let length = contents(number).len() as u64;
                let file = client.create(name, length, start.shape.stripe()).await.unwrap();
                write(&client, &file, 0, &contents(number)).await;
                client.close(&file).await.unwrap();
            }
        });
        cluster.run(0..2, |start| async move {
            let client = start.connect().await.unwrap();
            let mut file = client.open("name").await.unwrap();
            if start.rank.0 == 1 {
                client.close(&file).await.unwrap();
                at(&start, 200).await;
                client.replace("new", "name").await.unwrap();
                let new = client.open("name").await.unwrap();
                assert_eq!(read(&client, &new).await, contents(2));
                return;
            }
            at(&start, 400).await;
            assert!(matches!(client.stat("new").await, Err(Fault::NoSuchFile { .. })));
            assert_eq!(read(&client, &file).await, contents(1));
            client.grow(&mut file, 400).await.unwrap();
            write(&client, &file, 390, &[9; 10]).await;
            client.flush(&file, true).await.unwrap();
            assert_eq!(read(&client, &file).await[390..], [9; 10]);
            if seed % 2 == 0 {
                client.close(&file).await.unwrap();
            }
        });
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            client.remove("name").await.unwrap();
        });
        let held = cluster.status(2).into_iter().map(|it| it.unwrap().cache_bytes);
        assert_eq!(held.sum::<u64>(), 0, "something is left of the file that was replaced");
    });
}

/// Opens a file, which client 0 creates, and uses it while client 0 removes it. Client 1 does not
/// close it if it will be killed.
async fn use_until_removed(start: support::Start, opened: Rc<Cell<u32>>, kills: bool) {
    let (rank, seed) = (u64::from(start.rank.0), start.shape.seed);
    let mut numbers = Numbers::new(seed * 3 + rank);
    let client = start.connect().await.unwrap();
    if rank == 0 {
        let file = client.create("f", 200, start.shape.stripe()).await.unwrap();
        write(&client, &file, 0, &contents(0)[..200]).await;
        client.close(&file).await.unwrap();
        opened.set(1);
    }
    while opened.get() == 0 {
        start.world.sleep(Duration::from_us(50)).await;
    }
    let mut file = client.open("f").await.unwrap();
    opened.set(opened.get() + 1);
    while opened.get() < 4 {
        start.world.sleep(Duration::from_us(50)).await;
    }
    if rank == 0 {
        client.remove("f").await.unwrap();
        assert!(matches!(client.open("f").await, Err(Fault::NoSuchFile { .. })));
        let new = client.create("f", 200, start.shape.stripe()).await.unwrap();
        write(&client, &new, 0, &contents(1)[..200]).await;
        client.close(&new).await.unwrap();
    }
    for round in 0..1 + numbers.below(8) {
        client.grow(&mut file, 400).await.unwrap();
        let own = 200 + 50 * rank;
        write(&client, &file, own, &[round as u8 + 1; 50]).await;
        let found = read(&client, &file).await;
        assert_eq!(found[..200], contents(0)[..200], "the old bytes are gone");
        let own = own as usize;
        assert_eq!(found[own..own + 50], [round as u8 + 1; 50]);
        client.flush(&file, numbers.below(2) == 0).await.unwrap();
        start.world.sleep(Duration::from_us(numbers.below(500))).await;
    }
    if !kills || rank != 1 {
        client.close(&file).await.unwrap();
    }
}

#[test]
fn a_removed_file_keeps_its_data_until_its_last_close() {
    // Proves: a file that loses its name behaves as after `unlink`. Every client that has it open
    // reads, writes and grows it, also while a new file has its name, and whoever of them closes
    // it or is killed first. After the last, its data is gone from all servers, and the catalogue
    // has forgotten it if none was killed.
    for_each_seed("replaced", "a_removed_file_keeps_its_data", 60, |seed| {
        let shape = Shape { clients: 4, cache_blocks: seed % 7, ..some_shape(seed) };
        let cluster = Cluster::<Bytes>::new(shape);
        let kills = seed % 3 == 0;
        let opened = Rc::new(Cell::new(0));
        let program = |start: support::Start| use_until_removed(start, Rc::clone(&opened), kills);
        cluster.run(0..3, program);
        if kills {
            cluster.machine.kill(cluster.shape.node_of(1));
        }
        cluster.run_alone(3, |start| async move {
            let client = start.connect().await.unwrap();
            let new = client.open("f").await.unwrap();
            assert_eq!(read(&client, &new).await, contents(1)[..200]);
            client.close(&new).await.unwrap();
            client.remove("f").await.unwrap();
            if kills {
                client.drop_nameless().await.unwrap();
            }
            for status in client.status().await {
                let status = status.unwrap();
                assert_eq!(status.cache_bytes, 0, "something is left in a cache");
                for (capacity, free) in status.disks {
                    assert_eq!(free, capacity, "something is left on a disk");
                }
            }
        });
    });
}

#[test]
fn a_file_whose_removal_is_cut_short_is_whole_or_gone() {
    // Proves: when a client, and perhaps all servers, end during a removal or replacement, the name
    // stands for one of the files with all its bytes, or for none. The remains of the other go on
    // request.
    for_each_seed("replaced", "a_file_whose_removal_is_cut_short", 100, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 3, ..some_shape(seed) });
        let replaces = seed % 3 == 0;
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let names: &[(&str, u64)] =
                if replaces { &[("f", 1), ("new", 2)] } else { &[("f", 1)] };
            for (name, number) in names {
                let length = contents(*number).len() as u64;
                let file = client.create(name, length, start.shape.stripe()).await.unwrap();
                write(&client, &file, 0, &contents(*number)).await;
                client.flush(&file, true).await.unwrap();
                client.close(&file).await.unwrap();
            }
        });
        let is_done = cluster.run_alone(1, |start| async move {
            let client = start.connect().await.unwrap();
            let removed = async {
                match replaces {
                    true => client.replace("new", "f").await.unwrap(),
                    false => client.remove("f").await.unwrap(),
                }
            };
            let limit = client.world().sleep(Duration::from_us(Numbers::new(seed).below(400)));
            matches!(select(pin!(removed), pin!(limit)).await, Either::Left(_))
        });
        cluster.machine.kill(cluster.shape.node_of(1));
        let _servers = if seed % 2 == 0 { restart(&cluster, None) } else { Vec::new() };
        cluster.run_alone(2, |start| async move {
            let client = start.connect().await.unwrap();
            let found = match client.open("f").await {
                Ok(file) => {
                    let found = read(&client, &file).await;
                    client.close(&file).await.unwrap();
                    Some(found)
                }
                Err(Fault::NoSuchFile { .. }) => None,
                Err(fault) => panic!("{fault}"),
            };
            let now = replaces.then(|| contents(2));
            assert!(found == now || !is_done && found == Some(contents(1)), "{found:?}");
            for name in ["f", "new"] {
                match client.remove(name).await {
                    Ok(()) | Err(Fault::NoSuchFile { .. }) => {}
                    Err(fault) => panic!("{fault}"),
                }
            }
            client.drop_nameless().await.unwrap();
            for status in client.status().await {
                for (capacity, free) in status.unwrap().disks {
                    assert_eq!(free, capacity, "something is left");
                }
            }
        });
    });
}
