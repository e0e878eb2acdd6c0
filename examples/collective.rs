//! Collective write and read: each of 3 processes writes its block of one array together with the
//! others, then all read the array back in another distribution.
//!
//! ```sh
//! unisono start --servers 2
//! cargo run --release -p client --example collective -- 0 3 &
//! cargo run --release -p client --example collective -- 1 3 &
//! cargo run --release -p client --example collective -- 2 3 &
//! ```

use client::{ClientId, Connection, Dimension, Distribution, Group, Instance, OwnPart};

fn write_block(rank: u32, size: u32, block: &[u8]) -> Result<(), client::UserError> {
    let connection = Connection::open(&Instance::at(client::default_instance_directory()))?;
    let group = Group::form(&connection, "field writers", rank, size)?;
    let file = connection.open_or_create("field")?;
    let distribution = Distribution {
        shape: vec![block.len() as u64 / 8 * u64::from(size)],
        record_bytes: 8,
        dimensions: vec![Dimension::Block],
        grid: vec![size],
        clients: size,
    };
    let part = OwnPart::Dealt { distribution, client: ClientId(rank), file_offset: 0 };
    group.write(&file, &part, block)?;
    file.close()
}

/// Reads each `size`-th record, beginning with number `rank`.
fn read_cyclic(rank: u32, size: u32, into: &mut [u8]) -> Result<(), client::UserError> {
    let connection = Connection::open(&Instance::at(client::default_instance_directory()))?;
    let group = Group::form(&connection, "field readers", rank, size)?;
    let file = connection.open_file("field")?;
    let distribution = Distribution {
        shape: vec![into.len() as u64 / 8 * u64::from(size)],
        record_bytes: 8,
        dimensions: vec![Dimension::Cyclic(1)],
        grid: vec![size],
        clients: size,
    };
    let part = OwnPart::Dealt { distribution, client: ClientId(rank), file_offset: 0 };
    group.read(&file, &part, into)?;
    file.close()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u32>());
    let rank = numbers.next().ok_or("give the rank of this process")??;
    let size = numbers.next().ok_or("give the number of processes")??;
    let first = 1000 * rank;
    let block: Vec<u8> = (first..first + 1000).flat_map(|v| f64::from(v).to_le_bytes()).collect();
    write_block(rank, size, &block)?;
    println!("rank {rank} of {size} wrote {first} to {}", first + 999);
    let mut read = vec![0; block.len()];
    read_cyclic(rank, size, &mut read)?;
    let expected = (0..1000).flat_map(|turn| f64::from(turn * size + rank).to_le_bytes());
    assert!(expected.eq(read), "a number is in a wrong place");
    println!("rank {rank} of {size} read {rank}, {}, {}, ...", rank + size, rank + 2 * size);
    Ok(())
}
