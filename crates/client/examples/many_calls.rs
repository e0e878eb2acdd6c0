//! Measures small independent calls of one process: `cargo run --release -p client --example
//! many_calls INSTANCE [CALLS]`. Start several at the same time for several ranks.

use client::{Connection, ConnectionOptions, Instance};
use policy::Buffering;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let instance = words.next().ok_or("name the directory of an instance")?;
    let calls: u64 = words.next().map_or(Ok(5000), |word| word.parse())?;
    let library =
        Connection::open_with(&Instance::at(&instance), ConnectionOptions::with_pool(64 << 20))?;
    for bytes in [40, 4096, 47_008, 262_144] {
        let calls = calls.min((256 << 20) / bytes);
        let (name, mut data) = (format!("calls-{}", std::process::id()), vec![7; bytes as usize]);
        let file = library.create(&name, bytes * calls, 1 << 20, Buffering::default())?;
        for turn in ["new", "again"] {
            let begun = Instant::now();
            for call in 0..calls {
                file.write_at(&data, call * bytes)?;
            }
            // What is gathered of them is at the servers then.
            file.read_at(&mut data[..1], bytes * calls - 1)?;
            let written = begun.elapsed().as_secs_f64() * 1e6 / calls as f64;
            let begun = Instant::now();
            for call in 0..calls {
                file.read_at(&mut data, call * bytes)?;
            }
            let read = begun.elapsed().as_secs_f64() * 1e6 / calls as f64;
            println!("{bytes:>8} bytes, {turn:>5}: write {written:7.1} us, read {read:7.1} us");
        }
        file.close()?;
        library.remove(&name)?;
    }
    Ok(())
}
