//! Limits of this machine without our file system, with which a bench is compared.

use client::{Cleanup, Instance, Undo};
use cluster::run_to_end;
use interface::{ExitCode, Limits, UserError};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tempfile::NamedTempFile;
use units::MIB;

/// Bytes of memory that are copied.
const COPIED_BYTES: u64 = 64 * MIB;

/// Number of memory copies; the best time counts.
const COPIES: u32 = 5;

/// Number of runs of each `dd` command; the best time counts.
const DD_RUNS: u32 = 3;

/// Measures the limits, with a file of `bytes` bytes in the first data directory of an instance
/// whose servers are idle meanwhile. The file is removed again.
///
/// # Errors
/// Fails when that directory is on another machine or cannot hold such a file, or `dd` is missing.
pub fn measure_limits(instance: &Instance, bytes: u64) -> Result<Limits, UserError> {
    let file = instance.read()?;
    let server = file.servers.first().filter(|server| instance.is_running(server));
    let directory = server.and_then(|server| server.data.first()).ok_or_else(|| {
        UserError::usage(
            "cannot measure the disk for --limits",
            "server 0 is not a process of this machine",
            "leave out --limits, or measure on the machine where the servers were started",
        )
    })?;
    let [dd_write_fsync_mib_s, dd_write_mib_s, dd_read_mib_s] = measure_dd(directory, bytes)?;
    let memory_copy_mib_s = measure_copy();
    Ok(Limits { memory_copy_mib_s, dd_write_mib_s, dd_write_fsync_mib_s, dd_read_mib_s })
}

fn rate(bytes: u64, start: Instant) -> f64 {
    bytes as f64 / MIB as f64 / start.elapsed().as_secs_f64()
}

/// Measures the copying rate of one thread, in 2^20 bytes a second.
pub(crate) fn measure_copy() -> f64 {
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

/// A file that is removed when dropped, or when the user interrupts.
struct ScratchFile {
    file: NamedTempFile,
    // Dropped last: an interrupt must be able to remove the file for as long as it exists.
    _undo: Undo,
}

impl ScratchFile {
    fn new(directory: &Path) -> std::io::Result<Self> {
        let (file, undo) = Undo::made(
            || tempfile::Builder::new().prefix(".unisono-dd-").tempfile_in(directory),
            |file| Cleanup::RemoveFile(file.path().to_owned()),
        )?;
        Ok(Self { file, _undo: undo })
    }

    /// Returns the word that names the file in a command.
    fn word(&self, before: &str) -> OsString {
        let mut word = OsString::from(before);
        word.push(self.file.path());
        word
    }
}

/// Measures the rates of `dd` for a write until stable storage, a write, and a read, in this order:
/// the file that is read must be in the page cache.
fn measure_dd(directory: &Path, bytes: u64) -> Result<[f64; 3], UserError> {
    let refused = |cause: String| {
        UserError::usage(
            format!("cannot measure the disk of {}", directory.display()),
            cause,
            "name a data directory with enough free space for a file of the size of the cases",
        )
    };
    let scratch = ScratchFile::new(directory).map_err(|error| refused(error.to_string()))?;
    let (target, source) = (scratch.word("of="), scratch.word("if="));
    let (zeros, nowhere) = (OsString::from("if=/dev/zero"), OsString::from("of=/dev/null"));
    let cases =
        [(&zeros, &target, Some("conv=fsync")), (&zeros, &target, None), (&source, &nowhere, None)];
    let mut best = [0.0_f64; 3];
    for ((from, to, conversion), best) in cases.into_iter().zip(&mut best) {
        for _ in 0..DD_RUNS {
            if to == &target {
                // Every write makes a new file.
                let emptied = scratch.file.as_file().set_len(0);
                emptied.map_err(|error| refused(error.to_string()))?;
            }
            let mut command = Command::new("dd");
            command.arg(from).arg(to).args(conversion).arg(format!("count={bytes}"));
            let start = Instant::now();
            dd(command)?.map_err(refused)?;
            *best = best.max(rate(bytes, start));
        }
    }
    Ok(best)
}

/// Runs `dd` in units of 1 MiB to its end. The inner error holds the message of `dd`.
fn dd(mut command: Command) -> Result<Result<(), String>, UserError> {
    // The last block may be partial, so the count is in bytes.
    command.args(["bs=1M", "iflag=count_bytes", "status=none"]).env("LC_ALL", "C");
    let ended = run_to_end(command).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            "cannot run dd, which --limits needs",
            error.to_string(),
            "install it with: apt install coreutils   (or leave out --limits)",
        )
    })?;
    if ended.status.success() {
        return Ok(Ok(()));
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.lines().next().unwrap_or("it printed nothing");
    Ok(Err(format!("dd ended with {}: {said}", ended.status)))
}
