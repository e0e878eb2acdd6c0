//! A connected stream socket of either family, read and written without copies in between.
//!
//! Invariant: the only place that reads from and writes to sockets.
//!
//! The event loop watches a socket for room only while a write waits for it. A Unix socket reports
//! room whenever the peer takes something, and would wake whoever waits for an answer once more
//! for each request: a third of the time of small requests.
#![allow(unsafe_code)]

use crate::memory::Filling;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Lets the event loop watch `descriptor` for what can be read from it.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch_for(descriptor, Interest::READABLE)
}

fn watch_for(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, interest) }?)
}

/// One end of a stream.
pub(crate) struct Socket(AsyncFd<OwnedFd>);

impl Socket {
    /// Takes over a connected, non-blocking socket.
    pub(crate) fn new(socket: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self(watch(socket.into())?))
    }

    /// The socket itself.
    pub(crate) fn inner(&self) -> &OwnedFd {
        self.0.get_ref()
    }

    /// Waits until bytes arrive, and puts some of them first into `place` and then into `rest`.
    /// Returns how many went into each; two zeros at the end of the stream. Both must have room.
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
                    let wanted = bytes.len();
                    let parts = &mut [IoSliceMut::new(bytes), IoSliceMut::new(rest)];
                    let count = rustix::io::readv(socket, parts)?;
                    over = count.saturating_sub(wanted);
                    Ok::<_, io::Error>(count.min(wanted))
                })?;
                Ok(Some((placed, over)))
            },
            |_| false,
        )
        .await
    }

    /// Waits until bytes arrive, and puts some of them into `bytes`. Returns how many; 0 at the
    /// end of the stream.
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

    /// Reads as soon as there is something. Where the result shows that nothing is left, the next
    /// call waits at once: it would find nothing, and small messages come one at a time.
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
                    // A stream gives less than there is room for only when it has no more; what
                    // comes later, the end included, makes it readable again.
                    if result.as_ref().is_ok_and(is_drained) {
                        ready.clear_ready();
                    }
                    return result;
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Waits until there is room, and writes some of `parts`. Returns how many bytes.
    pub(crate) async fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut nothing = SendAncillaryBuffer::default();
            // A closed peer is an error to report, not a signal that ends the process.
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

    /// Writes all of `bytes`.
    pub(crate) async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            written += self.write(&[IoSlice::new(&bytes[written..])]).await?;
        }
        Ok(())
    }

    /// Tells the peer that nothing more comes.
    pub(crate) fn finish(&self) {
        // An error here means that the peer is gone already.
        let _ = rustix::net::shutdown(self.inner(), Shutdown::Write);
    }
}
