//! The calls that `python/bench/speed.py` measures, made by the Rust library.
//!
//! Reads a line for each measurement: a call, its count, and the bytes of the file. Answers the
//! seconds that all took.

use client::{Connection, Instance, UserError, default_instance_directory};
use std::io::{BufRead, Write};
use std::time::Instant;

const FILE: &str = "speed-of-rust";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection = Connection::open(&Instance::at(default_instance_directory()))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [call, count, bytes] = words[..] else { return Err("a line has three words".into()) };
        let (count, bytes): (u32, usize) = (count.parse()?, bytes.parse()?);
        let data = vec![1; bytes];
        let begun = Instant::now();
        for _ in 0..count {
            match call {
                "pipe_file" => pipe(&connection, &data)?,
                "cat_file" => cat(&connection, bytes)?,
                "info" => drop(connection.stat(FILE)?),
                _ => return Err(format!("{call} is no call").into()),
            }
        }
        println!("{}", begun.elapsed().as_secs_f64());
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Writes a file anew.
fn pipe(connection: &Connection, data: &[u8]) -> Result<(), UserError> {
    let file = connection.open_or_create(FILE)?;
    file.set_size(0)?;
    file.write_at(data, 0)?;
    file.flush(false)?;
    file.close()
}

/// Reads a whole file into new memory.
fn cat(connection: &Connection, bytes: usize) -> Result<(), UserError> {
    let file = connection.open_file(FILE)?;
    let mut data = vec![0; file.size()? as usize];
    let read = file.read_at(&mut data, 0)?;
    assert!(read == bytes && data.iter().step_by(4096).all(|byte| *byte == 1), "it was written");
    file.close()
}
