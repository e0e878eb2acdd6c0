//! Proves: clients that connect on demand are connected exactly to the servers with data for them,
//! for every operation and order of use. A memory that was shared before is reachable for servers
//! that are connected later. A dropped call leaves a usable connection. A client that needs a
//! departed server gets a fault that names it.

use crate::support::{
    Cluster, JOIN_TIMEOUT, Shape, Start, expect_equal, for_each_seed, image, memory_of, overlay,
    read_back, share, transfer, write_image,
};
use filesystem::collective::Strategy;
use filesystem::{Client, Fault, PeerMesh};
use futures_util::future::{Either, select};
use policy::{Access, Direction, Pattern};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, ServerId};
use wire::FileRecord;
use world::{Clock, Payloads};
use world_simulated::SimulatedWorld;

type Bytes = world::payload::Bytes;
type Member = PeerMesh<SimulatedWorld<Bytes>>;

const CLIENTS: u32 = 8;
const SERVERS: u32 = 8;
const FILE_BYTES: u64 = 64 * 64;

fn shape(seed: u64) -> Shape {
    Shape { servers: SERVERS, clients: CLIENTS, seed, ..Shape::default() }
}

fn pattern(name: &str, record: u64) -> Access {
    let pattern: Pattern = name.parse().unwrap();
    pattern.access(CLIENTS, record, FILE_BYTES).unwrap()
}

async fn join(start: &Start) -> Member {
    let client = start.connecting_when_needed();
    let members = Rc::clone(&start.members);
    PeerMesh::join(client, 0, start.rank, members, JOIN_TIMEOUT).await.unwrap()
}

/// Opens a file at member 0, and beside it at the others.
async fn open(group: &Member, start: &Start) -> FileRecord {
    let client = group.client();
    let made = match group.rank() {
        ClientId(0) => Some(client.create("f", FILE_BYTES, start.shape.stripe()).await.unwrap()),
        _ => None,
    };
    group.barrier().await.unwrap();
    match made {
        Some(file) => file,
        None => client.open_beside(client.stat_file("f").await.unwrap()),
    }
}

/// Closes a file. Member 0, which has it open for the others, comes last.
async fn close(group: &Member, file: &FileRecord) {
    if group.rank() != ClientId(0) {
        group.client().close(file).await.unwrap();
    }
    group.barrier().await.unwrap();
    if group.rank() == ClientId(0) {
        group.client().close(file).await.unwrap();
    }
}

#[test]
fn clients_connect_only_to_servers_that_have_their_bytes() {
    for_each_seed(
        "as_needed",
        "clients_connect_only_to_servers_that_have_their_bytes",
        12,
        |seed| {
            let cluster = Cluster::new(shape(seed));
            let strategy = Strategy::NAMED[(seed % 6) as usize];
            // Eight blocks for each client: one after another, or all on one server.
            let spread = seed % 12 < 6;
            let suffix = if spread { "b" } else { "c" };
            let (write, read) = (format!("w{suffix}"), format!("r{suffix}"));
            let (writes, reads) = (pattern(&write, 64), pattern(&read, 64));
            let (old, new) = (image(seed, FILE_BYTES), image(seed + 1000, FILE_BYTES));
            let expected = overlay(&writes, &old, &new);
            let clients_at = cluster.run(0..CLIENTS, |start| {
                let (writes, reads, new) = (writes.clone(), reads.clone(), new.clone());
                let expected = expected.clone();
                async move {
                    let group = join(&start).await;
                    let file = open(&group, &start).await;
                    let write = transfer(Direction::Write, &file, &writes, strategy);
                    write_image(&group, &write, &new).await.unwrap();
                    let read = transfer(Direction::Read, &file, &reads, strategy);
                    let got = read_back(&group, &read).await.unwrap();
                    expect_equal(
                        &got,
                        &memory_of(&reads, group.rank(), &expected),
                        "what it reads",
                    );
                    group.barrier().await.unwrap();
                    let mut clients_at = Vec::new();
                    if group.rank() == ClientId(0) {
                        for status in group.client().status().await {
                            clients_at.push(status.unwrap().clients);
                        }
                    }
                    group.barrier().await.unwrap();
                    close(&group, &file).await;
                    clients_at
                }
            });
            // All members ask the catalogue, and member 0 has the file open everywhere. Each counts
            // once, in spite of two transfers.
            let few: Vec<u32> =
                (0..SERVERS).map(|server| if server == 0 { CLIENTS } else { 2 }).collect();
            let all = vec![CLIENTS; SERVERS as usize];
            match (spread, strategy) {
                // Each conforming part has some blocks of all servers.
                (true, _) | (false, Strategy::TwoPhase) => assert_eq!(clients_at[0], all),
                (false, _) => assert_eq!(clients_at[0], few),
            }
        },
    );
}

#[test]
fn a_memory_shared_before_is_reached_by_servers_that_come_later() {
    for strategy in Strategy::NAMED {
        let cluster = Cluster::new(shape(1));
        let (writes, reads) = (pattern("wb", 64), pattern("rc", 8));
        let data = image(7, FILE_BYTES);
        cluster.run(0..CLIENTS, |start| {
            let (writes, reads, data) = (writes.clone(), reads.clone(), data.clone());
            async move {
                let group = join(&start).await;
                let own = memory_of(&writes, group.rank(), &data);
                let (given, into) = (own, vec![0xee; reads.memory_bytes(group.rank()) as usize]);
                // Before any server is connected.
                let given = share(&group, given).await.unwrap();
                let into = share(&group, into).await.unwrap();
                let file = open(&group, &start).await;
                let write = transfer(Direction::Write, &file, &writes, strategy);
                group.transfer(&write, &given).await.unwrap();
                let read = transfer(Direction::Read, &file, &reads, strategy);
                group.transfer(&read, &into).await.unwrap();
                let got = group.unshare(into).await;
                let got = world::Memory::freeze(got).to_vec();
                expect_equal(&got, &memory_of(&reads, group.rank(), &data), "what it reads");
                group.unshare(given).await;
                close(&group, &file).await;
            }
        });
    }
}

#[test]
fn a_call_that_is_given_up_leaves_a_connection() {
    for_each_seed("as_needed", "a_call_that_is_given_up_leaves_a_connection", 100, |seed| {
        let cluster = Cluster::<Bytes>::new(shape(seed));
        cluster.run_alone(0, |start| async move {
            let client = start.connecting_when_needed();
            // At once, or some time while the client connects, greets, or waits for the answer.
            let soon = start.world.sleep(Duration::from_ns(seed * 500));
            let stat = client.stat("f");
            if let Either::Left((answered, _)) = select(pin!(stat), pin!(soon)).await {
                assert!(matches!(answered, Err(Fault::NoSuchFile { .. })));
            }
            let again = client.stat("f").await;
            assert!(matches!(again, Err(Fault::NoSuchFile { .. })), "{again:?}");
            let clients = client.status().await.remove(0).unwrap().clients;
            assert_eq!(clients, 1);
        });
    });
}

#[test]
fn many_calls_at_once_connect_once() {
    let cluster = Cluster::<Bytes>::new(shape(1));
    cluster.run_alone(0, |start| async move {
        let client = start.connecting_when_needed();
        let calls = (0..20).map(|_| client.list(""));
        for listed in futures_util::future::join_all(calls).await {
            assert_eq!(listed.unwrap(), []);
        }
        assert_eq!(client.status().await.remove(0).unwrap().clients, 1);
    });
}

#[test]
fn departed_server_is_named_by_clients_that_need_it() {
    let cluster = Cluster::<Bytes>::new(shape(1));
    let gone = SERVERS - 1;
    let told: Rc<RefCell<Vec<Option<Fault>>>> = Rc::default();
    let machine = Rc::clone(&cluster.machine);
    let outcomes = cluster.run(0..CLIENTS, |start| {
        let (machine, told) = (Rc::clone(&machine), Rc::clone(&told));
        async move {
            let group = join(&start).await;
            let file = open(&group, &start).await;
            if group.rank() == ClientId(0) {
                machine.kill(gone);
            }
            start.world.sleep(Duration::from_ms(1)).await;
            // Member 7 alone has bytes there; member 0 joins for it.
            let bytes = start.world.memory(pattern("wc", 64).memory_bytes(group.rank()));
            let written = match group.share(bytes).await {
                Ok(shared) => {
                    let access = pattern("wc", 64);
                    let write = transfer(Direction::Write, &file, &access, Strategy::DiskDirected);
                    group.transfer(&write, &shared).await
                }
                Err(fault) => Err(fault),
            };
            let others = group.client().stat_file("f").await.err();
            told.borrow_mut().push(others);
            written
        }
    });
    for outcome in outcomes {
        let named =
            matches!(outcome, Err(Fault::ServerLeft { server, .. }) if server == ServerId(gone));
        assert!(named, "{outcome:?}");
    }
    assert_eq!(*told.borrow(), vec![None; CLIENTS as usize], "the others are there");
}

#[test]
fn client_without_requests_has_no_connections() {
    let cluster = Cluster::<Bytes>::new(shape(1));
    cluster.run_alone(0, |start| async move {
        let idle: Vec<Client<_>> = (0..5).map(|_| start.connecting_when_needed()).collect();
        let looks = start.connecting_when_needed();
        let clients: Vec<u32> =
            looks.status().await.into_iter().map(|status| status.unwrap().clients).collect();
        assert_eq!(clients, [1; SERVERS as usize]);
        drop(idle);
    });
}
