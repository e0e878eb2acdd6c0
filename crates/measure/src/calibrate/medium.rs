//! The medium below the page cache: syncs, and accesses that bypass the cache.

use interface::{ExitCode, UserError};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;
use std::time::Instant;
use units::{GIB, KIB, MIB};

/// Rates and times of the medium of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    /// Bytes a second of a long write with its sync.
    pub(super) bytes_per_second: f64,
    /// Bytes a second of the syncs of several files at the same time, together.
    pub(super) shared_bytes_per_second: f64,
    /// Nanoseconds of a byte that is written to a new page, beyond those of one written again.
    pub(super) new_byte_ns: f64,
    /// Nanoseconds of the sync of one page.
    pub(super) sync_ns: f64,
    /// Nanoseconds of reading 4 KiB and 1 MiB past the cache; `None` where the file system has no
    /// O_DIRECT.
    pub(super) direct_reads: Option<[f64; 2]>,
    /// Bytes of the page cache that files may have.
    pub(super) cache_bytes: u64,
    /// Dirty bytes above which the system makes writers wait.
    pub(super) dirty_bytes: u64,
}

const WRITTEN_BYTES: u64 = 64 * MIB;
/// Files that are synced at the same time, and the bytes of each.
const FILES: usize = 4;
const FILE_BYTES: u64 = 32 * MIB;
const SYNCS: u32 = 20;
const ROUNDS: usize = 3;
const DIRECT_READS: u64 = 32;

/// Measures the medium of a directory, with files that are removed.
///
/// # Errors
/// Fails when the directory cannot hold the file.
pub(super) fn measure(directory: &Path) -> Result<Medium, UserError> {
    let path = directory.join("calibrate-medium");
    let paths: Vec<_> =
        (0..FILES).map(|file| directory.join(format!("calibrate-medium-{file}"))).collect();
    let measured = measure_at(&path, &paths);
    for path in paths.iter().chain([&path]) {
        // It may not exist.
        let _ = std::fs::remove_file(path);
    }
    measured.map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot measure the disk of {}", directory.display()),
            error.to_string(),
            "name a directory with 256 MiB of space that you may write to, with --directory",
        )
    })
}

/// Writes the first bytes of a file.
fn write(file: &File, bytes: u64) -> io::Result<()> {
    let data = vec![0x5a_u8; MIB as usize];
    (0..bytes / MIB).try_for_each(|block| file.write_all_at(&data, block * MIB))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(true).write(true).read(true).open(path)
}

/// Returns the bytes a second of the syncs of several files at the same time, together.
fn shared_rate(paths: &[PathBuf]) -> io::Result<f64> {
    let files: Vec<File> = paths.iter().map(|path| create(path)).collect::<Result<_, _>>()?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        files.iter().try_for_each(|file| write(file, FILE_BYTES))?;
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let syncs: Vec<_> = files.iter().map(|file| scope.spawn(|| file.sync_data())).collect();
            let ended = |sync: ScopedJoinHandle<'_, io::Result<()>>| {
                sync.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            syncs.into_iter().try_for_each(ended)
        })?;
        times.push(begun.elapsed().as_secs_f64());
    }
    Ok((FILE_BYTES * paths.len() as u64) as f64 / median(&mut times))
}

fn measure_at(path: &Path, paths: &[PathBuf]) -> io::Result<Medium> {
    let shared_bytes_per_second = shared_rate(paths)?;
    let data = vec![0x5a_u8; 4096];
    let file = create(path)?;
    let mut writes = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        write(&file, WRITTEN_BYTES)?;
        file.sync_data()?;
        writes.push(begun.elapsed().as_secs_f64());
    }
    let (mut new, mut again) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        file.set_len(0)?;
        for times in [&mut new, &mut again] {
            let begun = Instant::now();
            write(&file, WRITTEN_BYTES)?;
            times.push(begun.elapsed().as_nanos() as f64);
        }
    }
    file.sync_data()?;
    let mut syncs = Vec::new();
    for number in 0..SYNCS {
        file.write_all_at(&data, u64::from(number) * 4096)?;
        let begun = Instant::now();
        file.sync_data()?;
        syncs.push(begun.elapsed().as_nanos() as f64);
    }
    Ok(Medium {
        bytes_per_second: WRITTEN_BYTES as f64 / median(&mut writes),
        shared_bytes_per_second,
        new_byte_ns: (median(&mut new) - median(&mut again)).max(0.0) / WRITTEN_BYTES as f64,
        sync_ns: median(&mut syncs),
        direct_reads: direct_reads(path).ok(),
        cache_bytes: memory_bytes() / 2,
        dirty_bytes: memory_bytes() / 100 * dirty_percent(),
    })
}

/// Bytes of memory; 8 GiB where the system does not tell.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(8 * GIB, |kib| kib * KIB)
}

/// Share of memory that may be dirty, in percent; the default of Linux where it does not tell.
fn dirty_percent() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/vm/dirty_ratio").unwrap_or_default();
    text.trim().parse().ok().filter(|percent| (1..=100).contains(percent)).unwrap_or(20)
}

fn direct_reads(path: &Path) -> io::Result<[f64; 2]> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)?;
    Ok([time_reads(&file, 4 * KIB)?, time_reads(&file, MIB)?])
}

/// Median time of reads of `bytes` bytes at places far apart.
fn time_reads(file: &File, bytes: u64) -> io::Result<f64> {
    // O_DIRECT wants aligned memory.
    let mut memory = vec![0_u8; (bytes + 4 * KIB) as usize];
    let start = memory.as_ptr().align_offset(4096);
    let aligned = &mut memory[start..start + bytes as usize];
    let mut times = Vec::new();
    for number in 0..DIRECT_READS {
        let place = number * 37 % (WRITTEN_BYTES / MIB) * MIB;
        let begun = Instant::now();
        file.read_exact_at(aligned, place)?;
        times.push(begun.elapsed().as_nanos() as f64);
    }
    Ok(median(&mut times))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
