//! Rates of one plain file, as a limit that takes less than a second to measure.

use interface::{ExitCode, UserError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use units::MIB;

/// Time of each of the two measurements. They end after it, or when all bytes are moved.
const TIME: Duration = Duration::from_millis(450);

/// Rates of one thread that writes a new file and reads it again, in 2^20 bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct PlainRates {
    /// Writing, to the page cache and what of it the system writes meanwhile.
    pub write_mib_s: f64,
    /// Reading it, as far as it is there from the page cache.
    pub read_mib_s: f64,
}

/// Measures the rates in a directory, with a file of at most `bytes` bytes, which has no name.
///
/// # Errors
/// Fails when the directory cannot hold such a file.
pub fn plain_rates(directory: &Path, bytes: u64) -> Result<PlainRates, UserError> {
    let failed = |error: std::io::Error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot measure the disk of {}", directory.display()),
            error.to_string(),
            "leave the measurement out with --no-limit",
        )
    };
    let mut file = tempfile::tempfile_in(directory).map_err(failed)?;
    let mut block = vec![1_u8; MIB as usize];
    let bytes = bytes.max(MIB);
    let write_mib_s = rate(bytes, || file.write_all(&block)).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let written = file.metadata().map_err(failed)?.len();
    let read_mib_s = rate(written, || file.read_exact(&mut block)).map_err(failed)?;
    Ok(PlainRates { write_mib_s, read_mib_s })
}

/// Moves whole blocks of 1 MiB, at most `bytes` bytes, for at most [`TIME`].
fn rate(bytes: u64, mut block: impl FnMut() -> std::io::Result<()>) -> std::io::Result<f64> {
    let (start, mut moved) = (Instant::now(), 0);
    while moved < (bytes / MIB) && (moved == 0 || start.elapsed() < TIME) {
        block()?;
        moved += 1;
    }
    Ok(moved as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    //! Proves: the rates of a small file are numbers, and a missing directory is an error.
    use super::*;

    #[test]
    fn small_files_have_rates() {
        let room = tempfile::tempdir().expect("a test must have room");
        let rates = plain_rates(room.path(), 3 * MIB + 1).expect("there is room");
        assert!(rates.write_mib_s > 0.0 && rates.read_mib_s > 0.0, "{rates:?}");
        assert_eq!(std::fs::read_dir(room.path()).expect("it is there").count(), 0);
        assert!(plain_rates(&room.path().join("none"), MIB).is_err());
    }
}
