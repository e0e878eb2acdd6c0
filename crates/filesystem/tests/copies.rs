//! Proves: whatever servers with copies of the catalogue crash and come back, in the end every copy
//! has what the catalogue has; and a change that was answered is in the copy of the first of them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::{COPY_POSITION_KEY, Client, Fault, copy_position};
use futures_util::future::{Either, join, join_all, select};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;
use support::{Cluster, Numbers, Shape, Start, cluster_with_faults, for_each_seed, start_server};
use units::{Duration, FileId, ServerId};
use wire::Made;
use world::payload::Bytes;
use world::{Clock, RecordTable, Records};
use world_simulated::SimulatedWorld;

type TestClient = Client<SimulatedWorld<Bytes>>;
type AllRecords = BTreeMap<u64, Vec<u8>>;

fn shape(seed: u64) -> Shape {
    let servers = 2 + (seed % 3) as u32;
    Shape { servers, clients: 2, copies: true, seed, ..Shape::default() }
}

/// A cluster whose records take a time to change.
fn cluster(seed: u64) -> Rc<Cluster> {
    let record_change = Duration::from_us([0, 100, 1_000][(seed / 3 % 3) as usize]);
    cluster_with_faults(shape(seed), record_change)
}

/// Runs a program, which returns what it counted, with a cluster of each seed. Returns the sum;
/// `None` if a single seed is repeated.
fn count_with_clusters<F: Future<Output = usize> + 'static>(
    (test, seeds): (&str, u64),
    program: impl Fn(Rc<Cluster>, u64) -> F,
) -> Option<usize> {
    let all = Cell::new(0);
    for_each_seed("copies", test, seeds, |seed| {
        let cluster = cluster(seed);
        let count = cluster.engine.run(program(Rc::clone(&cluster), seed)).unwrap();
        all.update(|all| all + count);
    });
    support::only_seed().is_none().then(|| all.get())
}

async fn records(cluster: &Cluster, server: u32, table: RecordTable) -> AllRecords {
    let records = cluster.machine.world(server).records(table).await.unwrap();
    records.into_iter().collect()
}

/// Changes names at random. Adds the numbers of files that were created, and takes out those that
/// may be removed. Returns the number of changes that were made.
async fn change_names(
    start: Start,
    seed: u64,
    (rounds, pause_us): (u64, u64),
    created: Rc<RefCell<BTreeSet<FileId>>>,
) -> usize {
    let mut made = 0;
    let mut numbers = Numbers::new(seed);
    let mut client: Option<TestClient> = None;
    for _ in 0..rounds {
        let Some(connected) = client.clone() else {
            start.world.sleep(Duration::from_ms(3)).await;
            client = start.connect().await.ok();
            continue;
        };
        let name = format!("{}-{}", seed, numbers.below(12));
        let changed: Result<(), Fault> = match numbers.below(5) {
            0 => match connected.open(&name).await {
                Ok(record) => {
                    created.borrow_mut().remove(&record.file);
                    connected.remove(&name).await
                }
                Err(_) => connected.remove(&name).await,
            },
            1 => connected.rename(&name, &format!("{seed}-{}", numbers.below(12))).await,
            2 => connected.make_directory(&name, Made::default()).await.map(|_| ()),
            _ => {
                connected.create(&name, numbers.below(500), start.shape.stripe()).await.map(|it| {
                    created.borrow_mut().insert(it.file);
                })
            }
        };
        made += usize::from(changed.is_ok());
        if let Err(Fault::ServerLeft { .. }) = changed {
            client = None;
        }
        start.world.sleep(Duration::from_us(numbers.below(pause_us))).await;
    }
    made
}

fn assert_copied(catalogue: &AllRecords, copy: &AllRecords, server: u32) {
    let keys = |records: &AllRecords| records.keys().copied().collect::<Vec<_>>();
    assert_eq!(keys(catalogue), keys(copy), "server {server}");
    assert!(catalogue == copy, "the copy at server {server} has other records");
}

#[test]
fn copies_have_what_the_catalogue_has() {
    let test = ("copies_have_what_the_catalogue_has", 60);
    let all = count_with_clusters(test, |own, seed| async move {
        let mut numbers = Numbers::new(seed + 1_000_000);
        let created = Rc::<RefCell<_>>::default();
        let workers = (0..2).map(|client| {
            let seed = seed * 2 + u64::from(client);
            change_names(own.start(client), seed, (1_500, 2_000), Rc::clone(&created))
        });
        let servers = RefCell::new(Vec::new());
        let crashes = async {
            for _ in 0..numbers.below(4) {
                own.engine.sleep(Duration::from_us(numbers.below(40_000))).await;
                let node = numbers.below(u64::from(own.shape.servers)) as u32;
                own.machine.kill(node);
                own.engine.sleep(Duration::from_us(numbers.below(9_000))).await;
                own.machine.restart(node);
                servers.borrow_mut().push(start_server(&own.machine, &own.shape, node));
            }
        };
        let (made, ()) = join(join_all(workers), crashes).await;
        own.engine.sleep(Duration::from_ms(10_000)).await;
        let catalogue = records(&own, 0, RecordTable::Catalogue).await;
        let position = catalogue.get(&COPY_POSITION_KEY).cloned();
        let client = own.start(0).connect().await.unwrap();
        for server in 1..own.shape.servers {
            let mut copy = records(&own, server, RecordTable::CatalogueCopy).await;
            let all: Vec<_> = copy.clone().into_iter().collect();
            assert!(copy_position(&all) > 0, "the copy at server {server} is whole");
            let asked = client.catalogue_copy(ServerId(server)).await.unwrap();
            let is_same = asked.records == all && asked.position == copy_position(&all);
            assert!(is_same, "server {server} tells its copy");
            if position.is_none() {
                // Nothing was changed since the copy was made.
                copy.remove(&COPY_POSITION_KEY);
            }
            assert_copied(&catalogue, &copy, server);
        }
        made.into_iter().sum()
    });
    assert!(all.is_none_or(|all| all > 40_000), "{all:?} changes prove little");
}

#[test]
fn an_answered_change_is_in_the_first_copy() {
    let test = ("an_answered_change_is_in_the_first_copy", 150);
    let all = count_with_clusters(test, |own, seed| async move {
        let mut numbers = Numbers::new(seed + 2_000_000);
        let created = Rc::<RefCell<BTreeSet<FileId>>>::default();
        // Until the copies are there.
        own.engine.sleep(Duration::from_ms(100)).await;
        let workers = join_all((0..2).map(|client| {
            let seed = seed * 2 + u64::from(client);
            change_names(own.start(client), seed, (1_000, 10), Rc::clone(&created))
        }));
        let crash = async {
            own.engine.sleep(Duration::from_us(4_000 + numbers.below(3_000))).await;
            own.machine.kill(0);
            let created = created.borrow().clone();
            let count = created.len();
            let copy = records(&own, 1, RecordTable::CatalogueCopy).await;
            for file in created {
                assert!(copy.contains_key(&file.0), "{file} was answered");
            }
            count
        };
        match select(pin!(workers), pin!(crash)).await {
            Either::Left(_) => panic!("the clients ended before the crash"),
            Either::Right((count, _)) => count,
        }
    });
    assert!(all.is_none_or(|all| all > 500), "{all:?} files prove little");
}

#[test]
fn a_silent_copy_delays_changes_once() {
    let cluster = cluster(1);
    let own = Rc::clone(&cluster);
    let took = cluster.engine.run(async move {
        let start = own.start(0);
        own.engine.sleep(Duration::from_ms(100)).await;
        let client: TestClient = start.connect().await.unwrap();
        let mut took = Vec::new();
        for number in 0..4 {
            if number == 1 {
                own.machine.stop(1);
            }
            let begun = start.now();
            let name = number.to_string();
            // A file would be opened at the server that is stopped.
            let made = pin!(client.make_directory(&name, Made::default()));
            match select(made, pin!(own.engine.sleep(Duration::from_ms(20_000)))).await {
                Either::Left((made, _)) => made.unwrap(),
                Either::Right(_) => panic!("change {number} hangs after {took:?}"),
            }
            took.push(start.now().since(begun).as_ms());
        }
        took
    });
    let took = took.unwrap();
    assert!(took[0] < 10 && took[2] < 10 && took[3] < 10, "{took:?}");
    assert!((1_900..3_000).contains(&took[1]), "it waits for the copy: {took:?}");
}
