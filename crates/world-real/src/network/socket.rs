//! Connected stream socket of either family, read and written without intermediate copies.
//!
//! Invariant: no other file but [`super::blocking`] reads from or writes to sockets.
//!
//! The event loop watches a socket for writability only while a write waits for it. A Unix socket
//! reports writability whenever the peer reads, and would wake a task that waits for an answer once
//! more for each request: a third of the time of small requests.
#![allow(unsafe_code)]

use crate::memory::Filling;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `descriptor` with the event loop for reading.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch_for(descriptor, Interest::READABLE)
}

fn watch_for(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, interest) }?)
}

/// Reads first into `bytes` and then into `rest`; returns the number of bytes for each.
fn read_two(socket: &OwnedFd, bytes: &mut [u8], rest: &mut [u8]) -> io::Result<(usize, usize)> {
    let wanted = bytes.len();
    let parts = &mut [IoSliceMut::new(bytes), IoSliceMut::new(rest)];
    let count = rustix::io::readv(socket, parts)?;
    Ok((count.min(wanted), count.saturating_sub(wanted)))
}

/// Maximum number of elements of one vectored write.
pub(crate) const PARTS_MAX: usize = 64;

/// One end of a stream.
pub(crate) struct Socket(AsyncFd<OwnedFd>);

impl Socket {
    /// Takes over a connected, nonblocking socket.
    pub(crate) fn new(socket: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self(watch(socket.into())?))
    }

    /// Gives the descriptor away; the event loop no longer watches it.
    pub(crate) fn into_inner(self) -> OwnedFd {
        self.0.into_inner()
    }

    /// Returns the descriptor.
    pub(crate) fn inner(&self) -> &OwnedFd {
        self.0.get_ref()
    }

    /// Waits for data and reads it first into `place` and then into `rest`. Returns the number of
    /// bytes for each; two zeros at the end of the stream. Both must have room.
    pub(crate) async fn read_into(
        &self,
        place: &mut Filling,
        rest: &mut [u8],
    ) -> io::Result<Option<(usize, usize)>> {
        self.when_readable(
            |socket| {
                if place.is_revoked() {
                    return Ok(None);
                }
                let mut over = 0;
                let placed = place.fill(|bytes| {
                    let (placed, rest) = read_two(socket, bytes, rest)?;
                    over = rest;
                    Ok::<_, io::Error>(placed)
                })?;
                Ok(Some((placed, over)))
            },
            |_| false,
        )
        .await
    }

    /// As [`read_into`](Self::read_into), for the bytes of `place` in `range`, which do not count
    /// as filled afterwards: they are to be checked first.
    pub(crate) async fn read_unchecked(
        &self,
        place: &mut Filling,
        range: Range<usize>,
        rest: &mut [u8],
    ) -> io::Result<Option<(usize, usize)>> {
        self.when_readable(
            |socket| {
                if place.is_revoked() {
                    return Ok(None);
                }
                let mut counts = (0, 0);
                place.fill(|bytes| {
                    counts = read_two(socket, &mut bytes[range.clone()], rest)?;
                    Ok::<_, io::Error>(0)
                })?;
                Ok(Some(counts))
            },
            |_| false,
        )
        .await
    }

    /// Waits for data and reads some into `bytes`. Returns the number of bytes; 0 at the end of the
    /// stream.
    pub(crate) async fn read_some(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let room = bytes.len();
        let read = |socket: &OwnedFd| Ok(rustix::io::read(socket, &mut *bytes)?);
        self.when_readable(read, |count| (1..room).contains(count)).await
    }

    /// Fills all of `bytes`.
    pub(crate) async fn read_exact(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_some(&mut bytes[filled..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// Reads as soon as there is data. If the result shows that no data is left, the next call
    /// waits at once: it would find nothing, and small messages come one at a time.
    async fn when_readable<R>(
        &self,
        mut read: impl FnMut(&OwnedFd) -> io::Result<R>,
        is_drained: impl FnOnce(&R) -> bool,
    ) -> io::Result<R> {
        loop {
            let mut ready = self.0.readable().await?;
            match ready.try_io(|socket| read(socket.get_ref())) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(result) => {
                    // A stream returns less than requested only when it has no more; later data,
                    // the end included, makes it readable again.
                    if result.as_ref().is_ok_and(is_drained) {
                        ready.clear_ready();
                    }
                    return result;
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Waits for writability and writes some of `parts`. Returns the number of bytes.
    pub(crate) async fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut nothing = SendAncillaryBuffer::default();
            // A closed peer is reported as an error, not by SIGPIPE, which would end the process.
            let flags = SendFlags::NOSIGNAL;
            match rustix::net::sendmsg(self.inner(), parts, &mut nothing, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.room().await?,
                result => return Ok(result?),
            }
        }
    }

    async fn room(&self) -> io::Result<()> {
        let waiting = watch_for(self.inner().try_clone()?, Interest::WRITABLE)?;
        waiting.writable().await.map(|_| ())
    }

    /// Writes all of `parts`, in as many calls as that takes; passes the number of bytes of each
    /// to `note`.
    pub(crate) async fn write_parts(
        &self,
        mut parts: &mut [IoSlice<'_>],
        note: impl Fn(usize),
    ) -> io::Result<()> {
        while !parts.is_empty() {
            let count = self.write(&parts[..parts.len().min(PARTS_MAX)]).await?;
            note(count);
            IoSlice::advance_slices(&mut parts, count);
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    pub(crate) async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            written += self.write(&[IoSlice::new(&bytes[written..])]).await?;
        }
        Ok(())
    }

    /// Shuts down the sending side.
    pub(crate) fn finish(&self) {
        // An error here means that the peer is gone already.
        let _ = rustix::net::shutdown(self.inner(), Shutdown::Write);
    }
}
