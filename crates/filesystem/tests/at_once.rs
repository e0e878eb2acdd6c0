//! Proves: requests that a server answers at once from its cache cost the same processor time as
//! others, and are counted. The disk work that they cause happens too.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::{BufferPool, Client, Costs, NewFile};
use policy::{Buffering, Direction, Pool, Prefetch, Protection};
use std::rc::Rc;
use support::{Cluster, Shape};
use units::Duration;
use wire::{FileRecord, Made};
use world::Clock;
use world::payload::Bytes;
use world_simulated::SimulatedWorld;

type TestClient = Client<SimulatedWorld<Bytes>>;

const BLOCK: u64 = 64;

fn shape() -> Shape {
    Shape { servers: 1, clients: 1, ..Shape::default() }
}

/// Moves `length` bytes from `offset` on between a file and a memory, and waits until all work that
/// follows has ended.
async fn move_bytes(
    client: &TestClient,
    file: &FileRecord,
    direction: Direction,
    (offset, length): (u64, u64),
) {
    let pool = BufferPool::new(client, BLOCK).await.unwrap();
    let buffer = pool.take(length).unwrap();
    buffer.transfer(direction, file, offset).await.unwrap();
    client.world().sleep(Duration::from_ms(100)).await;
}

async fn dirty_bytes(client: &TestClient) -> u64 {
    client.status().await.remove(0).unwrap().dirty_bytes
}

#[test]
fn a_block_that_is_written_full_in_parts_is_written_behind() {
    let cluster = Cluster::<Bytes>::new(shape());
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.create("f", 4 * BLOCK, start.shape.stripe()).await.unwrap();
        for (offset, length, dirty) in [(0, 16, BLOCK), (32, 32, BLOCK), (16, 16, 0)] {
            move_bytes(&client, &file, Direction::Write, (offset, length)).await;
            assert_eq!(dirty_bytes(&client).await, dirty, "after {length} bytes at {offset}");
        }
    });
}

#[test]
fn processors_are_occupied_and_bytes_counted() {
    let us = Duration::from_us;
    let (client_read, client_write, cache_read, cache_write) = (us(20), us(30), us(7), us(12));
    let copy_ps_per_byte = 1_000_000;
    let costs = Costs {
        client_read,
        client_write,
        cache_read,
        cache_write,
        copy_ps_per_byte,
        ..Costs::FREE
    };
    let cluster = Cluster::<Bytes>::new(Shape { costs, ..shape() });
    let machine = Rc::clone(&cluster.machine);
    cluster.run_alone(0, |start| {
        let machine = Rc::clone(&machine);
        async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 4 * BLOCK, start.shape.stripe()).await.unwrap();
            let moved = async || client.status().await.remove(0).unwrap().bytes_moved;
            // Both sides send and accept a message for 5 us each. The first request of each kind
            // asks the disk, the others only the cache, except the last one, which causes a
            // write-back.
            let messages = us(10);
            let wrote = |bytes: u64| us(30) + messages + us(12 + bytes) + messages;
            let read = us(20) + messages + us(7) + messages;
            let steps = [
                (Direction::Read, (0, 8), read),
                (Direction::Read, (8, 8), read),
                (Direction::Read, (48, 16), read),
                (Direction::Write, (0, 8), wrote(8)),
                (Direction::Write, (8, 40), wrote(40)),
                (Direction::Write, (48, 16), wrote(16)),
            ];
            for (direction, range, expected) in steps {
                let busy = || machine.processor_busy(0) + machine.processor_busy(1);
                let before = (moved().await, busy());
                move_bytes(&client, &file, direction, range).await;
                let took = busy() - before.1;
                assert_eq!(took, expected, "{direction:?} {range:?}");
                assert_eq!(moved().await - before.0, range.1, "{direction:?} {range:?}");
            }
        }
    });
}

#[test]
fn a_window_slides_over_what_was_written() {
    let cluster = Cluster::<Bytes>::new(shape());
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let buffering = Buffering { prefetch: Some(Prefetch::Window(1)), ..Buffering::default() };
        let (name, bytes, stripe) = ("f".to_owned(), 8 * BLOCK, start.shape.stripe());
        let (pool, made) = (Pool::all(1), Made::default());
        let protection = Protection::None;
        let new = NewFile { name, bytes, stripe, pool, buffering, protection, made };
        let file = client.create_as(new).await.unwrap();
        for direction in [Direction::Write, Direction::Read] {
            move_bytes(&client, &file, direction, (3 * BLOCK, BLOCK)).await;
        }
        let statistics = client.buffers(&file).await.unwrap().remove(0);
        // Blocks 0, 1 and 2 before it, and 4 behind it.
        assert_eq!((statistics.hits, statistics.prefetched), (1, 4));
    });
}
