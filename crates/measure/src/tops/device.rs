//! Table 1: the file system and disk below the servers, measured without the servers and past the
//! page cache.

use interface::{ExitCode, UserError};
use rustix::fs::OFlags;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use units::MIB;
use world_real::RealMemory;

/// One access pattern of Table 1.
pub(super) struct DevicePattern {
    /// Its name in the table.
    pub(super) name: &'static str,
    /// Bytes of a call.
    unit_bytes: u64,
    /// Consecutive units before the next place.
    units: u64,
    /// True when the next place is random.
    is_random: bool,
}

/// A file on the disk of the servers, for calls past the page cache.
pub(super) struct Device {
    file: File,
    bytes: u64,
    /// Buffer of huge pages, as in servers.
    buffer: RealMemory,
    /// Memory of earlier passes, kept so that later ones get other pages.
    used: RefCell<Vec<Vec<u8>>>,
    /// Removed when dropped, if the file was made for the measurement.
    _scratch: Option<tempfile::NamedTempFile>,
}

/// Returns the patterns of the table for pages of `page_bytes`, and one sequential pass in units of
/// 1 MiB. (Looping is sequential when nothing is cached.)
pub(super) fn patterns(page_bytes: u64) -> [DevicePattern; 5] {
    let of =
        |name, unit_bytes, units, is_random| DevicePattern { name, unit_bytes, units, is_random };
    [
        of("sequential, 1 MiB a call", MIB, 1, false),
        of("sequential", page_bytes, 1, false),
        of("range of 16 pages", page_bytes, 16, true),
        of("range of 2 pages", page_bytes, 2, true),
        of("random", page_bytes, 1, true),
    ]
}

impl Device {
    /// Makes a file of `bytes` bytes in `directory`, written in full.
    pub(super) fn new(directory: &Path, bytes: u64) -> Result<Self, UserError> {
        let made = || {
            let scratch =
                tempfile::Builder::new().prefix(".unisono-tops-").tempfile_in(directory)?;
            let file = past_page_cache(File::options().write(true), scratch.path())?;
            let device = Self::over(file, bytes, Some(scratch));
            for at in (0..bytes).step_by(MIB as usize) {
                device.call(true, at, MIB)?;
            }
            device.file.sync_all()?;
            Ok(device)
        };
        made().map_err(|error: std::io::Error| {
            UserError::usage(
                format!("cannot measure the disk of {}", directory.display()),
                error.to_string(),
                "with --directory, name a directory whose file system supports O_DIRECT",
            )
        })
    }

    /// Opens the longest file below `directory` for reading. For a server that keeps one file
    /// there, it is the file's data.
    ///
    /// # Errors
    /// Fails when the file does not have `bytes` bytes, or cannot be read.
    pub(super) fn longest_below(directory: &Path, bytes: u64) -> Result<Self, UserError> {
        let opened = || {
            let mut longest = (0, directory.to_owned());
            let mut left = vec![directory.to_owned()];
            while let Some(folder) = left.pop() {
                for entry in std::fs::read_dir(folder)? {
                    let entry = entry?;
                    let metadata = entry.metadata()?;
                    match metadata.is_dir() {
                        true => left.push(entry.path()),
                        false => longest = longest.max((metadata.len(), entry.path())),
                    }
                }
            }
            let (found, path) = longest;
            if found != bytes {
                let other = format!("{} has {found} bytes, not {bytes}", path.display());
                return Err(std::io::Error::other(other));
            }
            Ok(Self::over(past_page_cache(&mut File::options(), &path)?, bytes, None))
        };
        opened().map_err(|error: std::io::Error| failed(&error))
    }

    fn over(file: File, bytes: u64, scratch: Option<tempfile::NamedTempFile>) -> Self {
        let buffer = RealMemory::new(CALL_BYTES_MAX as usize);
        buffer.with_bytes_mut(|bytes| bytes.fill(7));
        Self { file, bytes, buffer, used: RefCell::default(), _scratch: scratch }
    }

    /// Measures the rate of one program with a pattern for `seconds` seconds, in 2^20 bytes a
    /// second.
    pub(super) fn measure(
        &self,
        pattern: &DevicePattern,
        writes: bool,
        seconds: f64,
    ) -> Result<f64, UserError> {
        let measured = || {
            let range_bytes = pattern.unit_bytes * pattern.units;
            let ranges = self.bytes / range_bytes;
            let mut random = fastrand::Rng::with_seed(1);
            let (start, mut bytes, mut turn) = (Instant::now(), 0, 0);
            while start.elapsed() < Duration::from_secs_f64(seconds) {
                let range = if pattern.is_random { random.u64(0..ranges) } else { turn % ranges };
                for unit in 0..pattern.units {
                    let at = range * range_bytes + unit * pattern.unit_bytes;
                    self.call(writes, at, pattern.unit_bytes)?;
                }
                bytes += range_bytes;
                turn += 1;
            }
            std::io::Result::Ok(bytes as f64 / MIB as f64 / start.elapsed().as_secs_f64())
        };
        measured().map_err(|error| failed(&error))
    }

    /// Measures the rate of one pass through the file in calls of 1 MiB, in 2^20 bytes a second.
    pub(super) fn pass(&self) -> Result<f64, UserError> {
        self.buffer.with_bytes_mut(|bytes| self.pass_into(bytes))
    }

    /// Measures one pass as `dd` makes it: into ordinary pages, others each time.
    pub(super) fn pass_as_dd(&self) -> Result<f64, UserError> {
        let mut memory = vec![7; CALL_BYTES_MAX as usize + ALIGNMENT];
        let first = memory.as_ptr().align_offset(ALIGNMENT);
        let passed = self.pass_into(&mut memory[first..first + CALL_BYTES_MAX as usize]);
        self.used.borrow_mut().push(memory);
        passed
    }

    fn pass_into(&self, bytes: &mut [u8]) -> Result<f64, UserError> {
        let start = Instant::now();
        let calls = self.bytes / CALL_BYTES_MAX;
        let read =
            (0..calls).try_for_each(|call| self.file.read_exact_at(bytes, call * CALL_BYTES_MAX));
        read.map_err(|error| failed(&error))?;
        Ok((calls * CALL_BYTES_MAX) as f64 / MIB as f64 / start.elapsed().as_secs_f64())
    }

    fn call(&self, writes: bool, at: u64, length: u64) -> std::io::Result<()> {
        debug_assert!(length <= CALL_BYTES_MAX, "a call fits the buffer");
        self.buffer.with_bytes_mut(|bytes| {
            let bytes = &mut bytes[..length as usize];
            match writes {
                true => self.file.write_all_at(bytes, at),
                false => self.file.read_exact_at(bytes, at),
            }
        })
    }
}

fn past_page_cache(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    options.read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)
}

fn failed(error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "cannot measure the disk",
        error.to_string(),
        "check the system log for disk errors",
    )
}

/// The longest call, in bytes.
const CALL_BYTES_MAX: u64 = MIB;

/// Alignment of memory for calls past the page cache, in bytes.
const ALIGNMENT: usize = 4 << 10;
