//! Measures the two hot loops of `policy`: the next chunk of a client, and the pieces of a block.
//!
//! `cargo run --release -p policy --example measure_pieces`

use policy::{Access, Pattern};
use std::hint::black_box;
use units::{ByteRange, ClientId};

/// 1 GiB, in 8-byte records, over 16 clients.
const FILE_BYTES: u64 = 1 << 30;
const CLIENTS: u32 = 16;

#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a measurement needs the real clock"
)]
fn ns_each(what: impl FnOnce() -> u64) -> f64 {
    let start = std::time::Instant::now();
    let count = what();
    start.elapsed().as_nanos() as f64 / count.max(1) as f64
}

fn chunks(access: &Access) -> u64 {
    let clients = (0..CLIENTS).map(ClientId);
    clients.map(|client| access.chunks(client).map(black_box).count() as u64).sum()
}

/// Runs a server's loop over the blocks of the file; returns the number of (block, client) pairs.
fn blocks(access: &Access, block_bytes: u64) -> u64 {
    let mut pairs = 0;
    for block in 0..FILE_BYTES / block_bytes {
        let range = ByteRange::at(block * block_bytes, block_bytes);
        for client in access.clients_in(range) {
            black_box(access.pieces(client, range).map(black_box).count());
            pairs += 1;
        }
    }
    pairs
}

fn main() {
    for name in ["wb", "wc", "wnb", "wbb", "wbc", "wcn", "wcb", "wcc"] {
        let pattern: Pattern = name.parse().expect("a known name");
        let access = pattern.access(CLIENTS, 8, FILE_BYTES).expect("a possible access");
        let chunk_ns = ns_each(|| chunks(&access));
        let pair_ns = ns_each(|| blocks(&access, 8192));
        println!("{name}: {chunk_ns:.2} ns a chunk, {pair_ns:.0} ns a (8 KiB block, client)");
    }
}
