//! Measures the communication of two processes on one machine: `cargo run --release -p world-real
//! --example two_processes`.
//!
//! Starts itself a second time as the peer. Measures round trips of small messages, alone and many
//! at a time, and one-sided copies.

use std::time::Instant;
use units::{PeerId, PieceRun, RegionId};
use world::{Address, Header, Incoming, Message, Network, OneSided, Payloads};
use world_real::{NodeConfig, RealPayload, RealWorld, run};

const REGION_BYTES: u64 = 64 << 20;

fn main() {
    if let Some(address) = std::env::args().nth(1) {
        return run(peer(Address(address)));
    }
    let path = std::env::temp_dir().join(format!("unisono-talk-{}", std::process::id()));
    let address = Address(format!("unix:{}", path.display()));
    run(async {
        let config = NodeConfig { listen: Some(address.clone()), ..NodeConfig::default() };
        let world = RealWorld::open(config).expect("a node must open");
        let me = std::env::current_exe().expect("a program must know its file");
        let mut child = std::process::Command::new(me).arg(&address.0).spawn().expect("a child");
        let (peer, region) = hello(&world).await;
        for at_a_time in [1, 8, 64] {
            round_trips(&world, peer, at_a_time).await;
        }
        for bytes in [64 << 10, 1 << 20] {
            copies(&world, peer, region, bytes, 1).await;
        }
        copies(&world, peer, region, 1 << 20, 8).await;
        for piece in [128, 256, 512, 1024, 4096] {
            far_pieces(&world, peer, region, piece).await;
        }
        world.disconnect(peer);
        child.wait().expect("the child must end");
    });
}

/// Exposes a memory and echoes every message.
async fn peer(to: Address) {
    let world = RealWorld::open(NodeConfig::default()).expect("a node must open");
    let server = world.connect(&to).await.expect("the parent listens");
    let memory = world.memory(REGION_BYTES);
    memory.with_bytes_mut(|bytes| bytes.fill(1));
    let region = world.expose(&memory, &[server]).await.expect("an exposure");
    let hello = Message::new(Header::from_slice(&region.0.to_le_bytes()));
    world.send(server, hello).await.expect("the parent receives");
    while let Incoming::Message { header, .. } = world.receive().await {
        if world.send(server, Message::new(header)).await.is_err() {
            return;
        }
    }
}

async fn hello(world: &RealWorld) -> (PeerId, RegionId) {
    match world.receive().await {
        Incoming::Message { from, header, .. } => {
            let bytes = header[..].try_into().expect("a region");
            (from, RegionId(u64::from_le_bytes(bytes)))
        }
        Incoming::Departed { cause, .. } => panic!("the child left: {cause}"),
    }
}

async fn round_trips(world: &RealWorld, peer: PeerId, at_a_time: usize) {
    const TRIPS: usize = 200_000;
    let message = || Message::new(Header::from_elem(1, 40));
    let began = Instant::now();
    for _ in 0..TRIPS / at_a_time {
        let sends = (0..at_a_time).map(|_| world.send(peer, message()));
        futures_util::future::join_all(sends).await;
        for _ in 0..at_a_time {
            world.receive().await;
        }
    }
    let rate = TRIPS as f64 / began.elapsed().as_secs_f64();
    println!("{at_a_time:>3} messages at a time: {rate:>9.0} round trips/s");
}

/// Copies `bytes` at a time; near pieces have 8 bytes and a stride of `spread` times their length.
async fn copies(world: &RealWorld, peer: PeerId, region: RegionId, bytes: u64, spread: u64) {
    let source: RealPayload = vec![2; (bytes * spread) as usize].into();
    let piece = PieceRun {
        offset: 0,
        stride: 8 * spread,
        memory_offset: 0,
        memory_stride: 8,
        length: 8,
        count: bytes / 8,
    };
    let rounds = (4_u64 << 30) / bytes / spread;
    let slots = REGION_BYTES / bytes;
    let put = Instant::now();
    for round in 0..rounds {
        let piece = PieceRun { memory_offset: round % slots * bytes, ..piece };
        world.put(peer, region, &[piece], &source).await.expect("a put");
    }
    let put = put.elapsed();
    let target = world.memory(bytes * spread);
    target.with_bytes_mut(|bytes| bytes.fill(0));
    let get = Instant::now();
    for round in 0..rounds {
        let piece = PieceRun { memory_offset: round % slots * bytes, ..piece };
        world.get(peer, region, &[piece], &target).await.expect("a get");
    }
    let get = get.elapsed();
    let rate = |time: std::time::Duration| (rounds * bytes) as f64 / time.as_secs_f64() / 1e9;
    let (put, get) = (rate(put), rate(get));
    println!("{bytes} bytes, near stride {}: put {put:.2} GB/s, get {get:.2} GB/s", 8 * spread);
}

/// Copies pieces of `length` bytes that are not adjacent in the peer's memory.
async fn far_pieces(world: &RealWorld, peer: PeerId, region: RegionId, length: u64) {
    let bytes: u64 = 1 << 20;
    let source: RealPayload = vec![2; bytes as usize].into();
    let piece = PieceRun {
        offset: 0,
        stride: length,
        memory_offset: 0,
        memory_stride: 4 * length,
        length,
        count: bytes / length,
    };
    let rounds = 500;
    let put = Instant::now();
    for _ in 0..rounds {
        world.put(peer, region, &[piece], &source).await.expect("a put");
    }
    let put = (rounds * bytes) as f64 / put.elapsed().as_secs_f64() / 1e9;
    println!("far pieces of {length} bytes at 4 times their length: put {put:.2} GB/s");
}
