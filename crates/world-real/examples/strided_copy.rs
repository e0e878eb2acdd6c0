//! Measures strided copies: `cargo run --release -p world-real --example strided_copy`.
//!
//! Gathers and scatters a block in cache, the inner loop of every transfer, for several lengths of
//! pieces and strides.

use std::time::Instant;
use units::Run;
use world::{Memory, Payloads};
use world_real::{NodeConfig, RealWorld, run};

/// Bytes that each measurement moves.
const MOVED_BYTES: u64 = 4 << 30;

fn main() {
    run(async {
        let world = RealWorld::open(NodeConfig::default()).expect("a node must open");
        println!(
            "{:>10} {:>7} {:>7} {:>12} {:>12}",
            "block", "piece", "stride", "gather", "scatter"
        );
        let cases = [
            (512 << 10, 8, 64),
            (1 << 20, 8, 64),
            (1 << 20, 8, 16),
            (1 << 20, 8, 128),
            (1 << 20, 1, 4),
            (1 << 20, 4, 16),
            (1 << 20, 16, 64),
            (1 << 20, 20, 64),
            (1 << 20, 64, 256),
            (1 << 20, 1024, 4096),
            (1 << 20, 1 << 20, 1 << 20),
        ];
        for (block, length, stride) in cases {
            measure(&world, block, length, stride);
        }
        fresh_memory(&world);
    });
}

fn measure(world: &RealWorld, block: u64, length: u64, stride: u64) {
    let memory = world.memory(block);
    memory.with_bytes_mut(|bytes| bytes.fill(1));
    let runs = [Run { offset: 0, length, stride, count: block / stride }];
    let rounds = MOVED_BYTES / 8 / runs[0].bytes();
    let began = Instant::now();
    for _ in 0..rounds {
        std::hint::black_box(memory.gather(&runs));
    }
    let gather = began.elapsed();
    let packed = memory.gather(&runs);
    let began = Instant::now();
    for _ in 0..rounds {
        std::hint::black_box(&memory).scatter(&runs, &packed);
    }
    let scatter = began.elapsed();
    let rate =
        |time: std::time::Duration| (rounds * runs[0].bytes()) as f64 / time.as_secs_f64() / 1e9;
    let (gather, scatter) = (rate(gather), rate(scatter));
    println!("{block:>10} {length:>7} {stride:>7} {gather:>7.2} GB/s {scatter:>7.2} GB/s");
}

/// Measures the benefit of the buffer pool: memory over 64 MiB is not pooled, so its first fill
/// faults.
fn fresh_memory(world: &RealWorld) {
    const MIB: u64 = 128;
    for _ in 0..3 {
        let memory = world.memory(MIB << 20);
        let fill = || {
            let began = Instant::now();
            memory.with_bytes_mut(|bytes| bytes.fill(1));
            began.elapsed() / MIB as u32
        };
        let (first, second) = (fill(), fill());
        println!("fill of 1 MiB: {first:?} in a fresh mapping, {second:?} again");
    }
}
