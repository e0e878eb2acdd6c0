//! Proves: directories and files are created, removed and renamed as in a map of names, also by
//! many clients at once, and none is lost.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::{Client, Fault, NewFile};
use policy::{Buffering, Pool, Protection, Stripe};
use std::collections::BTreeMap;
use support::{Cluster, Numbers, Shape, for_each_seed, start_server};
use units::ServerId;
use wire::{EntryKind, Made};
use world::payload::Bytes;
use world_simulated::SimulatedWorld;

type TestClient = Client<SimulatedWorld<Bytes>>;

/// Names and, for files, sizes in bytes.
type Model = BTreeMap<String, Option<u64>>;

#[derive(Clone, Debug)]
enum Change {
    Create(String, u64),
    MakeDirectory(String),
    Rename(String, String),
    Replace(String, String),
    Remove(String),
}

/// A name of one to three parts out of a few.
fn some_name(numbers: &mut Numbers) -> String {
    let parts = 1 + numbers.below(3);
    let part = |numbers: &mut Numbers| ["a", "b", "ä b"][numbers.below(3) as usize];
    (0..parts).map(|_| part(numbers)).collect::<Vec<_>>().join("/")
}

fn some_change(numbers: &mut Numbers) -> Change {
    match numbers.below(6) {
        0 => Change::Create(some_name(numbers), numbers.below(1000)),
        1 | 2 => Change::MakeDirectory(some_name(numbers)),
        3 => Change::Rename(some_name(numbers), some_name(numbers)),
        4 => Change::Replace(some_name(numbers), some_name(numbers)),
        _ => Change::Remove(some_name(numbers)),
    }
}

fn directory_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn is_within(name: &str, directory: &str) -> bool {
    name == directory || name.starts_with(&format!("{directory}/"))
}

/// Tells if a new entry may have this name.
fn has_place(model: &Model, name: &str) -> bool {
    let directory = directory_of(name);
    let there = directory.is_empty() || model.get(directory) == Some(&None);
    there && !model.contains_key(name)
}

/// Applies a change to the names; false when it must be refused.
fn apply(model: &mut Model, change: &Change) -> bool {
    match change {
        Change::Create(name, bytes) if has_place(model, name) => {
            model.insert(name.clone(), Some(*bytes));
        }
        Change::MakeDirectory(name) if has_place(model, name) => {
            model.insert(name.clone(), None);
        }
        Change::Rename(from, to)
            if model.contains_key(from) && has_place(model, to) && !is_within(to, from) =>
        {
            let moved = |name: &String| is_within(name, from);
            let names: Vec<String> = model.keys().filter(|name| moved(name)).cloned().collect();
            for name in names {
                let kind = model.remove(&name).unwrap();
                model.insert(format!("{to}{}", &name[from.len()..]), kind);
            }
        }
        Change::Replace(from, to) if from == to && model.contains_key(from) => {}
        Change::Replace(from, to)
            if matches!((model.get(from), model.get(to)), (Some(Some(_)), Some(Some(_)))) =>
        {
            let moved = model.remove(from).unwrap();
            model.insert(to.clone(), moved);
        }
        Change::Replace(from, to) => {
            return apply(model, &Change::Rename(from.clone(), to.clone()));
        }
        Change::Remove(name)
            if model.keys().filter(|other| is_within(other, name)).count() == 1 =>
        {
            model.remove(name);
        }
        _ => return false,
    }
    true
}

async fn make(client: &TestClient, shape: &Shape, change: &Change) -> Result<(), Fault> {
    match change {
        Change::Create(name, bytes) => {
            let stripe = Stripe { servers: servers_of(*bytes), ..shape.stripe() };
            client.create(name, *bytes, stripe).await.map(|_| ())
        }
        Change::MakeDirectory(name) => client.make_directory(name, Made::default()).await,
        Change::Rename(from, to) => client.rename(from, to).await,
        Change::Replace(from, to) => client.replace(from, to).await,
        Change::Remove(name) => client.remove(name).await,
    }
}

/// Number of servers of a file of this size.
fn servers_of(bytes: u64) -> u32 {
    1 + (bytes % 2) as u32
}

/// Proves that server 0 counts the files of the model.
async fn expect_counts(client: &TestClient, model: &Model) {
    let files = model.values().flatten().copied();
    let mut expected = BTreeMap::new();
    for server in files.flat_map(|bytes| 0..servers_of(bytes)) {
        *expected.entry(ServerId(server)).or_default() += 1;
    }
    let status = client.status().await.remove(0).unwrap();
    assert_eq!(status.files, expected.into_iter().collect::<Vec<(ServerId, u64)>>());
}

/// Lists every name.
async fn walk(client: &TestClient) -> Model {
    let mut found = Model::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for entry in client.list(&directory).await.unwrap() {
            assert_eq!(client.stat(&entry.name).await.unwrap(), entry);
            match entry.kind {
                EntryKind::Directory(_) => {
                    directories.push(entry.name.clone());
                    found.insert(entry.name, None);
                }
                EntryKind::Special(special) => panic!("no test makes {special:?} by path"),
                EntryKind::File(record) => {
                    assert_eq!(record.name, entry.name);
                    found.insert(entry.name, Some(record.bytes));
                }
            }
        }
    }
    found
}

#[test]
fn names_are_as_a_map_of_them_says() {
    for_each_seed("catalogue", "names_are_as_a_map_of_them_says", 40, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 1, seed, ..Shape::default() });
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let (mut numbers, mut model) = (Numbers::new(seed), Model::new());
            for _ in 0..150 {
                let change = some_change(&mut numbers);
                let made = make(&client, &start.shape, &change).await;
                let expected = apply(&mut model, &change);
                assert_eq!(made.is_ok(), expected, "{change:?}: {made:?} in {model:?}");
            }
            assert_eq!(walk(&client).await, model);
            expect_counts(&client, &model).await;
        });
        // Again, after it has read its records.
        cluster.machine.kill(0);
        cluster.machine.restart(0);
        let _server = start_server(&cluster.machine, &cluster.shape, 0);
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let found = walk(&client).await;
            expect_counts(&client, &found).await;
        });
    });
}

#[test]
fn changes_of_many_clients_at_once_are_made_one_by_one() {
    for_each_seed("catalogue", "changes_of_many_clients_at_once", 40, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 4, seed, ..Shape::default() });
        let counts = cluster.run(0..4, |start| async move {
            let client = start.connect().await.unwrap();
            let mut numbers = Numbers::new(seed * 4 + u64::from(start.rank.0));
            let mut made = 0_i64;
            for _ in 0..100 {
                let changes = [(); 3].map(|()| match some_change(&mut numbers) {
                    // It may or may not take another's name.
                    Change::Replace(from, to) => Change::Rename(from, to),
                    other => other,
                });
                let under_way = changes.iter().map(|change| make(&client, &start.shape, change));
                let outcomes = futures_util::future::join_all(under_way).await;
                for (change, outcome) in changes.iter().zip(outcomes) {
                    made += match (change, outcome) {
                        (Change::Create(..) | Change::MakeDirectory(_), Ok(())) => 1,
                        (Change::Remove(_), Ok(())) => -1,
                        // It was made, and removed before it was open.
                        (Change::Create(..), Err(Fault::NoSuchFile { .. })) => 1,
                        _ => 0,
                    };
                }
            }
            made
        });
        // Everything that was made and not removed can be reached from the root: none lies in a
        // directory that went, nor in a circle.
        let found = cluster.run_alone(0, |start| async move {
            walk(&start.connect().await.unwrap()).await.len() as i64
        });
        assert_eq!(found, counts.into_iter().sum::<i64>());
    });
}

#[test]
fn a_directory_of_many_files_is_listed_whole() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        client.make_directory("d", Made::default()).await.unwrap();
        let names: Vec<String> = (0..2500).map(|i| format!("d/{i:04}")).collect();
        for name in &names {
            client.create(name, 1, start.shape.stripe()).await.unwrap();
        }
        let listed = client.list("d").await.unwrap();
        assert!(listed.into_iter().map(|entry| entry.name).eq(names));
    });
}

#[test]
fn a_pool_says_which_servers_hold_a_file() {
    let shape = Shape { servers: 3, clients: 1, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let stripe = policy::Stripe { servers: 2, ..start.shape.stripe() };
        let pool = Pool::Named(vec![ServerId(2), ServerId(0)]);
        let (name, made) = ("f".to_owned(), Made { owner: 7, at_s: 8 });
        let (bytes, buffering, protection) = (256, Buffering::default(), Protection::None);
        let new = NewFile { name, bytes, stripe, pool, buffering, protection, made };
        let file = client.create_as(new).await.unwrap();
        let servers: Vec<ServerId> = (0..4).map(|block| file.server_of(block)).collect();
        assert_eq!(servers, [2, 0, 2, 0].map(ServerId));
        assert_eq!(client.stat("f").await.unwrap().made, made);
    });
}

#[test]
fn no_name_becomes_too_long_by_a_rename() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let part = "d".repeat(250);
        let deep: Vec<String> =
            (1..=16).map(|depth| vec![part.as_str(); depth].join("/")).collect();
        for name in &deep {
            client.make_directory(name, Made::default()).await.unwrap();
        }
        let file = format!("{}/f", deep[15]);
        client.create(&file, 0, start.shape.stripe()).await.unwrap();
        client.make_directory("above", Made::default()).await.unwrap();
        client.make_directory(&"e".repeat(78), Made::default()).await.unwrap();
        client.make_directory(&"e".repeat(79), Made::default()).await.unwrap();
        // Of 4,096 bytes a name may be, of 4,097 not.
        let long = format!("{}/{part}", "e".repeat(79));
        let refused = client.rename(&part, &long).await.unwrap_err();
        assert!(matches!(&refused, Fault::BadName { cause, .. } if cause.contains("4096")));
        client.rename(&part, &format!("{}/{part}", "e".repeat(78))).await.unwrap();
        let longest = format!("{}/{file}", "e".repeat(78));
        assert_eq!(longest.len(), 4096);
        client.stat_file(&longest).await.unwrap();
    });
}
