//! Proves: a page has the content of its file, for any number of held pages. Buffers of a pool are
//! distinct, and data through them arrives in its place, at any offset and length. Not here: that
//! pages are seen in place, which needs real memory (world-real's tests of lending, and the
//! command's of its library).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::{BufferPool, Client};
use futures_util::future::try_join_all;
use policy::Direction;
use std::cell::Cell;
use std::rc::Rc;
use support::{Cluster, Numbers, Shape, image};
use units::Duration;
use wire::{Fault, FileRecord};
use world::payload::Bytes;
use world::{Clock, Payload};
use world_simulated::SimulatedWorld;

type TestClient = Client<SimulatedWorld<Bytes>>;

const BLOCK: u64 = 64;

async fn put(client: &TestClient, file: &FileRecord, offset: u64, bytes: Vec<u8>) {
    let pool = BufferPool::new(client, bytes.len() as u64).await.unwrap();
    let buffer = pool.take(bytes.len() as u64).unwrap();
    buffer.fill(&bytes.into());
    buffer.transfer(Direction::Write, file, offset).await.unwrap();
}

#[test]
fn a_page_is_what_the_file_holds() {
    let shape = Shape { servers: 3, clients: 1, cache_blocks: 4, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let bytes = 40 * BLOCK + 7;
        let file = client.create("f", bytes, start.shape.stripe()).await.unwrap();
        let written = image(1, bytes);
        put(&client, &file, 0, written.clone()).await;
        // Many more pages are held than the caches have room for.
        let pages = client.pages(&file, 0..41).await.unwrap();
        for (page, expected) in pages.iter().zip(written.chunks(BLOCK as usize)) {
            assert_eq!(page.payload()[..], *expected);
        }
        // A write of another client does not change a held page, and does not wait for its release.
        put(&client, &file, 0, image(2, bytes)).await;
        let again = client.page(&file, 5).await.unwrap();
        assert_eq!(pages[5].payload()[..], written[5 * BLOCK as usize..6 * BLOCK as usize]);
        assert_eq!(again.payload()[..], image(2, bytes)[5 * BLOCK as usize..6 * BLOCK as usize]);
        let refused = client.page(&file, 41).await.map(|page| page.payload().length());
        assert!(matches!(refused, Err(Fault::BadRequest { .. })), "{refused:?}");
        let refused = client.page(&file, u64::MAX).await.map(|page| page.payload().length());
        assert!(matches!(refused, Err(Fault::BadRequest { .. })), "{refused:?}");
    });
}

#[test]
fn reads_and_writes_of_any_bytes_land_in_their_places() {
    let shape = Shape { servers: 2, clients: 1, cache_blocks: 5, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let bytes = 30 * BLOCK + 11;
        let file = client.create("f", bytes, start.shape.stripe()).await.unwrap();
        let pool = BufferPool::new(&client, 64 * 1024).await.unwrap();
        let mut model = vec![0; bytes as usize];
        let mut numbers = Numbers::new(1);
        for round in 0..100 {
            let offset = numbers.below(bytes);
            let length = 1 + numbers.below((bytes - offset).min(5 * BLOCK));
            let place = offset as usize..(offset + length) as usize;
            let buffer = pool.take(length).unwrap();
            if numbers.below(2) == 0 {
                let some = image(round, length);
                buffer.fill(&some.clone().into());
                buffer.transfer(Direction::Write, &file, offset).await.unwrap();
                model[place].copy_from_slice(&some);
            } else {
                buffer.transfer(Direction::Read, &file, offset).await.unwrap();
                assert_eq!(buffer.payload()[..], model[place]);
            }
        }
        let buffer = pool.take(20).unwrap();
        for (offset, direction) in [
            (bytes - 19, Direction::Read),
            (bytes, Direction::Write),
            (u64::MAX - 5, Direction::Read),
        ] {
            let refused = buffer.transfer(direction, &file, offset).await;
            assert!(matches!(refused, Err(Fault::BadAccess { .. })), "{refused:?}");
        }
        let nothing = pool.take(0).unwrap();
        nothing.transfer(Direction::Read, &file, bytes).await.unwrap();
    });
}

#[test]
fn buffers_do_not_share_bytes_and_come_back() {
    let cluster = Cluster::<Bytes>::new(Shape { servers: 1, clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let pool = BufferPool::new(&client, 10_000).await.unwrap();
        assert_eq!(pool.bytes(), 12_288, "three units of 4 KiB");
        let all: Vec<_> = (0..3).map(|_| pool.take(4096).unwrap()).collect();
        assert!(pool.take(1).is_none());
        for (number, buffer) in all.iter().enumerate() {
            buffer.fill(&vec![number as u8; 4096].into());
        }
        for (number, buffer) in all.iter().enumerate() {
            assert_eq!(buffer.payload()[..], [number as u8; 4096]);
        }
        // A waiting task gets a buffer when one is returned.
        let got = Rc::new(Cell::new(false));
        let waiting = async {
            let buffer = pool.wait_for(5000).await;
            got.set(true);
            buffer.length()
        };
        let giving = async {
            for buffer in all {
                assert!(!got.get(), "there was no room yet");
                drop(buffer);
                start.world.sleep(Duration::from_us(10)).await;
                if pool.take(5000).is_some() || got.get() {
                    break;
                }
            }
        };
        let (length, ()) = futures_util::future::join(waiting, giving).await;
        assert_eq!(length, 5000);
        assert_eq!(pool.take(12_288).unwrap().length(), 12_288);
    });
}

#[test]
fn a_transfer_that_is_given_up_keeps_its_bytes_from_others() {
    let cluster = Cluster::<Bytes>::new(Shape { servers: 1, clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = client.create("f", 4096, start.shape.stripe()).await.unwrap();
        put(&client, &file, 0, image(1, 4096)).await;
        let pool = BufferPool::new(&client, 8192).await.unwrap();
        let (first, second) = (pool.take(4096).unwrap(), pool.take(4096).unwrap());
        {
            let reading = std::pin::pin!(first.transfer(Direction::Read, &file, 0));
            let pause = std::pin::pin!(start.world.sleep(Duration::from_us(1)));
            futures_util::future::select(reading, pause).await;
        }
        drop((first, second));
        assert!(pool.take(4096).is_some() && pool.take(8192).is_none());
        // Several at once on one buffer are each waited for.
        let buffer = pool.take(4096).unwrap();
        let both = (0..2).map(|_| buffer.transfer(Direction::Read, &file, 0));
        try_join_all(both).await.unwrap();
        assert_eq!(buffer.payload()[..], image(1, 4096));
    });
}
