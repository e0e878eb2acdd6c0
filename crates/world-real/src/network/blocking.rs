//! A connection of one thread that waits for the answer to each of its messages.
//!
//! The event loop makes the connection and then knows nothing of it. So a message and its answer
//! wake the peer and the waiting thread, and no other.
//!
//! Invariants:
//! - One message is under way at a time.
//! - After an error the stream is at an unknown place: the connection is of no use any more.

use super::frame::{Exposure, FRAME_BYTES, Frame, Kind};
use super::socket::Socket;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SendAncillaryBuffer, SendFlags};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::time::Duration;
use units::RegionId;

/// Name of the region that a peer is told. Data that it places there comes with its messages.
const REGION: RegionId = RegionId(1);

/// Number of bytes that are read at once: frames, headers, and small bodies.
const READ_BYTES: usize = 4608;

/// A connection whose calls block the calling thread.
pub struct BlockingConnection {
    socket: OwnedFd,
    /// Bytes that were read and not used yet: those from `start` to `end`.
    buffer: Box<[u8; READ_BYTES]>,
    start: usize,
    end: usize,
    /// True when the peer knows the region.
    is_begun: bool,
}

/// Tells after each pause whether a call goes on waiting.
type GoesOn<'a> = &'a mut dyn FnMut() -> bool;

impl BlockingConnection {
    /// Largest body of a message in either direction, in bytes.
    pub const BODY_BYTES_MAX: usize = 64 << 10;

    /// Takes over a socket after its handshake. Waiting pauses after each `pause`.
    pub(super) fn new(socket: Socket, pause: Duration) -> io::Result<Self> {
        let socket = socket.into_inner();
        rustix::io::ioctl_fionbio(&socket, false)?;
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(pause))?;
        }
        let buffer = Box::new([0; READ_BYTES]);
        Ok(Self { socket, buffer, start: 0, end: 0, is_begun: false })
    }

    /// Region to which the peer places the data of its answers.
    pub fn region(&self) -> RegionId {
        REGION
    }

    /// Sends a message with or without a body.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::TimedOut`] when `goes_on` is false.
    pub fn send(
        &mut self,
        header: &[u8],
        body: Option<&[u8]>,
        goes_on: GoesOn<'_>,
    ) -> io::Result<()> {
        let mut frame = Frame::new(Kind::Message, 0, 0);
        frame.with_body = body.is_some();
        let body = body.unwrap_or_default();
        (frame.header_bytes, frame.body_bytes) = (header.len(), body.len() as u64);
        if self.is_begun {
            return self.write_all(&mut [&frame.encode(), header, body], goes_on);
        }
        self.is_begun = true;
        let length = Self::BODY_BYTES_MAX as u64;
        let exposure = Exposure { address: 0, length, may_be_written: false }.encode();
        let mut expose = Frame::new(Kind::Expose, REGION.0, 0);
        expose.header_bytes = exposure.len();
        let parts = &mut [&expose.encode()[..], &exposure, &frame.encode(), header, body];
        self.write_all(parts, goes_on)
    }

    /// Waits for the next message of the peer. Its header replaces `header`, and its body goes to
    /// the start of `into`. Returns the number of bytes of the body, if it has one.
    ///
    /// # Errors
    /// As for [`BlockingConnection::send`]; when a body has no room.
    pub fn receive(
        &mut self,
        header: &mut Vec<u8>,
        into: &mut [u8],
        goes_on: GoesOn<'_>,
    ) -> io::Result<Option<usize>> {
        loop {
            let mut bytes = [0; FRAME_BYTES];
            self.read_exact(&mut bytes, goes_on)?;
            let frame = Frame::decode(&bytes).map_err(io::Error::other)?;
            header.resize(frame.header_bytes, 0);
            self.read_exact(header, goes_on)?;
            match frame.kind {
                Kind::Message => {
                    let length = usize::try_from(frame.body_bytes).unwrap_or(usize::MAX);
                    let room = into.get_mut(..length);
                    let room = room.ok_or_else(|| io::Error::other("the answer has no room"))?;
                    self.read_exact(room, goes_on)?;
                    return Ok(frame.with_body.then_some(length));
                }
                // The peer knows the region.
                Kind::Done if frame.body_bytes == 0 => {}
                // A sign of life is wanted, or a region of the peer is gone.
                Kind::Withdraw | Kind::Expose => {
                    let done = Frame::new(Kind::Done, 0, frame.number).encode();
                    self.write_all(&mut [&done], goes_on)?;
                }
                other => return Err(io::Error::other(format!("the peer sent a {other:?}"))),
            }
        }
    }

    fn write_all(&self, parts: &mut [&[u8]], goes_on: GoesOn<'_>) -> io::Result<()> {
        let mut first = 0;
        loop {
            while parts.get(first).is_some_and(|part| part.is_empty()) {
                first += 1;
            }
            let left = &mut parts[first..];
            if left.is_empty() {
                return Ok(());
            }
            let slices: Vec<IoSlice<'_>> = left.iter().map(|part| IoSlice::new(part)).collect();
            let mut nothing = SendAncillaryBuffer::default();
            // A closed peer is reported as an error, not by SIGPIPE, which would end the process.
            let sent =
                rustix::net::sendmsg(&self.socket, &slices, &mut nothing, SendFlags::NOSIGNAL);
            let mut count = may_go_on(sent, goes_on)?.unwrap_or(0);
            for part in left {
                let taken = count.min(part.len());
                *part = &part[taken..];
                count -= taken;
            }
        }
    }

    /// Fills `bytes`: first with what was read before, then from the stream, with what follows
    /// going to the buffer.
    fn read_exact(&mut self, bytes: &mut [u8], goes_on: GoesOn<'_>) -> io::Result<()> {
        let ahead = bytes.len().min(self.end - self.start);
        bytes[..ahead].copy_from_slice(&self.buffer[self.start..self.start + ahead]);
        self.start += ahead;
        let mut filled = ahead;
        while filled < bytes.len() {
            let wanted = bytes.len() - filled;
            let parts =
                &mut [IoSliceMut::new(&mut bytes[filled..]), IoSliceMut::new(&mut self.buffer[..])];
            let read = rustix::io::readv(&self.socket, parts);
            match may_go_on(read, goes_on)? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(count) => {
                    filled += count.min(wanted);
                    (self.start, self.end) = (0, count.saturating_sub(wanted));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Returns the result of a call of the system, or `None` when it is to be repeated.
fn may_go_on(result: Result<usize, Errno>, goes_on: GoesOn<'_>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(Errno::INTR) => Ok(None),
        Err(Errno::AGAIN) if goes_on() => Ok(None),
        Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}
