//! Proves: a plan has each byte of each client once, in the order in which a transfer then reads
//! the disks, and moves nothing. A plan of many replies is whole, and one with a limit says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::Fault;
use filesystem::collective::Strategy;
use policy::{Access, Direction, DiskOrder, Pattern};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Cluster, Shape, create, read_back, transfer};
use units::{ByteRange, ClientId};
use world_simulated::{Engine, LayoutKind, Link, Mark, Recorder, Slice, What};

fn pattern(name: &str, clients: u32, record: u64, bytes: u64) -> Access {
    name.parse::<Pattern>().unwrap().access(clients, record, bytes).unwrap()
}

/// First sectors of the disk commands.
#[derive(Default)]
struct Commands(Vec<u64>);

impl Recorder for Commands {
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
        if let What::Command { sectors, .. } = &slice.what {
            self.0.push(sectors.start);
        }
        None
    }

    fn arrow(&mut self, _link: Link, _from: Mark, _to: Mark) {}
}

/// Positions of the values in the sorted list of all.
fn ranks(values: &[u64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    values.iter().map(|value| sorted.partition_point(|other| other < value)).collect()
}

#[test]
fn the_order_is_that_of_the_transfer() {
    const BYTES: u64 = 64 * 100;
    for order in [DiskOrder::Sorted, DiskOrder::AsAsked] {
        let shape = Shape {
            servers: 1,
            layout: LayoutKind::RANDOM_BLOCKS,
            cache_blocks: 0,
            ..Shape::default()
        };
        let commands = Rc::new(RefCell::new(Commands::default()));
        let engine = Engine::recorded(Rc::clone(&commands) as Rc<RefCell<dyn Recorder>>);
        let cluster: Cluster = Cluster::on(engine, shape);
        let access = pattern("rc", 4, 8, BYTES);
        let planned = cluster.run(0..4, |start| {
            let (access, commands) = (access.clone(), Rc::clone(&commands));
            async move {
                let group = start.join(0).await.unwrap();
                let file = create(&group, "f", BYTES, start.shape.stripe()).await.unwrap();
                let how = (Direction::Read, &access, order);
                let plan = group.client().plan(&file, how, u64::MAX).await.unwrap();
                assert!(plan.is_complete && commands.borrow().0.is_empty(), "nothing was moved");
                group.agree(Ok(())).await.unwrap();
                let mut transfer =
                    transfer(Direction::Read, &file, &access, Strategy::DiskDirected);
                transfer.order = order;
                read_back(&group, &transfer).await.unwrap();
                plan.transfers.iter().map(|it| it.block.address).collect::<Vec<_>>()
            }
        });
        assert_eq!(planned[0].len(), 100);
        assert_eq!(ranks(&planned[0]), ranks(&commands.borrow().0), "{order}");
        assert_eq!(planned[0].is_sorted(), order == DiskOrder::Sorted);
    }
}

#[test]
fn every_byte_of_every_client_is_planned_once() {
    // More blocks on each disk than one reply has.
    const BYTES: u64 = 64 * 5000 + 24;
    let shape = Shape { disks_per_server: 2, servers: 2, ..Shape::default() };
    for (name, record) in [("rb", 8), ("rc", 8), ("rcc", 4), ("rn", 8)] {
        let access = pattern(name, 4, record, BYTES);
        let cluster: Cluster = Cluster::new(shape.clone());
        let plan = cluster.run_alone(0, |start| {
            let access = access.clone();
            async move {
                let client = start.connect().await.unwrap();
                let file = client.create("f", BYTES, start.shape.stripe()).await.unwrap();
                let how = (Direction::Read, &access, DiskOrder::Sorted);
                let limited = client.plan(&file, how, 7).await.unwrap();
                assert!(!limited.is_complete && limited.transfers.len() == 4 * 7);
                let beyond = pattern("rb", 4, 8, BYTES * 2);
                let refused = client.plan(&file, (Direction::Read, &beyond, DiskOrder::Sorted), 7);
                assert!(matches!(refused.await, Err(Fault::PastEnd { .. })));
                client.plan(&file, how, u64::MAX).await.unwrap()
            }
        });
        assert!(plan.is_complete);
        let mut found = BTreeMap::new();
        for transfer in &plan.transfers {
            for (client, bytes) in &transfer.block.shares {
                assert!(found.insert((transfer.block.block, *client), *bytes).is_none(), "{name}");
            }
        }
        let mut expected = BTreeMap::new();
        for block in 0..BYTES.div_ceil(64) {
            let range = ByteRange { start: block * 64, end: (block * 64 + 64).min(BYTES) };
            for client in (0..4).map(ClientId) {
                let bytes: u64 = access.pieces(client, range).map(|piece| piece.bytes()).sum();
                if bytes > 0 {
                    expected.insert((block, client), bytes);
                }
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}
