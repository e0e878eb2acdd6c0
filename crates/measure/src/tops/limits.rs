//! Limits of the machine without our file system, measured in the same run: one stream of each
//! kind.

use crate::bench::measure_copy;
use interface::{ExitCode, UserError};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
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
    /// One thread writes to a TCP socket of the loopback interface and another reads, in the best
    /// of several sizes of calls.
    pub tcp_stream_mib_s: f64,
    /// One sequential pass through a file of the disk, past the page cache, in reads of 1 MiB.
    pub disk_read_mib_s: f64,
}

/// Sizes of calls on a stream to try, in bytes; the best counts.
const CALL_BYTES: [usize; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Attempts with each size, in turns: other programs may occupy the machine for a while.
const TRIES: u32 = 3;

/// Streams of this machine, each in calls of its best size.
pub(super) struct Streams {
    unix: Stream,
    tcp: Stream,
}

struct Stream {
    call_bytes: usize,
    mib_s: f64,
}

impl Streams {
    /// Measures one Unix stream again.
    pub(super) fn unix_mib_s(&self, seconds: f64) -> Result<f64, UserError> {
        unix_mib_s(&Carried::again(self.unix.call_bytes), seconds)
    }

    /// Measures one TCP stream again.
    pub(super) fn tcp_mib_s(&self, seconds: f64) -> Result<f64, UserError> {
        tcp_mib_s(&Carried::again(self.tcp.call_bytes), seconds)
    }
}

/// Memory of a stream. Each call writes the next `call_bytes` out of `from_bytes`; the reader fills
/// `into_bytes`. Both begin again at their ends.
pub(super) struct Carried {
    pub(super) call_bytes: usize,
    pub(super) from_bytes: usize,
    pub(super) into_bytes: usize,
}

impl Carried {
    /// Repeats the same bytes, which never leave the processor's cache.
    fn again(call_bytes: usize) -> Self {
        Self { call_bytes, from_bytes: call_bytes, into_bytes: call_bytes }
    }
}

/// Measures memory and streams, each for `seconds` seconds. [`super::device`] measures the disk.
pub(super) fn measure(
    disk_read_mib_s: f64,
    seconds: f64,
) -> Result<(TopsLimits, Streams), UserError> {
    let unix = best(|call_bytes| unix_mib_s(&Carried::again(call_bytes), seconds))?;
    let tcp = best(|call_bytes| tcp_mib_s(&Carried::again(call_bytes), seconds))?;
    let limits = TopsLimits {
        memory_copy_mib_s: measure_copy(),
        unix_stream_mib_s: unix.mib_s,
        tcp_stream_mib_s: tcp.mib_s,
        disk_read_mib_s,
    };
    Ok((limits, Streams { unix, tcp }))
}

fn best(measure: impl Fn(usize) -> Result<f64, UserError>) -> Result<Stream, UserError> {
    let mut best = Stream { call_bytes: CALL_BYTES[0], mib_s: 0.0 };
    for _ in 0..TRIES {
        for call_bytes in CALL_BYTES {
            let mib_s = measure(call_bytes)?;
            if mib_s > best.mib_s {
                best = Stream { call_bytes, mib_s };
            }
        }
    }
    Ok(best)
}

fn unix_mib_s(carried: &Carried, seconds: f64) -> Result<f64, UserError> {
    let measured = || {
        let (writer, reader) = UnixStream::pair()?;
        stream(writer, reader, carried, seconds)
    };
    measured().map_err(|error| failed(&error))
}

/// Measures one TCP stream of the loopback interface.
pub(super) fn tcp_mib_s(carried: &Carried, seconds: f64) -> Result<f64, UserError> {
    let measured = || {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let writer = TcpStream::connect(listener.local_addr()?)?;
        stream(writer, listener.accept()?.0, carried, seconds)
    };
    measured().map_err(|error| failed(&error))
}

fn failed(error: &std::io::Error) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "cannot measure the throughput of streams on this machine",
        error.to_string(),
        "check that the loopback interface is up and that memory is free",
    )
}

/// Measures the rate of a stream from one thread to another.
fn stream(
    mut writer: impl Write + Send,
    reader: impl Read + Send,
    carried: &Carried,
    seconds: f64,
) -> std::io::Result<f64> {
    let Carried { call_bytes, from_bytes, into_bytes } = *carried;
    let (from, mut into) = (vec![1; from_bytes], vec![0; into_bytes]);
    // Touches the pages, as in memory that was used before.
    into.fill(1);
    let start = Instant::now();
    let bytes = std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let mut calls = 0;
            let mut parts = from.chunks_exact(call_bytes).cycle();
            while start.elapsed().as_secs_f64() < seconds
                && let Some(part) = parts.next()
            {
                writer.write_all(part)?;
                calls += 1;
            }
            // Dropping the writer here ends the stream.
            std::io::Result::Ok(calls * call_bytes)
        });
        let read = read_all(reader, &mut into);
        let wrote = writing.join();
        let wrote = wrote.unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")));
        read.and(wrote)
    })?;
    Ok(bytes as f64 / MIB as f64 / start.elapsed().as_secs_f64())
}

/// Reads until the stream ends, into `bytes` from the front again and again. Drops the stream, so
/// that the writer ends too when reading fails.
fn read_all(mut reader: impl Read, bytes: &mut [u8]) -> std::io::Result<()> {
    let mut filled = 0;
    loop {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => return Ok(()),
            Ok(count) => filled = (filled + count) % bytes.len(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
