//! What the machine can do without us, measured in the same run: one stream of each kind.

use crate::bench::measure_copy;
use crate::error::{ExitCode, LaunchError};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use units::MIB;

/// Limits of this machine, in 2^20 bytes a second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TopsLimits {
    /// One thread copies memory, blocks of 1 MiB out of 64 MiB.
    pub memory_copy_mib_s: f64,
    /// One thread writes to a Unix socket and another reads, in the best of several sizes of calls.
    pub unix_stream_mib_s: f64,
    /// The same over TCP on the loopback interface.
    pub tcp_stream_mib_s: f64,
    /// One sequential pass through a file of the disk, past the page cache, in reads of 1 MiB.
    pub disk_read_mib_s: f64,
}

/// Bytes of a call on a stream that are tried; the best counts.
const CALL_BYTES: [usize; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Bytes that go through a stream in one try.
const STREAM_BYTES: usize = 512 << 20;

impl TopsLimits {
    /// The better of two measurements of each.
    pub(super) fn better(self, other: Self) -> Self {
        Self {
            memory_copy_mib_s: self.memory_copy_mib_s.max(other.memory_copy_mib_s),
            unix_stream_mib_s: self.unix_stream_mib_s.max(other.unix_stream_mib_s),
            tcp_stream_mib_s: self.tcp_stream_mib_s.max(other.tcp_stream_mib_s),
            disk_read_mib_s: self.disk_read_mib_s.max(other.disk_read_mib_s),
        }
    }
}

/// Memory and streams; the disk is [`super::device`]'s.
pub(super) fn measure(disk_read_mib_s: f64) -> Result<TopsLimits, LaunchError> {
    let failed = |error: std::io::Error| {
        LaunchError::new(
            ExitCode::Failed,
            "cannot measure what streams of this machine reach",
            error.to_string(),
            "the loopback interface must be up, and memory must be free",
        )
    };
    let unix = best(UnixStream::pair).map_err(failed)?;
    let tcp = best(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let caller = TcpStream::connect(listener.local_addr()?)?;
        Ok((caller, listener.accept()?.0))
    });
    Ok(TopsLimits {
        memory_copy_mib_s: measure_copy(),
        unix_stream_mib_s: unix,
        tcp_stream_mib_s: tcp.map_err(failed)?,
        disk_read_mib_s,
    })
}

fn best<W: Write + Send, R: Read + Send>(
    pair: impl Fn() -> std::io::Result<(W, R)>,
) -> std::io::Result<f64> {
    let mut best = 0.0_f64;
    for call_bytes in CALL_BYTES {
        let (writer, reader) = pair()?;
        best = best.max(stream(writer, reader, call_bytes)?);
    }
    Ok(best)
}

fn stream(
    mut writer: impl Write + Send,
    mut reader: impl Read + Send,
    call_bytes: usize,
) -> std::io::Result<f64> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let bytes = vec![1; call_bytes];
            (0..STREAM_BYTES / call_bytes).try_for_each(|_| writer.write_all(&bytes))
        });
        let mut bytes = vec![0; call_bytes];
        let read = (0..STREAM_BYTES / call_bytes).try_for_each(|_| reader.read_exact(&mut bytes));
        let wrote = writing.join();
        let wrote = wrote.unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")));
        read.and(wrote)
    })?;
    Ok(STREAM_BYTES as f64 / MIB as f64 / start.elapsed().as_secs_f64())
}
