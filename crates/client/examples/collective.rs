//! Writes one array collectively: each of SIZE processes its block of 8-byte records.
//!
//! `cargo run --release -p client --example collective RANK SIZE`, once for each rank.

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse());
    let rank = numbers.next().ok_or("give the rank of this process")??;
    let size = numbers.next().ok_or("give the number of processes")??;
    let values = (0..1000_u64).map(|value| value + 1000 * u64::from(rank));
    let block: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
    write_block(rank, size, &block)?;
    println!("rank {rank} of {size} has written {} bytes", block.len());
    Ok(())
}
