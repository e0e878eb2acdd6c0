//! What this machine can do without a file system of ours: the limits that a bench is held against.

use crate::error::LaunchError;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;
use units::MIB;

/// Limits of this machine, in 2^20 bytes a second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// One thread copies memory, blocks of 1 MiB out of 64 MiB: what `memcpy` reaches when the
    /// data is not in a cache near the processor.
    pub memory_copy_mib_s: f64,
    /// One thread writes a new file of the size of the cases, 1 MiB at a time, into the page cache.
    pub file_write_mib_s: f64,
    /// The same until the data is on stable storage.
    pub file_write_sync_mib_s: f64,
    /// One thread reads that file back, as it lies in the page cache.
    pub file_read_mib_s: f64,
}

/// Bytes of the memory that is copied back and forth.
const COPIED_BYTES: u64 = 64 * MIB;

/// How often it is copied; the best time counts.
const COPIES: u32 = 5;

impl Limits {
    /// Measures the limits with a file of `bytes` bytes in `directory`, which is removed again.
    ///
    /// # Errors
    /// When the directory does not take such a file.
    pub fn measure(directory: &Path, bytes: u64) -> Result<Self, LaunchError> {
        let path = directory.join("limits");
        let files = measure_files(&path, bytes);
        // It is of no further use, whether the measurement went well or not.
        let _ = std::fs::remove_file(&path);
        let [file_write_mib_s, file_write_sync_mib_s, file_read_mib_s] =
            files.map_err(|error| {
                LaunchError::usage(
                    format!("cannot measure the disk of {}", directory.display()),
                    error.to_string(),
                    "name a directory with space for the file with --directory",
                )
            })?;
        let memory_copy_mib_s = measure_copy();
        Ok(Self { memory_copy_mib_s, file_write_mib_s, file_write_sync_mib_s, file_read_mib_s })
    }
}

fn rate(bytes: u64, start: Instant) -> f64 {
    bytes as f64 / MIB as f64 / start.elapsed().as_secs_f64()
}

fn measure_copy() -> f64 {
    let source = vec![1_u8; COPIED_BYTES as usize];
    let mut target = vec![0_u8; COPIED_BYTES as usize];
    let mut best = 0.0_f64;
    for _ in 0..COPIES {
        let start = Instant::now();
        let blocks = target.chunks_mut(MIB as usize).zip(source.chunks(MIB as usize));
        blocks.for_each(|(target, source)| target.copy_from_slice(source));
        best = best.max(rate(COPIED_BYTES, start));
        std::hint::black_box(&mut target);
    }
    best
}

fn measure_files(path: &Path, bytes: u64) -> std::io::Result<[f64; 3]> {
    let block = vec![7_u8; MIB as usize];
    let write = |sync: bool| -> std::io::Result<f64> {
        let _ = std::fs::remove_file(path);
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let start = Instant::now();
        let mut left = bytes;
        while left > 0 {
            let part = left.min(MIB);
            file.write_all(&block[..part as usize])?;
            left -= part;
        }
        if sync {
            file.sync_data()?;
        }
        Ok(rate(bytes, start))
    };
    let synced = write(true)?;
    let written = write(false)?;
    let mut block = block.clone();
    let mut file = File::open(path)?;
    let start = Instant::now();
    while file.read(&mut block)? > 0 {}
    Ok([written, synced, rate(bytes, start)])
}

/// The most memory that a process has had so far, in bytes; 0 when it cannot be known.
pub(crate) fn peak_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
