//! Measures writes that make a file longer against writes into a file that is long enough: `cargo
//! run --release -p client --example growing INSTANCE`.

use client::{Connection, ConnectionOptions, Instance};
use policy::Buffering;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let instance = std::env::args().nth(1).ok_or("name the directory of an instance")?;
    let library =
        Connection::open_with(&Instance::at(&instance), ConnectionOptions::with_pool(64 << 20))?;
    for bytes in [100, 4096, 65_536, 1 << 20, 8 << 20] {
        let count = (256_usize << 20).div_ceil(bytes).min(2000);
        let data = vec![7; bytes];
        let mut seconds = Vec::new();
        // Cases alternate. The first run of each is not counted, because servers need new memory
        // for it.
        for turn in 0..6 {
            let size = [0, (bytes * count) as u64][turn % 2];
            let file = library.create("growing", size, 1 << 20, Buffering::default())?;
            let begun = Instant::now();
            for number in 0..count {
                file.write_at(&data, (number * bytes) as u64)?;
            }
            seconds.push(begun.elapsed().as_secs_f64() / count as f64);
            file.close()?;
            library.remove("growing")?;
        }
        let least =
            |of: usize| seconds[2..].iter().skip(of).step_by(2).fold(f64::MAX, |a, b| a.min(*b));
        let (growing, within) = (least(0) * 1e6, least(1) * 1e6);
        println!("{bytes:>8} bytes: growing {growing:8.0} us, within {within:8.0} us a write");
    }
    Ok(())
}
