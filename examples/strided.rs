//! Strided reads and writes of one process: a transposed matrix and one of its columns, each with
//! one request to each server.
//!
//! ```sh
//! unisono start --servers 2
//! cargo run --release -p client --example strided
//! ```

use client::{Buffering, Connection, Instance, Level, Nested, OwnPart};

const ROWS: u64 = 500;
const COLUMNS: u64 = 300;
/// Bytes of a number.
const NUMBER: u64 = 8;

/// Repeats what it is given in each row; in memory the copies are neighbours.
const EACH_ROW: Level = Level { count: ROWS, file_stride: COLUMNS * NUMBER, memory_stride: NUMBER };

/// Repeats what it is given in each column; in memory one column follows the other.
const EACH_COLUMN: Level =
    Level { count: COLUMNS, file_stride: NUMBER, memory_stride: ROWS * NUMBER };

/// Returns the copies of the number at `file_offset`, packed in memory.
fn numbers(file_offset: u64, levels: Vec<Level>) -> OwnPart {
    OwnPart::Nested(vec![Nested { file_offset, memory_offset: 0, length: NUMBER, levels }])
}

fn bytes(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_le_bytes).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection = Connection::open(&Instance::at(client::default_instance_directory()))?;
    let file = connection.create("matrix", 0, 64 << 10, Buffering::default())?;
    file.write_at(&bytes(0..ROWS * COLUMNS), 0)?;
    println!("wrote {ROWS} rows of {COLUMNS} numbers, which count up from 0");

    let mut transposed = vec![0; (ROWS * COLUMNS * NUMBER) as usize];
    file.read_part(&numbers(0, vec![EACH_COLUMN, EACH_ROW]), &mut transposed)?;
    let column_major =
        (0..COLUMNS).flat_map(|column| (0..ROWS).map(move |row| row * COLUMNS + column));
    assert!(transposed == bytes(column_major), "a number is in a wrong place");
    println!("read it transposed: 0, {COLUMNS}, {}, ...", 2 * COLUMNS);

    let column = numbers(7 * NUMBER, vec![EACH_ROW]);
    file.write_part(&column, &bytes((0..ROWS).map(|row| 1_000_000 + row)), false)?;
    println!("wrote column 7 anew: 1000000, 1000001, 1000002, ...");

    let mut whole = vec![0; transposed.len()];
    assert_eq!(file.read_at(&mut whole, 0)?, whole.len());
    let expected = (0..ROWS * COLUMNS).map(|number| match number % COLUMNS {
        7 => 1_000_000 + number / COLUMNS,
        _ => number,
    });
    assert!(whole == bytes(expected), "a number is in a wrong place");
    println!("read all {} numbers: the other columns are as before", ROWS * COLUMNS);
    Ok(file.close()?)
}
